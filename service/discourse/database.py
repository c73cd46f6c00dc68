"""Reads a forum's own Postgres: read-only, one snapshot at a time, and nothing that the public doesn't see."""

import math
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncServerCursor, IsolationLevel
from psycopg.rows import TupleRow

from service.database_address import check_address
from service.discourse import forum_sql
from service.discourse.embeddings import EmbeddedText, EmbeddingDefinition
from service.discourse.forum_rows import embedded_of, post_of, vector_from_text
from service.discourse.names import folded_name
from service.discourse.shapes import categories_from_json
from service.domain import Category, Post, PostId, Topic, TopicId, UserId, Vector
from service.errors import Misconfigured, Rejected, Transient

T = TypeVar("T")

ROWS_A_BATCH = 500
_TRANSIENT = ("08", "25P03", "40", "53", "55", "57", "58")
"""SQLSTATEs, or their classes, that another try may mend: lost connections, idle too long in a transaction, conflicts,
no resources, cancelled, shut down."""


class ForumDatabase:
    """One connection to the forum's database; `bots` and `opted_out` wrote what is never a source.

    Bots are told by their folded usernames, members who opted out by those or by their ids.
    """

    def __init__(
        self,
        conn: AsyncConnection[TupleRow],
        *,
        bots: Collection[str],
        banners: bool,
        opted_out: Collection[UserId | str] = frozenset(),
    ) -> None:
        self._conn = conn
        self._bots = bots
        self._opted_out = opted_out
        self._banners = banners

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["Snapshot"]:
        """The forum at one moment; raises Transient or Misconfigured, here and while it is read."""
        async with AsyncExitStack() as stack:
            with _translated():
                await stack.enter_async_context(self._conn.transaction())
            usernames = await _rows(self._conn, forum_sql.USERNAMES)
            bots = [user_id for user_id, name in usernames if folded_name(name or "") in self._bots]
            named = {user_id for user_id, name in usernames if folded_name(name or "") in self._opted_out}
            opted_out = sorted(named | {one for one in self._opted_out if not isinstance(one, str)})
            grouped = await _has(self._conn, "tag_group_memberships", "tag_group_permissions")
            hidden = [row[0] for row in await _rows(self._conn, forum_sql.HIDDEN_TAGS)] if grouped else []
            rules = {"bots": bots, "opted_out": opted_out, "banners": self._banners, "hidden_tags": hidden}
            yield Snapshot(self._conn, rules)


class Snapshot:
    """Matches `service.ingest.forum_database.ForumSnapshot`."""

    def __init__(self, conn: AsyncConnection[TupleRow], rules: dict[str, object]) -> None:
        self._conn = conn
        self._rules = rules

    async def categories(self) -> list[Category]:
        """The public ones."""
        names = ("id", "name", "slug", "parent_category_id", "read_restricted")
        found = [dict(zip(names, row, strict=True)) for row in await _rows(self._conn, forum_sql.CATEGORIES)]
        return categories_from_json({"categories": found})

    async def refusals(self) -> dict[str | None, int]:
        """How many posts the public-safe predicate refuses, by reason, and under None how many it lets through."""
        return dict(await _rows(self._conn, forum_sql.REFUSALS, self._rules))

    async def posts(self, after: PostId) -> AsyncIterator[tuple[list[tuple[Post, Topic]], list[Rejected], PostId]]:
        """Batches of public posts above the id, with their topics, the rows that can't be read, and their last id."""
        async for batch in self._batches(forum_sql.PUBLIC_POSTS, {"after": after}):
            found, faults = _readable(batch, post_of)
            yield found, faults, PostId(batch[-1][0])

    async def public_among(self, post_ids: Sequence[PostId]) -> set[PostId]:
        """Those that the public sees."""
        values = {"post_ids": list(post_ids), **self._rules}
        return {row[0] for row in await _rows(self._conn, forum_sql.PUBLIC_AMONG, values)}

    async def public_topics_among(self, topic_ids: Sequence[TopicId]) -> set[TopicId]:
        """Those that the public sees."""
        values = {"topic_ids": list(topic_ids), **self._rules}
        return {row[0] for row in await _rows(self._conn, forum_sql.PUBLIC_TOPICS_AMONG, values)}

    async def newest_post(self) -> PostId:
        """The highest id there is."""
        [(newest,)] = await _rows(self._conn, "SELECT coalesce(max(id), 0) FROM posts")
        return PostId(newest)

    async def definitions(self) -> list[EmbeddingDefinition]:
        """The forum's embedding models, none where it keeps no vectors."""
        if not await _has(self._conn, "embedding_definitions", "ai_posts_embeddings"):
            return []
        return [EmbeddingDefinition(*row) for row in await _rows(self._conn, forum_sql.DEFINITIONS)]

    async def embedded_texts(self, model: EmbeddingDefinition) -> AsyncIterator[list[EmbeddedText]]:
        """Batches of the public posts that have a vector of this model, strategy 1 version 1; broken rows left out."""
        async for batch in self._batches(forum_sql.EMBEDDED_TEXTS, _of(model)):
            yield _readable(batch, embedded_of)[0]

    async def vectors(self, model: EmbeddingDefinition, post_ids: Sequence[PostId]) -> dict[PostId, Vector | None]:
        """The vectors of these posts, if they are public; None for one that isn't made of finite numbers."""
        values = {"post_ids": list(post_ids), **_of(model), **self._rules}
        return {row[0]: vector_from_text(row[1]) for row in await _rows(self._conn, forum_sql.VECTORS, values)}

    async def _batches(self, query: LiteralString, values: dict[str, Any]) -> AsyncIterator[list[TupleRow]]:
        async with self._conn.cursor(name="ariane_backfill") as cursor:
            with _translated():
                await cursor.execute(query, {**self._rules, **values})
            while batch := await _next(cursor):
                yield batch


@asynccontextmanager
async def open_forum_database(
    url: str,
    *,
    bots: Collection[str],
    banners: bool,
    statement_timeout_seconds: float,
    connect_timeout_seconds: int,
    opted_out: Collection[UserId | str] = frozenset(),
) -> AsyncIterator[ForumDatabase]:
    """The forum's database, of which nothing can be changed; raises Misconfigured or Transient."""
    async with AsyncExitStack() as stack:
        with _translated():
            check_address(url, "backfill.forum_database_url")
            connecting = AsyncConnection.connect(
                url, autocommit=True, connect_timeout=connect_timeout_seconds, application_name="ariane-backfill"
            )
            conn = await stack.enter_async_context(await connecting)
            await conn.execute(
                "SELECT set_config('default_transaction_read_only', 'on', false),"
                " set_config('statement_timeout', %s, false), set_config('search_path', 'public', false)",
                (str(math.ceil(statement_timeout_seconds * 1000)),),
            )
            await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            await conn.set_read_only(True)
        yield ForumDatabase(conn, bots=bots, banners=banners, opted_out=opted_out)


def _readable(rows: Sequence[TupleRow], read: Callable[[TupleRow], T]) -> tuple[list[T], list[Rejected]]:
    """What can be read of the rows, and the fault of each that can't: one bad row sinks none."""
    found: list[T] = []
    faults: list[Rejected] = []
    for row in rows:
        try:
            found.append(read(row))
        except Rejected as fault:
            faults.append(fault)
    return found, faults


async def _rows(
    conn: AsyncConnection[TupleRow], query: LiteralString, values: Mapping[str, object] | None = None
) -> list[TupleRow]:
    with _translated():
        return await (await conn.execute(query, values)).fetchall()


async def _next(cursor: AsyncServerCursor[TupleRow]) -> list[TupleRow]:
    with _translated():
        return await cursor.fetchmany(ROWS_A_BATCH)


async def _has(conn: AsyncConnection[TupleRow], *tables: str) -> bool:
    [(has,)] = await _rows(conn, forum_sql.HAS_TABLES, {"tables": list(tables)})
    return bool(has)


def _of(model: EmbeddingDefinition) -> dict[str, object]:
    return {"model_id": model.id, "model_version": model.version}


@contextmanager
def _translated() -> Iterator[None]:
    """Raise our errors in place of psycopg's: all that is neither an outage nor a conflict is for a person to mend."""
    try:
        yield
    except psycopg.Error as exc:
        words = " ".join(str(exc).partition("\n")[0].split())  # the rest quotes rows
        code = exc.sqlstate or ""
        lost = not code and isinstance(exc, psycopg.OperationalError)
        if code.startswith(_TRANSIENT) or (lost and "authentication" not in words and "does not exist" not in words):
            raise Transient(f"the forum's database can't do this now: {words}") from exc
        raise Misconfigured(f"the forum's database can't be read (backfill.forum_database_url): {words}") from exc
