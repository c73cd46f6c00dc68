"""Small posts, topics and stores for the tests of the storage side."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId, UserId
from service.store.pool import Pool

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
PUBLIC = Category(CategoryId(1), "Garden", "garden", None, read_restricted=False)
PRIVATE = Category(CategoryId(2), "Staff", "staff", None, read_restricted=True)
TOPIC = Topic(TopicId(10), "Tomatoes", "tomatoes", PUBLIC.id, "regular", tags=("soil",))
POST = Post(
    PostId(100),
    TOPIC.id,
    post_number=1,
    post_type=1,
    user_id=UserId(7),
    username="ines",
    cooked="<p>Why do my tomatoes crack?</p>",
    created_at=NOON,
    updated_at=NOON,
    archetype="regular",
    category_id=PUBLIC.id,
    topic_title="Tomatoes",
    topic_slug="tomatoes",
)


def later(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def post(number: int, **changes: Any) -> Post:
    """A post with id 100 + number."""
    return replace(POST, **({"id": PostId(100 + number), "post_number": number} | changes))


async def rows(pool: Pool, query: str, *values: object) -> list[tuple[Any, ...]]:
    """What a query of a test finds."""
    async with pool.connection() as conn:
        return await (await conn.execute(query.encode(), values)).fetchall()
