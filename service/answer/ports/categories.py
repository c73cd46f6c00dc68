"""The forum's categories, as a prompt names them."""

from collections.abc import Mapping
from typing import Protocol

from service.domain import Category, CategoryId


class Categories(Protocol):
    async def categories(self) -> Mapping[CategoryId, Category]:
        """Every known category by its id, private ones too. Raises Transient when they can't be read."""
        ...
