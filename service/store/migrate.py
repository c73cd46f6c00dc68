"""Migrations: plain SQL files applied in order, each once, frozen by their checksum (docs/adr/0003)."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from psycopg import AsyncConnection

import service
from service.database_address import check_address
from service.errors import Misconfigured
from service.settings import DatabaseSettings
from service.store.pool import MIGRATE_FIRST, Connection, Pool, connection, connection_arguments, translated

PGVECTOR_AT_LEAST = "0.8.4"
"""Older versions have bugs that corrupt an index (pgvector's changelog)."""

_LOCK = 0x4152_4941  # "ARIA": one migration at a time in a database
_QUEUE = "procrastinate/"


def migrations_folder() -> Path:
    """Where the SQL files are: inside the installed package, or beside it in a checkout."""
    package = Path(service.__file__).parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def _files(folder: Path, prefix: str = "") -> dict[str, bytes]:
    return {prefix + path.name: path.read_bytes() for path in sorted(folder.glob("*.sql"))}


def _queue_files() -> dict[str, bytes]:
    # Found without importing procrastinate, which a short command has no other use for.
    spec = find_spec("procrastinate")
    if spec is None or not spec.submodule_search_locations:
        raise Misconfigured("the package procrastinate is missing: install Ariane again")
    return _files(Path(spec.submodule_search_locations[0]) / "sql" / "migrations", _QUEUE)


def _queue_schema() -> str:
    from procrastinate.schema import SchemaManager

    return SchemaManager.get_schema()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def check_files(recorded: dict[str, str], files: dict[str, bytes]) -> None:
    """Raise Misconfigured when an applied file of ours was edited, or is not in this version of the program."""
    for name, digest in sorted(recorded.items()):
        if name not in files:
            raise Misconfigured(f"the database is newer than this program ({name} is applied): update the program")
        if not name.startswith(_QUEUE) and digest != _sha256(files[name]):
            raise Misconfigured(f"migration {name} was edited after it was applied: restore it, and add a new file")


async def _recorded(conn: Connection) -> dict[str, str]:
    rows = await (await conn.execute("SELECT name, sha256 FROM schema_migrations")).fetchall()
    return {str(name): str(digest) for name, digest in rows}


def is_too_old(pgvector: str) -> bool:
    """Whether this version of pgvector is below PGVECTOR_AT_LEAST."""
    return _numbers(pgvector) < _numbers(PGVECTOR_AT_LEAST)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


async def _check_pgvector(conn: Connection) -> None:
    cursor = await conn.execute(
        "SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'vector'"
    )
    row = await cursor.fetchone()
    if row is None:
        raise Misconfigured(
            f"this Postgres has no pgvector: install version {PGVECTOR_AT_LEAST} or later on its server"
        )
    default, installed = row
    if is_too_old(installed or default):
        mend = "update it on the server" + (", then `ALTER EXTENSION vector UPDATE`" if installed else "")
        raise Misconfigured(
            f"pgvector {installed or default} is too old ({PGVECTOR_AT_LEAST} or later is needed): {mend}"
        )


async def _record(conn: Connection, name: str, content: bytes) -> None:
    await conn.execute(
        "INSERT INTO schema_migrations (name, sha256, procrastinate) VALUES (%s, %s, %s)",
        (name, _sha256(content), version("procrastinate") if name.startswith(_QUEUE) else None),
    )


@asynccontextmanager
async def _alone(conn: Connection) -> AsyncIterator[None]:
    await conn.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    try:
        yield
    finally:
        await conn.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


async def migrate(url: str, *, folder: Path | None = None) -> list[str]:
    """Bring the schema up to this version, the queue's included; gives the names of the files applied.

    Safe to run from several processes at once. Raises Misconfigured (pgvector too old, an edited file, a database
    newer than the program, no rights) or Transient.
    """
    ours, queue = _files(folder or migrations_folder()), _queue_files()
    arguments = connection_arguments(DatabaseSettings(), "ariane migrate")
    applied = []
    with translated():
        check_address(url, "database.url")
        async with await AsyncConnection.connect(url, **arguments) as conn, _alone(conn):
            await _check_pgvector(conn)
            await conn.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, sha256 text NOT NULL,"
                " procrastinate text, applied_at timestamptz NOT NULL DEFAULT now())"
            )
            recorded = await _recorded(conn)
            check_files(recorded, ours | queue)
            if not any(name.startswith(_QUEUE) for name in recorded):
                async with conn.transaction():
                    await conn.execute(_queue_schema())
                    for name, content in queue.items():
                        await _record(conn, name, content)
                applied.append(f"{_QUEUE}{version('procrastinate')}")
                recorded |= dict.fromkeys(queue, "")
            for name, content in (queue | ours).items():
                if name not in recorded:
                    async with conn.transaction():
                        await conn.execute(content)
                        await _record(conn, name, content)
                    applied.append(name)
    return applied


async def check_schema(pool: Pool) -> None:
    """Raise Misconfigured when the schema is behind or ahead of this version, or pgvector is too old."""
    files = _files(migrations_folder()) | _queue_files()
    async with connection(pool) as conn:
        await _check_pgvector(conn)
        recorded = await _recorded(conn)
    check_files(recorded, files)
    missing = sorted(files.keys() - recorded.keys())
    if missing:
        raise Misconfigured(f"the database lacks {', '.join(missing)}: {MIGRATE_FIRST}")
