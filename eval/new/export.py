"""Writes what the index shows the public as the files of a dataset: archive, categories, vectors.

The index keeps a post's clean text and not its HTML, so a line of the archive has that text as preformatted HTML:
cleaned again it is the same text, and an index filled from it is this one.
"""

import html
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import numpy as np
from psycopg.rows import dict_row

from eval.new.files import topic_lines
from service.domain import Category, EmbeddingProfile, TopicId
from service.store.pool import Connection, Pool, transaction
from service.store.profiles import find_profile

ROWS_A_FETCH = 1_000

PostKey = tuple[TopicId, int]
Progress = Callable[[str, int, int], None]
"""Hears (step, done, total)."""

_POSTS = """
SELECT topics.topic_id, topics.title, topics.slug, category_id, archetype, closed, archived, tags,
       post_id, posts.post_number, post_type, user_id, posts.username, posts.created_at, updated_at,
       reply_to_post_number, posts.body
FROM public_posts JOIN posts USING (post_id) JOIN topics ON topics.topic_id = posts.topic_id
ORDER BY topics.topic_id, posts.post_number
"""

_VECTORS = """
SELECT topic_id, post_number, embedding FROM public_posts JOIN embeddings USING (post_id)
WHERE profile_id = %s AND passage = 0 ORDER BY topic_id, post_number
"""

_VECTOR_COUNT = """
SELECT count(*) FROM public_posts JOIN embeddings USING (post_id) WHERE profile_id = %s AND passage = 0
"""


@asynccontextmanager
async def snapshot(pool: Pool) -> AsyncIterator[Connection]:
    """The index as it is at one moment, for as long as it takes to read it."""
    async with transaction(pool) as conn:
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await conn.execute("SET LOCAL statement_timeout = 0")
        yield conn


async def export_topics(conn: Connection, path: Path, progress: Progress) -> frozenset[PostKey]:
    """Write every topic with its public posts; which posts these are."""
    total = await _count(conn, "SELECT count(*) FROM public_posts")
    written: set[PostKey] = set()
    progress("posts", 0, total)
    with topic_lines(path) as write:
        topic: dict[str, Any] | None = None
        async with conn.cursor("posts", row_factory=dict_row) as cursor:
            cursor.itersize = ROWS_A_FETCH
            await cursor.execute(_POSTS)
            async for row in cursor:
                if topic is None or topic["id"] != row["topic_id"]:
                    if topic:
                        write(json.dumps(topic, ensure_ascii=False))
                        progress("posts", len(written), total)
                    topic = _topic(row)
                topic["post_stream"]["posts"].append(_post(row))
                topic["post_stream"]["stream"].append(row["post_id"])
                written.add((row["topic_id"], row["post_number"]))
        if topic:
            write(json.dumps(topic, ensure_ascii=False))
    progress("posts", len(written), total)
    return frozenset(written)


async def export_vectors(conn: Connection, path: Path, profile: EmbeddingProfile, progress: Progress) -> int:
    """Write the vectors of the public posts under this profile; how many. Nothing is written when there are none."""
    profile_id = await find_profile(conn, profile)
    total = await _count(conn, _VECTOR_COUNT, profile_id)
    if not total:
        return 0
    topics, numbers = np.zeros(total, np.int32), np.zeros(total, np.int32)
    matrix = np.zeros((total, profile.dimensions), np.float16)
    done = 0
    async with conn.cursor("vectors") as cursor:
        cursor.itersize = ROWS_A_FETCH
        await cursor.execute(_VECTORS, (profile_id,))
        async for topic_id, number, vector in cursor:
            topics[done], numbers[done], matrix[done] = topic_id, number, vector.to_numpy()
            done += 1
            if done % ROWS_A_FETCH == 0 or done == total:
                progress("vectors", done, total)
    np.savez(path, profile=np.array(profile.model), topic_id=topics, post_number=numbers, embedding=matrix)
    return done


def export_categories(path: Path, categories: Iterable[Category]) -> None:
    """Write the public ones of these categories in the shape of /site.json."""
    shown = [
        {
            "id": one.id,
            "name": one.name,
            "slug": one.slug,
            "parent_category_id": one.parent_id,
            "read_restricted": False,
        }
        for one in categories
        if not one.read_restricted
    ]
    path.write_text(json.dumps({"categories": shown}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def preformatted(body: str) -> str:
    """HTML whose plain text is `body`, which is the plain text of a post."""
    return f"<pre>{html.escape(body, quote=False)}</pre>" if body else ""


def _topic(row: dict[str, Any]) -> dict[str, Any]:
    kept = {key: row[key] for key in ("title", "slug", "category_id", "archetype", "closed", "archived", "tags")}
    return {"id": row["topic_id"], **kept, "visible": True, "post_stream": {"posts": [], "stream": []}}


def _post(row: dict[str, Any]) -> dict[str, Any]:
    kept = {
        key: row[key] for key in ("topic_id", "post_number", "post_type", "user_id", "username", "reply_to_post_number")
    }
    times = {key: row[key].isoformat() for key in ("created_at", "updated_at")}
    return {"id": row["post_id"], **kept, **times, "cooked": preformatted(row["body"])}


async def _count(conn: Connection, query: LiteralString, *values: object) -> int:
    row = await (await conn.execute(query, values)).fetchone()
    return int(row[0]) if row else 0
