"""What tests of every kind ask for: a real Postgres (one server a run, one cloned database a test), and a stage."""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg
import pytest
import structlog
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from psycopg import sql

from service.embedded import ensure_running, stop
from service.store.migrate import migrate
from service.store.pool import Pool, open_pool
from tests.fakes.serving import Stage, served

# A busy machine is no fault of the code: what takes how long is for the benches.
hypothesis_settings.register_profile("ariane", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("ariane")

TEMPLATE = "ariane_template"
MEMORY_NEEDED = 8 * 2**30
"""Bytes: several times what the databases of the heaviest tests, which run at once, and the log take."""


def with_database(url: str, name: str) -> str:
    """The same server's address, for another of its databases."""
    before, _, query = url.partition("?")
    return f"{before.rsplit('/', 1)[0]}/{name}?{query}"


@pytest.fixture(autouse=True)
def logger_as_new() -> Iterator[None]:
    """Undo what a command run in this process did to the logger: it keeps the stream of its time."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of our variables: the settings are those that the test gives."""
    for name in [name for name in os.environ if name.startswith("ARIANE_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[Stage, str]]:
    """A server on a real socket and its address; each test puts its own fake on the stage."""
    stage = Stage()
    with served(stage) as url:
        yield stage, url


@pytest.fixture(scope="session")
def databases() -> Path:
    """The folder for the homes of servers: in memory where there is room, since a database is 500 files."""
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).total >= MEMORY_NEEDED
    return memory if roomy else Path(tempfile.gettempdir())


@pytest.fixture
def own_server(databases: Path) -> Iterator[Path]:
    """The home of a Postgres that a test may break."""
    home = databases / f"ariane-chaos-{uuid4().hex[:8]}"
    yield home
    stop(home)
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def server_home(testrun_uid: str, databases: Path) -> Path:
    """Where the run's server lives."""
    return databases / f"ariane-test-{testrun_uid[:12]}"


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    with home.with_suffix(".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clear_after_killed_runs(beside: Path) -> None:
    """Give back what a run that was killed left here: its processes are gone, its server ends when nobody asks."""
    for lock in beside.glob("ariane-test-*.lock"):
        if lock.stat().st_uid != os.geteuid():
            continue
        home = lock.with_suffix("")
        with _one_at_a_time(home):
            if home.exists() and not any(psutil.pid_exists(int(user.name)) for user in (home / "users").glob("*")):
                stop(home)
                shutil.rmtree(home)
                lock.unlink()


@pytest.fixture(scope="session")
def server_url(server_home: Path) -> Iterator[str]:
    """The embedded server of this run, which all its workers share; the last of them stops it."""
    home = server_home
    users = home / "users"
    _clear_after_killed_runs(home.parent)
    with _one_at_a_time(home):
        url = ensure_running(home, idle_stop_seconds=120)
        (users / str(os.getpid())).parent.mkdir(exist_ok=True)
        (users / str(os.getpid())).touch()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("ALTER SYSTEM SET fsync = off")  # nobody needs a test's data after a crash
            conn.execute("SELECT pg_reload_conf()")
    yield url
    with _one_at_a_time(home):
        (users / str(os.getpid())).unlink()
        if not any(users.iterdir()):
            stop(home)
            shutil.rmtree(home)
            home.with_suffix(".lock").unlink()


@pytest.fixture(scope="session")
def template_url(server_url: str, server_home: Path) -> str:
    """A migrated database that nobody connects to, to be cloned."""
    url = with_database(server_url, TEMPLATE)
    with _one_at_a_time(server_home), psycopg.connect(server_url, autocommit=True) as conn:
        if conn.execute("SELECT FROM pg_database WHERE datname = %s", (TEMPLATE,)).rowcount == 0:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
            with ThreadPoolExecutor(1) as thread:  # a test's event loop may be running in this one
                thread.submit(lambda: asyncio.run(migrate(url))).result()
    return url


@contextmanager
def new_database(server_url: str, template: str = TEMPLATE) -> Iterator[str]:
    """A new database, dropped afterwards: a migrated one, of which the fixture `template_url` has made the template."""
    name = f"test_{uuid4().hex[:16]}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        conn.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield with_database(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as conn:
            conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """A new database without any schema."""
    with new_database(server_url, "template1") as url:
        yield url


@pytest.fixture
def database_url(server_url: str, template_url: str) -> Iterator[str]:
    """A new migrated database."""
    with new_database(server_url) as url:
        yield url


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """A pool on a new migrated database."""
    async with open_pool(database_url) as opened:
        yield opened
