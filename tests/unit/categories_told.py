"""A forum's categories, as the store tells them, on a clock of its own."""

from dataclasses import dataclass

from service.domain import Category, CategoryId
from service.errors import Transient


def category(number: int, name: str, *, parent: int | None = None, private: bool = False) -> Category:
    return Category(CategoryId(number), name, "slug", None if parent is None else CategoryId(parent), private)


@dataclass
class Forum:
    """Its categories, or an error in their place, and how often they were read."""

    told: list[Category] | Transient
    now: float = 50.0
    reads: int = 0

    async def categories(self) -> dict[CategoryId, Category]:
        self.reads += 1
        if isinstance(self.told, Transient):
            raise self.told
        return {one.id: one for one in self.told}

    def clock(self) -> float:
        return self.now
