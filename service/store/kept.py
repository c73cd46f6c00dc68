"""What a search may be held to: categories and a date; and how much that keeps, which decides how it is searched."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.domain import CategoryId
from service.store.pool import Connection

SCANNED = 20_000
"""Posts that a filter may keep for all of them to be read. Of 20,000 posts with 1,024 dimensions an index that had to
pass over 98 % took 14 times as long as reading the 400 that were left, and missed some."""

PAGE_COST = "1.1"
"""random_page_cost where a filter is: with Postgres's 4, of turning disks, it reads all posts to find 2 % of them."""

_COUNT = """
SELECT count(*) FROM (
    SELECT FROM posts JOIN topics USING (topic_id)
    WHERE refusal IS NULL AND (%(categories)s::bigint[] IS NULL OR category_id = ANY(%(categories)s))
      AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s) LIMIT %(at_most)s
) AS few
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """The posts of these categories that were written at or after that time; None: of all, at any time."""

    categories: frozenset[CategoryId] | None = None
    since: datetime | None = None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the statements call it."""
        return {"categories": None if self.categories is None else sorted(self.categories), "since": self.since}


async def keeps_few(conn: Connection, kept: Kept) -> bool:
    """Whether at most SCANNED posts with text are kept; in a transaction, which goes on with PAGE_COST."""
    await conn.execute("SELECT set_config('random_page_cost', %s, true)", (PAGE_COST,))
    cursor = await conn.execute(_COUNT, {**kept.parameters, "at_most": SCANNED + 1}, prepare=False)
    row = await cursor.fetchone()
    return row is not None and row[0] <= SCANNED
