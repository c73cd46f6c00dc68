"""The index that a dataset is measured on: a database of its own on the configured server, filled once, then reused."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, LiteralString

from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

import service
from eval.datasets import Dataset
from service.discourse.names import folded_name
from service.domain import IndexKind
from service.ingest.archive import embedded_by, read_categories
from service.ingest.backfill import Backfill, backfill_archive, embed_rest
from service.ingest.eligibility import IndexRules
from service.settings import Settings
from service.store.migrate import migrate, migrations_folder
from service.store.pool import Connection, connection_arguments, translated
from service.store.profiles import ProfileStore
from service.wiring.answering import Answering, open_answering
from service.wiring.configuration import embedding_profile
from service.wiring.database import database_url

NAME = "ariane-eval"
COMPLETE = "ariane: complete"
"""The comment on a database that holds everything."""

_DECIDING = ("lexer.py", "ingest/*.py", "discourse/*.py")
"""The modules that decide what is stored of an archive: when one changes, the index is made anew."""


@asynccontextmanager
async def open_index(
    settings: Settings,
    dataset: Dataset,
    *,
    fresh: bool = False,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
    opened: Callable[[Answering], None] = lambda _: None,
) -> AsyncIterator[Answering]:
    """The stages of `settings` over an index of exactly this dataset; `fresh` makes it anew.

    A database that isn't complete is filled first, with the dataset's vectors where it has any; `progress` hears
    (step, done, total), and `opened` gets the stages before that, for work that can be done meanwhile. Two runs never
    fill it at once: the second waits, and `say` hears why. Raises Rejected (a file at fault), Misconfigured or
    Transient.
    """
    server = await database_url(settings)
    profile = replace(embedding_profile(settings.models), cosine_floor=1.0)  # no index depends on the floor
    rules = _rules(settings)
    arguments = connection_arguments(settings.database, NAME)
    with translated():
        holder = await AsyncConnection.connect(server, **arguments)
    async with holder:
        # The locks are those of the database that is configured: an index is of its runs alone.
        made_of = _sha(profile, sorted(rules.bots), rules.index_banners, holder.info.dbname)
        family = f"eval_{dataset.corpus[:16]}_{made_of}"
        name = f"{family}_{_program()}"
        url = make_conninfo(server, dbname=name)
        inside = settings.model_copy(
            update={"database": settings.database.model_copy(update={"url": SecretStr(url)})},
        )
        filling = await _hold(holder, name, fresh=fresh, say=say)
        if filling:
            with translated():
                await _create(holder, name, family, fresh=fresh)
            await migrate(url)
        async with open_answering(inside, NAME) as at:
            opened(at)
            if filling:
                await _fill(at, dataset, rules, progress)
                with translated():
                    await _settle(url, arguments)
                    await _mark_complete(holder, name)
                    await _share(holder, name)
            yield at


async def _hold(holder: Connection, name: str, *, fresh: bool, say: Callable[[str], None]) -> bool:
    """Hold the database while it is used, alone where it has to be filled; tells which."""
    key = lock_key(name)
    with translated():
        if not fresh:
            if not await _asked(holder, "SELECT pg_try_advisory_lock_shared(%s)", key):
                say("another run is filling the index of this dataset: waiting for it")
                await holder.execute("SELECT pg_advisory_lock_shared(%s)", (key,))
            if await _is_complete(holder, name):
                return False
            await holder.execute("SELECT pg_advisory_unlock_shared(%s)", (key,))
        if not await _asked(holder, "SELECT pg_try_advisory_lock(%s)", key):
            say("another run is using the index of this dataset: waiting for it")
            await holder.execute("SELECT pg_advisory_lock(%s)", (key,))
        if not fresh and await _is_complete(holder, name):
            await _share(holder, name)
            return False
        return True


async def _share(holder: Connection, name: str) -> None:
    """Let others use the database too, which this session held alone."""
    await holder.execute("SELECT pg_advisory_lock_shared(%s)", (lock_key(name),))
    await holder.execute("SELECT pg_advisory_unlock(%s)", (lock_key(name),))


async def _create(holder: Connection, name: str, family: str, *, fresh: bool) -> None:
    """Make the database unless an interrupted run left one to go on with; older programs' ones go, if they are free."""
    cursor = await holder.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (f"{family}_",))
    there = {str(row[0]) for row in await cursor.fetchall()}
    if fresh and name in there:
        await _drop(holder, name)
        there.remove(name)
    for old in sorted(there - {name}):
        if await _asked(holder, "SELECT pg_try_advisory_lock(%s)", lock_key(old)):
            await _drop(holder, old)
            await holder.execute("SELECT pg_advisory_unlock(%s)", (lock_key(old),))
    if name not in there:
        identifier = sql.Identifier(name)
        await holder.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(identifier))
        # Nothing is lost by it: the mark of completeness is written through, and all that was before it.
        await holder.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(identifier))


async def _drop(holder: Connection, name: str) -> None:
    await holder.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


async def _settle(url: str, arguments: Mapping[str, Any]) -> None:
    """Do now what autovacuum would do after a while, and keep it off: each run has the same plans.

    Until it is done each posting found costs a look at its row. Done later, its statistics change plans, and with them
    the order in which scores are summed: a run before and one after would differ in the last digit.
    """
    async with await AsyncConnection.connect(url, **arguments) as conn:
        tables = await (await conn.execute("SELECT schemaname, relname FROM pg_stat_user_tables")).fetchall()
        for table in tables:
            await conn.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(sql.Identifier(*table)))
        await conn.execute("VACUUM ANALYZE")


async def _is_complete(holder: Connection, name: str) -> bool:
    found = "SELECT shobj_description(oid, 'pg_database') = %s FROM pg_database WHERE datname = %s"
    row = await (await holder.execute(found, (COMPLETE, name))).fetchone()
    return bool(row and row[0])


async def _mark_complete(holder: Connection, name: str) -> None:
    comment = sql.SQL("COMMENT ON DATABASE {} IS {}")
    await holder.execute(comment.format(sql.Identifier(name), sql.Literal(COMPLETE)))


async def _asked(holder: Connection, question: LiteralString, key: int) -> bool:
    row = await (await holder.execute(question, (key,))).fetchone()
    return bool(row and row[0])


async def _fill(at: Answering, dataset: Dataset, rules: IndexRules, progress: Callable[[str, int, int], None]) -> None:
    filling = Backfill(at.corpus, at.corpus, at.embedder, rules, progress)
    categories = read_categories(dataset.site) if dataset.site else None
    vectors = dataset.vectors
    if vectors and embedded_by(vectors) != at.embedder.profile.model:
        vectors = None  # another model's: a forum tries its own models on a dataset that brings vectors
    await backfill_archive(dataset.topics, categories=categories, vectors=vectors, at=filling)
    if vectors:
        await embed_rest(filling)  # what the dataset's vectors miss, as the worker would
    if at.embedder.profile.index_kind is not IndexKind.EXACT:
        await ProfileStore(at.pool).activate(at.embedder.profile.name)


def _rules(settings: Settings) -> IndexRules:
    bots = (settings.forum.bot_username, *settings.forum.known_bots)
    return IndexRules(frozenset(folded_name(name) for name in bots), settings.forum.index_banners)


def _program() -> str:
    package = Path(service.__file__).parent
    files = [path for pattern in _DECIDING for path in package.glob(pattern)] + list(migrations_folder().glob("*.sql"))
    return _sha(*((path.name, path.read_bytes()) for path in sorted(files)))


def _sha(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def lock_key(name: str) -> int:
    """The advisory lock of a database of evaluation, which whoever uses it holds; a copy has its own by its own name.

    Taken in the database that open_index begins in, that of `service.wiring.database.database_url`.
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
