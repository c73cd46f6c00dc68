"""Embedding profiles: their rows, their indexes, and which one answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row

from service.domain import EmbeddingProfile, IndexKind, ProfileId
from service.errors import Misconfigured, Rejected
from service.store.flag_names import EMBEDDING_PROFILE
from service.store.flag_rows import NewValue, put_flag
from service.store.pool import Connection, Pool, connection, transaction
from service.store.profile_sql import create_index_statement, drop_index_statement

MAINTENANCE_MEMORY = "1GB"
"""What an index build may use: an HNSW graph that doesn't fit is built many times slower."""

_LIST = """
SELECT profile_id, model, strategy, version, dimensions, window_tokens, passage_tokens, overlap_tokens, index_kind,
       EXISTS (SELECT FROM flags WHERE flags.name = 'embedding_profile'
               AND value = model || '/' || strategy || '.' || version) AS active,
       (SELECT count(*) FROM embeddings WHERE embeddings.profile_id = profiles.profile_id) AS passages,
       (SELECT count(DISTINCT post_id) FROM embeddings WHERE embeddings.profile_id = profiles.profile_id) AS posts,
       coalesce((SELECT indisvalid FROM pg_index
                 WHERE indexrelid = to_regclass('embeddings_' || profile_id || '_' || index_kind)), false) AS built
FROM embedding_profiles AS profiles ORDER BY profile_id
"""


_ENSURE = """
INSERT INTO embedding_profiles AS stored
    (model, strategy, version, dimensions, window_tokens, passage_tokens, overlap_tokens, index_kind)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (model, strategy, version) DO UPDATE
SET index_kind = excluded.index_kind WHERE stored.index_kind <> excluded.index_kind
"""

_MADE = """
SELECT profile_id, dimensions, window_tokens, passage_tokens, overlap_tokens FROM embedding_profiles
WHERE model = %s AND strategy = %s AND version = %s
"""

DROPPED_AT_ONCE = 5_000
"""Posts whose vectors go in one transaction."""

_DROP_SOME = """
DELETE FROM embeddings WHERE profile_id = %s AND post_id IN (
    SELECT DISTINCT post_id FROM embeddings WHERE profile_id = %s ORDER BY post_id LIMIT %s
)
"""

_DROP_REST = (
    "DELETE FROM embeddings WHERE profile_id = %s",
    "DELETE FROM topic_embeddings WHERE profile_id = %s",
    "DELETE FROM embedding_failures WHERE profile_id = %s",
    "DELETE FROM embedding_references WHERE profile_id = %s",
    "DELETE FROM embedding_profiles WHERE profile_id = %s",
)


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """A profile, what is stored under it, and whether the index of its kind is built (an exact one needs none)."""

    id: ProfileId
    profile: EmbeddingProfile
    active: bool
    posts: int
    passages: int
    index_built: bool


async def find_profile(conn: Connection, profile: EmbeddingProfile) -> ProfileId | None:
    """The id of the profile's row, or None when nothing was ever stored under it."""
    cursor = await conn.execute(
        "SELECT profile_id FROM embedding_profiles WHERE model = %s AND strategy = %s AND version = %s",
        (profile.model, profile.strategy, profile.version),
    )
    row = await cursor.fetchone()
    return None if row is None else ProfileId(row[0])


async def ensure_profile(conn: Connection, profile: EmbeddingProfile) -> ProfileId:
    """The id of the profile's row, made if it is new; its index kind may change, until it is activated again.

    Raises Misconfigured when a profile of this name has other dimensions, another window or other passages.
    """
    made = (profile.dimensions, profile.window_tokens, profile.passage_tokens, profile.overlap_tokens)
    await conn.execute(_ENSURE, (profile.model, profile.strategy, profile.version, *made, profile.index_kind))
    cursor = await conn.execute(_MADE, (profile.model, profile.strategy, profile.version))
    row = await cursor.fetchone()
    if row is None or row[1:] != made:
        words = "dimensions {}, window_tokens {}, passage_tokens {}, overlap_tokens {}"
        stored = words.format(*row[1:]) if row else "nothing"
        raise Misconfigured(
            f"the profile {profile.name} is stored with {stored}, not {words.format(*made)}: give the changed one a new"
            " version"
        )
    return ProfileId(row[0])


async def named_profile(conn: Connection, name: str) -> StoredProfile:
    """The profile of this name as it is stored; raises Rejected (404) with the names there are."""
    profiles = {one.profile.name: one for one in await _profiles(conn)}
    if name not in profiles:
        raise Rejected(f"there is no profile {name!r}: {', '.join(profiles) or 'none is stored'}", status=404)
    return profiles[name]


class ProfileStore:
    """Lists profiles, builds their indexes and lets one of them answer."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def ensure_profile(self, profile: EmbeddingProfile) -> ProfileId:
        """The id of the profile's row, made if it is new; raises Misconfigured when it was stored otherwise."""
        async with transaction(self._pool) as conn:
            return await ensure_profile(conn, profile)

    async def list_profiles(self) -> list[StoredProfile]:
        """Every profile, oldest first."""
        async with connection(self._pool) as conn:
            return await _profiles(conn)

    async def active_profile(self) -> StoredProfile | None:
        """The profile that embedding_profile was turned to, or None while it is as models.embedder says."""
        return next((one for one in await self.list_profiles() if one.active), None)

    async def build_index(self, name: str) -> None:
        """Build the index of the profile's kind while reading and writing go on.

        Raises Rejected with the names there are.
        """
        async with connection(self._pool) as conn:
            chosen = await named_profile(conn, name)
            async with _unhurried(conn):
                await _build_index(conn, chosen)

    async def activate(self, name: str, *, by: str = "ariane", reason: str = "") -> None:
        """Build the index of the profile's kind, then let the profile answer, however few posts it covers.

        For people there is service.wiring.activation.turn. Raises Rejected with the names there are.
        """
        await self.build_index(name)
        async with transaction(self._pool) as conn:
            await put_flag(conn, NewValue(EMBEDDING_PROFILE, name, by, reason))

    async def drop(self, name: str) -> StoredProfile:
        """Drop all that is stored under a profile that isn't active, and its index; what it was.

        Vectors go in many short transactions, so that nobody waits: after an interruption, call it again. Raises
        Rejected for the active one, and for a name that isn't stored, with those there are.
        """
        async with connection(self._pool) as conn, _unhurried(conn):
            chosen = await named_profile(conn, name)
            if chosen.active:
                raise Rejected(f"the profile {name!r} is the active one: activate another first", status=409)
            for kind in IndexKind:
                await conn.execute(drop_index_statement(chosen.id, kind))
            while (await conn.execute(_DROP_SOME, (chosen.id, chosen.id, DROPPED_AT_ONCE))).rowcount:
                pass
            async with conn.transaction():
                for statement in _DROP_REST:
                    await conn.execute(statement, (chosen.id,))
        return chosen


async def _profiles(conn: Connection) -> list[StoredProfile]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_LIST)
        return [_stored(row) async for row in cursor]


def _stored(row: dict[str, Any]) -> StoredProfile:
    profile = EmbeddingProfile(
        row["model"],
        row["strategy"],
        row["version"],
        row["dimensions"],
        row["window_tokens"],
        IndexKind(row["index_kind"]),
        passage_tokens=row["passage_tokens"],
        overlap_tokens=row["overlap_tokens"],
    )
    built = row["built"] or profile.index_kind is IndexKind.EXACT
    return StoredProfile(row["profile_id"], profile, row["active"], row["posts"], row["passages"], built)


@asynccontextmanager
async def _unhurried(conn: Connection) -> AsyncIterator[None]:
    """No statement timeout and room for a build; not SET LOCAL, since CONCURRENTLY allows no transaction."""
    limits = await (await conn.execute("SELECT current_setting('statement_timeout')")).fetchone()
    await conn.execute(
        "SELECT set_config('statement_timeout', '0', false), set_config('maintenance_work_mem', %s, false)",
        (MAINTENANCE_MEMORY,),
    )
    try:
        yield
    finally:
        await conn.execute("RESET maintenance_work_mem")
        await conn.execute("SELECT set_config('statement_timeout', %s, false)", limits)


async def _build_index(conn: Connection, stored: StoredProfile) -> None:
    kind = stored.profile.index_kind
    for other in IndexKind:
        if other is not kind or not stored.index_built:  # of a former kind, or left invalid by an interrupted build
            await conn.execute(drop_index_statement(stored.id, other))
    if not stored.index_built:
        await conn.execute(create_index_statement(stored.id, kind, stored.profile.dimensions))
