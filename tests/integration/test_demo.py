"""The demo as a newcomer meets it: one answered question, a clean end, nothing left behind, whatever interrupts it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from pydantic import SecretStr

from service.demo.plan import Plan, make_plan
from service.demo.processes import free_ports
from service.embedded import stop
from service.errors import Misconfigured
from service.settings import Settings, load_settings

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

START_SECONDS = 180.0
READY = "Ctrl-C stops everything."
FORUM = re.compile(r"Open (http://127\.0\.0\.1:\d+),")
REPLY = re.compile(r"posted \d+ s ago: http://127\.0\.0\.1:\d+/t/[a-z0-9-]+/\d+/2$", re.MULTILINE)


@pytest.fixture(scope="module")
def home(databases: Path) -> Iterator[Path]:
    """One home for all: the first start embeds the demo forum. Outside private folders, for root's Postgres."""
    folder = Path(tempfile.mkdtemp(prefix="ariane-demo-", dir=databases))
    yield folder
    stop(folder / "demo")
    shutil.rmtree(folder)


class Demo:
    """A running `ariane demo` and what it says."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def wait_ready(self) -> None:
        wait_until(lambda: READY in self.said() or self.process.poll() is not None, START_SECONDS)
        assert self.process.poll() is None, self.said()

    def forum(self) -> str:
        found = FORUM.search(self.said())
        assert found is not None
        return found[1]


@contextmanager
def demo(home: Path, *options: str, database_url: str = "") -> Iterator[Demo]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ARIANE_")}
    env |= {"ARIANE_HOME": str(home), "ARIANE_LOG__LEVEL": "warning", "COLUMNS": "80"}
    if database_url:
        env["ARIANE_DATABASE__URL"] = database_url
    log = home / "said.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "service", "demo", *options], env=env, stdout=said, stderr=said
        )
    try:
        yield Demo(process, log)
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def processes_of(home: Path) -> list[str]:
    """The command lines of what runs for this home: the demo's children, its Postgres and its supervisor."""
    found = []
    for process in psutil.process_iter():
        try:
            words, env = process.cmdline(), process.environ()
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if str(home) in " ".join(words) or env.get("ARIANE_HOME", "").startswith(str(home)):
            found.append(" ".join(words))
    return found


def test_once_ends_after_an_answer_and_touches_no_other_database(home: Path) -> None:
    with demo(home, "--once", database_url="postgresql://nobody@127.0.0.1:1/real") as running:
        assert running.process.wait(START_SECONDS) == 0, running.said()
    said = running.said()
    assert "218 indexed" in said
    assert "0 left to embed" in said
    assert REPLY.search(said)
    assert re.search(r"zone (normal|weak)", said)
    assert max(map(len, said.splitlines())) < 200
    assert processes_of(home) == []


def test_ports_that_are_taken_are_replaced_and_ctrl_c_stops_everything(home: Path) -> None:
    with ExitStack() as taken:
        for port in (4200, 4300, 4301):
            held = taken.enter_context(socket.socket())
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                held.bind(("127.0.0.1", port))
                held.listen()
            except OSError:
                continue  # somebody else has it: taken all the same
        started = time.monotonic()
        with demo(home) as running:
            running.wait_ready()
            assert time.monotonic() - started < 60  # a second start embeds only what is new
            assert not running.forum().endswith(":4200")
            assert httpx.get(running.forum()).status_code == 200
            second = subprocess.run(
                [sys.executable, "-m", "service", "demo"],
                env=os.environ | {"ARIANE_HOME": str(home)},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (second.returncode, second.stdout) == (2, "")
            assert second.stderr.startswith(f"ariane: a demo already runs in {home}")
            running.process.send_signal(signal.SIGINT)
            asked = time.monotonic()
            assert running.process.wait(30) == 0
            assert time.monotonic() - asked < 20
    assert processes_of(home) == []


@pytest.mark.heavy
def test_a_killed_demo_takes_its_children_along_and_starts_again(home: Path) -> None:
    with demo(home) as running:
        running.wait_ready()
        children = psutil.Process(running.process.pid).children()
        assert len(children) == 3
        running.process.kill()
        running.process.wait()
        gone, alive = psutil.wait_procs(children, timeout=20)
        assert (len(gone), alive) == (3, [])
    with demo(home) as running:
        running.wait_ready()
        worker = next(c for c in psutil.Process(running.process.pid).children() if "worker" in c.cmdline())
        worker.kill()
        assert running.process.wait(30) == 2
        assert "ariane: worker stopped with status -9" in running.said()
    assert processes_of(home) == []


def test_wanted_ports_are_given_when_free_and_never_twice() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        taken = held.getsockname()[1]
        (free,) = free_ports("127.0.0.1", 0)
        first, second, third = free_ports("127.0.0.1", free, free, taken)
    assert first == free
    assert len({first, second, third, taken}) == 4


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return make_plan(Settings(home=tmp_path), forum_port=0)


def test_the_children_get_the_demos_settings_and_no_others(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARIANE_LIMITS__PER_HOUR", "7")
    monkeypatch.setenv("ARIANE_DATABASE__URL", "postgresql://real/database")
    monkeypatch.setenv("ARIANE_FORUM__BASE_URL", "https://forum.example")
    monkeypatch.setenv("ARIANE_WEBHOOK__SECRETS", '["the-real-secret-of-someone"]')
    settings = plan.settings(load_settings(), "postgresql:///demo")
    assert settings.database.url == SecretStr("postgresql:///demo")
    assert settings.forum.base_url == plan.forum_url
    assert settings.webhook.secrets == (SecretStr(plan.webhook_secret),)
    environment = plan.environment(settings)
    for name in [name for name in os.environ if name.startswith("ARIANE_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        if name.startswith("ARIANE_"):
            monkeypatch.setenv(name, value)
    assert load_settings() == settings
    assert settings.limits.per_hour == 7


def test_the_secrets_stay_and_only_their_owner_reads_them(plan: Plan, tmp_path: Path) -> None:
    again = make_plan(Settings(home=tmp_path), forum_port=0)
    assert (again.bot_key, again.member_key, again.webhook_secret) == (
        plan.bot_key,
        plan.member_key,
        plan.webhook_secret,
    )
    assert (plan.home / "secrets.json").stat().st_mode & 0o077 == 0


def test_a_demo_of_an_earlier_version_keeps_its_secrets_and_gets_what_is_new(plan: Plan, tmp_path: Path) -> None:
    file = plan.home / "secrets.json"
    kept = json.loads(file.read_text())
    del kept["connect"]
    file.write_text(json.dumps(kept))
    again = make_plan(Settings(home=tmp_path), forum_port=0)
    assert again.webhook_secret == plan.webhook_secret
    assert again.connect_secret not in {"", plan.connect_secret}
    assert make_plan(Settings(home=tmp_path), forum_port=0).connect_secret == again.connect_secret


@pytest.mark.parametrize("content", ["[1]", "{", '"x"'])
def test_damaged_secrets_say_so(plan: Plan, tmp_path: Path, content: str) -> None:
    (plan.home / "secrets.json").write_text(content)
    with pytest.raises(Misconfigured, match=r"secrets\.json is damaged"):
        make_plan(Settings(home=tmp_path), forum_port=0)
