"""Small posts, topics and stores for the tests of the storage side."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from service.domain import Category, CategoryId, EmbeddingProfile, Post, PostId, Topic, TopicId, UserId, Vector
from service.ingest.ports import EmbeddedPassage, IndexedPost, Refusal
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


def indexed(one: Post, body: str | None = "", *, refusal: Refusal | None = None, title: str = "") -> IndexedPost:
    """The post with a body (its cooked text if none is given) whose words, split at spaces, are its terms."""
    if refusal is not None:
        return IndexedPost(one, refusal, None, {}, 0)
    body = body or one.cooked
    words = f"{title} {body}".split()
    return IndexedPost(one, None, body, Counter(words), len(words))


def unit(*values: float) -> Vector:
    """The vector of these values, scaled to unit length."""
    vector = np.array(values, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


PROFILE = EmbeddingProfile("toy", 1, 1, dimensions=4, window_tokens=512)


def passage(one: Post, *values: float, ordinal: int = 0, digest: bytes = b"d") -> EmbeddedPassage:
    return EmbeddedPassage(one.id, ordinal, digest, unit(*values))


async def frequencies_are_exact(pool: Pool) -> bool:
    """Whether the stored document frequencies are what a recount gives."""
    counted = await rows(pool, "SELECT lexeme, count(*) FROM postings GROUP BY lexeme ORDER BY lexeme")
    return counted == await rows(pool, "SELECT lexeme, posts FROM document_frequencies ORDER BY lexeme")
