"""The embedded Postgres of default use, from its callers' side: start it, find it, stop it.

A detached supervisor (`python -m service.embedded <home>`) owns the server. It holds `supervisor.lock` for its life, so
no stale pid file can mislead anybody; callers take turns through `start.lock`.
"""

import fcntl
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import psycopg

from service.errors import Misconfigured, Transient

if TYPE_CHECKING:
    import psutil

DATA_FOLDER = "postgres-18"
"""Named for the major version: another one cannot read it."""

START_LOCK = "start.lock"
SUPERVISOR_LOCK = "supervisor.lock"
LOG = "supervisor.log"
START_SECONDS = 90.0
STOP_SECONDS = 30.0
INSTEAD = "or set database.url to a Postgres of your own"


def ensure_running(home: Path, *, idle_stop_seconds: float) -> str:
    """The DSN of the server that lives in `home`, started under a new supervisor unless one runs already.

    Safe to call from several processes at once. The supervisor stops the server once no client has been connected
    for `idle_stop_seconds`. Raises Misconfigured (with the mend) when it can't start, Transient when it doesn't answer.
    """
    home = home.absolute()
    _check_home(home)
    with locked(home / START_LOCK) as asked:
        os.utime(asked.name)
        return _running(home) or _start(home, idle_stop_seconds)


def stop(home: Path) -> None:
    """Stop the server of `home` and its supervisor, if they run; raises Transient when that takes too long."""
    home = home.absolute()
    if not (home / SUPERVISOR_LOCK).exists():
        return
    with locked(home / START_LOCK):
        deadline = time.monotonic() + STOP_SECONDS
        while (supervised := _supervised(home)) or postmaster(home / DATA_FOLDER) is not None:
            if time.monotonic() > deadline:
                raise Transient(f"the embedded Postgres in {home} does not stop; see {home / LOG}")
            if not supervised:
                _start(home, STOP_SECONDS)  # a supervisor was killed: the new one adopts its server, and knows its end
            with suppress(ProcessLookupError):
                os.kill(int((home / SUPERVISOR_LOCK).read_text().split()[0]), signal.SIGTERM)
            time.sleep(0.05)


def _check_home(home: Path) -> None:
    if os.geteuid() == 0:
        of_root = Path(pwd.getpwuid(0).pw_dir).resolve()
        if home.resolve().is_relative_to(of_root) and of_root != Path("/"):
            raise Misconfigured(
                f"the embedded Postgres runs as another user, who can't read {home}: set ARIANE_HOME to a folder "
                f"outside {of_root} (as /var/lib/ariane), {INSTEAD}"
            )
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (home / START_LOCK).open("a"), (home / SUPERVISOR_LOCK).open("a"):
            pass
    except OSError as exc:
        raise Misconfigured(
            f"the data folder {home} can't be written ({exc.strerror}): set ARIANE_HOME to a folder of yours, {INSTEAD}"
        ) from exc


@contextmanager
def locked(path: Path) -> Iterator[IO[str]]:
    """Hold the file's exclusive lock, waiting for it; it goes with the process that holds it."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _supervised(home: Path) -> bool:
    with (home / SUPERVISOR_LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def postmaster(data: Path) -> "psutil.Process | None":
    """The server that its pid file names, if a server of this data folder lives under that number."""
    import psutil  # only starting and stopping needs it

    try:
        process = psutil.Process(int((data / "postmaster.pid").read_text().split("\n", 1)[0]))
        return process if process.name() == "postgres" and Path(process.cwd()).samefile(data) else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def _running(home: Path) -> str | None:
    """The DSN of a supervised server that answers, or None when no supervisor is there."""
    deadline = time.monotonic() + START_SECONDS
    while _supervised(home):
        _, _, dsn = (home / SUPERVISOR_LOCK).read_text().strip().partition("\n")
        if dsn:
            try:
                psycopg.connect(dsn, connect_timeout=5).close()
                return dsn
            except psycopg.OperationalError as exc:
                if time.monotonic() > deadline:
                    raise Transient(f"the embedded Postgres in {home} does not answer; see {home / LOG}") from exc
        elif time.monotonic() > deadline:
            raise Transient(f"the embedded Postgres in {home} does not start; see {home / LOG}")
        time.sleep(0.05)
    return None


def _start(home: Path, idle_stop_seconds: float) -> str:
    package_root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "service.embedded", str(home), "--idle-stop-seconds", str(idle_stop_seconds)]
    try:
        started = subprocess.run(  # noqa: S603 - our own module, and a path that is passed as one argument
            command,
            cwd=home,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise Transient(f"the embedded Postgres in {home} takes too long to start; see {home / LOG}") from exc
    if started.returncode != 0:
        raise Misconfigured(started.stderr.strip())
    return started.stdout.strip()
