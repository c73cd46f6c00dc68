"""The embedded Postgres: found, started once, adopted, stopped when idle, and its refusals explained."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from service.embedded import DATA_FOLDER, SUPERVISOR_LOCK, ensure_running, postmaster, stop
from service.errors import Misconfigured

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def home(databases: Path) -> Iterator[Path]:
    """A home outside any private folder, as root's server runs as another user."""
    folder = Path(tempfile.mkdtemp(prefix="ariane-embedded-", dir=databases))
    yield folder
    stop(folder)
    shutil.rmtree(folder)


def supervisor_of(home: Path) -> int:
    return int((home / SUPERVISOR_LOCK).read_text().split()[0])


def answer(dsn: str, query: str = "SELECT 1") -> str:
    with psycopg.connect(dsn) as conn:
        row = conn.execute(query.encode()).fetchone()
        return str(row[0]) if row else ""


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Without an init process that reaps, an orphan that has ended stays as a zombie.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_callers_at_once_get_one_server(home: Path) -> None:
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: ensure_running(home, idle_stop_seconds=300), range(4)))
    assert len(set(found)) == 1
    assert answer(found[0], "SHOW shared_buffers") == "256MB"
    assert answer(found[0], "SHOW fsync") == "on"
    assert answer(found[0], "SELECT current_database()") == "ariane"
    assert (home / DATA_FOLDER).stat().st_mode & 0o077 == 0


def test_another_process_finds_it_and_everything_lies_in_its_home(home: Path) -> None:
    dsn = ensure_running(home, idle_stop_seconds=300)
    program = (
        "import sys, pathlib; from service.embedded import ensure_running;"
        "print(ensure_running(pathlib.Path(sys.argv[1]), idle_stop_seconds=1))"
    )
    second = subprocess.run([sys.executable, "-c", program, str(home)], capture_output=True, text=True, check=True)
    assert second.stdout.strip() == dsn
    assert answer(dsn, "SHOW data_directory").startswith(str(home))
    assert answer(dsn, "SHOW unix_socket_directories").startswith(str(home))
    assert {path.name for path in home.iterdir()} <= {
        DATA_FOLDER, "run", "start.lock", SUPERVISOR_LOCK, "supervisor.log",
    }  # fmt: skip


def test_a_killed_supervisor_leaves_a_server_that_is_adopted(home: Path) -> None:
    dsn = ensure_running(home, idle_stop_seconds=300)
    former, server = supervisor_of(home), postmaster(home / DATA_FOLDER)
    assert server is not None
    os.kill(former, signal.SIGKILL)
    wait_until(lambda: gone(former))
    assert ensure_running(home, idle_stop_seconds=300) == dsn
    adopted = postmaster(home / DATA_FOLDER)
    assert adopted is not None
    assert (adopted.pid, supervisor_of(home) != former) == (server.pid, True)


def test_a_killed_server_is_started_again_with_its_data(home: Path) -> None:
    dsn = ensure_running(home, idle_stop_seconds=300)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 42 AS value")
    server = postmaster(home / DATA_FOLDER)
    assert server is not None
    server.kill()
    wait_until(lambda: gone(server.pid))
    assert answer(ensure_running(home, idle_stop_seconds=300), "SELECT value FROM kept") == "42"


def test_stop_ends_both_processes_and_may_be_said_twice(home: Path) -> None:
    dsn = ensure_running(home, idle_stop_seconds=300)
    supervisor, server = supervisor_of(home), postmaster(home / DATA_FOLDER)
    assert server is not None
    stop(home)
    stop(home)
    assert gone(server.pid)
    wait_until(lambda: gone(supervisor))
    with pytest.raises(psycopg.OperationalError):
        answer(dsn)


def test_stop_also_ends_a_server_without_a_supervisor(home: Path) -> None:
    ensure_running(home, idle_stop_seconds=300)
    os.kill(supervisor_of(home), signal.SIGKILL)
    server = postmaster(home / DATA_FOLDER)
    assert server is not None
    stop(home)
    assert gone(server.pid)


def test_an_unused_server_stops_by_itself_and_a_used_one_does_not(home: Path) -> None:
    dsn = ensure_running(home, idle_stop_seconds=1)
    server = postmaster(home / DATA_FOLDER)
    assert server is not None
    with psycopg.connect(dsn) as conn:
        time.sleep(3)
        assert conn.execute("SELECT 1").fetchone() == (1,)
    wait_until(lambda: gone(server.pid))
    assert answer(ensure_running(home, idle_stop_seconds=300)) == "1"


def test_a_stale_pid_file_misleads_nobody(home: Path) -> None:
    ensure_running(home, idle_stop_seconds=300)
    stop(home)
    (home / SUPERVISOR_LOCK).write_text(f"{os.getpid()}\npostgresql://nowhere")
    (home / DATA_FOLDER / "postmaster.pid").write_text(f"{os.getpid()}\n{home}\n1\n5432\n{home}\n\n1 1\nready\n")
    assert postmaster(home / DATA_FOLDER) is None
    stop(home)
    assert answer(ensure_running(home, idle_stop_seconds=300)) == "1"


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    ensure_running(home, idle_stop_seconds=300)
    stop(home)
    broken = home / DATA_FOLDER / "postgresql.auto.conf"
    settings = broken.read_text()
    broken.write_text(settings + "nonsense = 1\n")
    with pytest.raises(Misconfigured, match=r"FATAL: .* contains errors"):
        ensure_running(home, idle_stop_seconds=300)
    broken.write_text(settings)
    assert answer(ensure_running(home, idle_stop_seconds=300)) == "1"


def test_an_interrupted_first_start_is_begun_again(databases: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ariane-embedded-", dir=databases) as folder:
        half = Path(folder) / DATA_FOLDER
        half.mkdir()
        (half / "PG_VERSION").write_text("18\n")
        try:
            assert answer(ensure_running(Path(folder), idle_stop_seconds=300)) == "1"
        finally:
            stop(Path(folder))


def test_a_home_too_deep_for_a_socket_works(home: Path) -> None:
    deep = home.with_name(home.name + "-deep") / ("d" * 60) / ("e" * 60)
    try:
        assert answer(ensure_running(deep, idle_stop_seconds=300)) == "1"
    finally:
        stop(deep)
        shutil.rmtree(deep.parents[1])


def test_a_home_that_is_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match="set ARIANE_HOME to a folder of yours, or set database"):
        ensure_running(tmp_path / "file" / "home", idle_stop_seconds=1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's home is closed to the server's user")
def test_roots_own_folder_is_refused() -> None:
    with pytest.raises(Misconfigured, match="set ARIANE_HOME to a folder outside"):
        ensure_running(Path(pwd.getpwuid(0).pw_dir) / "ariane", idle_stop_seconds=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_without_permission_is_explained() -> None:
    with pytest.raises(Misconfigured, match="can't be written"):
        ensure_running(Path("/ariane-nobody-may-write-here"), idle_stop_seconds=1)
