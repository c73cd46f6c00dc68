"""A forum of made posts around given vectors, stored as the index stores real ones."""

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from service.bench.vectors import SEED, Vectors
from service.domain import ProfileId
from service.store.pool import Connection

PROFILE_ID = ProfileId(1)
KEPT_CATEGORY = 2
BODY_WORDS = 80

_PUT_TOPICS = """
INSERT INTO topics (topic_id, title, slug, category_id, archetype, visible, closed, archived, deleted, tags)
SELECT id, 'Topic ' || id, 'topic-' || id, category, 'regular', true, false, false, false, '{}'
FROM unnest(%s::bigint[], %s::bigint[]) AS given (id, category)
"""

_PUT_POSTS = """
INSERT INTO posts (post_id, topic_id, post_number, post_type, username, created_at, updated_at, body, length)
SELECT id, topic_id, row_number() OVER (PARTITION BY topic_id ORDER BY id), 1, 'member', now(), now(),
       repeat('words ', %s), %s
FROM unnest(%s::bigint[]) WITH ORDINALITY AS given (topic_id, id) ORDER BY id
"""


async def fill(conn: Connection, vectors: Vectors, category_percent: float) -> NDArray[np.bool_]:
    """Store post n + 1 with vector n, without index; which posts are in the category of that share of the topics."""
    topics = np.unique(vectors.topics)
    kept = np.random.default_rng(SEED).random(len(topics)) < category_percent / 100
    categories = np.where(kept, KEPT_CATEGORY, 1)
    await conn.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    await conn.execute("INSERT INTO categories VALUES (1, 'All', 'all', NULL, false), (2, 'Kept', 'kept', NULL, false)")
    await conn.execute(_PUT_TOPICS, (topics.tolist(), categories.tolist()))
    await conn.execute(_PUT_POSTS, (BODY_WORDS, BODY_WORDS, vectors.topics.tolist()))
    await conn.execute(
        "INSERT INTO embedding_profiles (model, strategy, version, dimensions, window_tokens, index_kind)"
        " VALUES ('bench', 100, 1, %s, 512, 'exact')",
        (vectors.stored.shape[1],),
    )
    columns = "COPY embeddings (profile_id, post_id, passage, digest, embedding) FROM STDIN (FORMAT BINARY)"
    async with conn.cursor() as writer, writer.copy(columns) as copy:
        copy.set_types(["int2", "int8", "int2", "bytea", "halfvec"])
        for number, vector in enumerate(vectors.stored, start=1):
            await copy.write_row((PROFILE_ID, number, 0, b"", HalfVector(vector)))
    await conn.execute("VACUUM ANALYZE posts, topics, embeddings")
    await conn.execute("SELECT pg_prewarm(name::regclass) FROM unnest(%s::text[]) AS name", (["embeddings", "posts"],))
    in_category = np.zeros(int(topics.max()) + 1, dtype=np.bool_)
    in_category[topics] = kept
    return in_category[vectors.topics]
