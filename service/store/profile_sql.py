"""The SQL that depends on a profile, and the one place that composes SQL.

A partial index needs literals (the profile's id, its dimensions) in its definition and in each query that is to use it.
"""

from collections.abc import Mapping
from functools import lru_cache

from psycopg.sql import SQL, Composed, Identifier, Literal

from service.domain import IndexKind, ProfileId

_NEAREST: Mapping[IndexKind, SQL] = {
    IndexKind.EXACT: SQL(
        "SELECT post_id, embedding <=> {query} AS distance FROM embeddings WHERE profile_id = {id}"
        "{kept} ORDER BY distance LIMIT %(window)s"
    ),
    IndexKind.HNSW_HALFVEC: SQL(
        "SELECT post_id, embedding::halfvec({d}) <=> {query} AS distance FROM embeddings WHERE profile_id = {id}"
        "{kept} ORDER BY embedding::halfvec({d}) <=> {query} LIMIT %(window)s"
    ),
    IndexKind.HNSW_BINARY: SQL(
        "SELECT post_id, embedding <=> {query} AS distance FROM ("
        "SELECT post_id, embedding FROM embeddings WHERE profile_id = {id}"
        "{kept} ORDER BY binary_quantize(embedding)::bit({d}) <~> binary_quantize({query})::bit({d}) LIMIT %(rescored)s"
        ") AS likely ORDER BY distance LIMIT %(window)s"
    ),
}
_OF_CATEGORIES_SINCE = SQL(
    "(%(categories)s::bigint[] IS NULL OR category_id = ANY(%(categories)s))"
    " AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)"
)
_KEPT_IDS = SQL(" AND post_id IN (SELECT post_id FROM posts JOIN topics USING (topic_id) WHERE {})").format(
    _OF_CATEGORIES_SINCE
)
# A scalar subquery is no join: the planner can't reorder it, so each passage that the index gives is looked up, and the
# index goes on until enough were kept (iterative scan).
_KEPT_ONE_BY_ONE = SQL(
    " AND (SELECT {} FROM posts JOIN topics USING (topic_id) WHERE posts.post_id = embeddings.post_id)"
).format(_OF_CATEGORIES_SINCE)
_CANDIDATES = SQL(
    "WITH nearest AS MATERIALIZED ({nearest}),"
    " best AS (SELECT post_id, min(distance) AS distance FROM nearest GROUP BY post_id)"
    " SELECT public_posts.*, 1 - distance AS cosine FROM best JOIN public_posts USING (post_id)"
    " WHERE NOT (topic_id = %(asking_topic)s AND post_number >= %(from_number)s)"
    " ORDER BY distance, post_id LIMIT %(limit)s"
)
_INDEXES: Mapping[IndexKind, SQL] = {
    IndexKind.HNSW_HALFVEC: SQL(
        "CREATE INDEX CONCURRENTLY {name} ON embeddings USING hnsw ((embedding::halfvec({d})) halfvec_cosine_ops)"
        " WHERE profile_id = {id}"
    ),
    IndexKind.HNSW_BINARY: SQL(
        "CREATE INDEX CONCURRENTLY {name} ON embeddings"
        " USING hnsw ((binary_quantize(embedding)::bit({d})) bit_hamming_ops) WHERE profile_id = {id}"
    ),
}


@lru_cache(maxsize=64)
def nearest_statement(profile_id: ProfileId, kind: IndexKind, dimensions: int, *, filtered: bool = False) -> Composed:
    """The public posts of the nearest passages, best passage a post: a candidate's columns and its cosine.

    Parameters: `vector`; `window`, how many passages are looked at (None: all; exact only); `rescored`, the candidates
    by Hamming distance of hnsw_binary; `limit`; `asking_topic` and `from_number`, what is left out (0, 0: nothing);
    where `filtered`, `categories` (ids) and `since`, what is kept (None: whatever).
    """
    query = SQL("%(vector)s::halfvec({d})").format(d=Literal(dimensions))
    kept = (_KEPT_IDS if kind is IndexKind.EXACT else _KEPT_ONE_BY_ONE) if filtered else SQL("")
    nearest = _NEAREST[kind].format(query=query, id=Literal(profile_id), d=Literal(dimensions), kept=kept)
    return _CANDIDATES.format(nearest=nearest)


def create_index_statement(profile_id: ProfileId, kind: IndexKind, dimensions: int) -> Composed:
    """Build the profile's index while writing goes on; not for exact, which has none."""
    name = Identifier(_index_name(profile_id, kind))
    return _INDEXES[kind].format(name=name, id=Literal(profile_id), d=Literal(dimensions))


def drop_index_statement(profile_id: ProfileId, kind: IndexKind) -> Composed:
    """Drop the profile's index of that kind, if there is one, even a half-built one."""
    return SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(Identifier(_index_name(profile_id, kind)))


def _index_name(profile_id: ProfileId, kind: IndexKind) -> str:
    return f"embeddings_{profile_id}_{kind}"
