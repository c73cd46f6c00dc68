"""What the demo decides before it starts anything: folders, ports, secrets, and the settings its processes share."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from service.demo.processes import free_ports
from service.errors import Misconfigured
from service.moderation.place import site_of
from service.settings import (
    DatabaseSettings,
    ForumSettings,
    ModerationSettings,
    Settings,
    WebhookSettings,
    demo_home,
)

HOST = "127.0.0.1"
LOCK = "demo.lock"
SECRETS_FILE = "secrets.json"
SECRET_NAMES = ("webhook", "bot_key", "member_key", "connect")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything the demo's processes need to find each other."""

    home: Path
    forum_port: int
    web_port: int
    metrics_port: int
    webhook_secret: str
    bot_key: str
    member_key: str
    connect_secret: str

    @property
    def forum_url(self) -> str:
        return f"http://{HOST}:{self.forum_port}"

    @property
    def web_url(self) -> str:
        return f"http://{HOST}:{self.web_port}"

    @property
    def webhook_url(self) -> str:
        return f"{self.web_url}/webhooks/discourse"

    @property
    def pages_url(self) -> str:
        return site_of(self._moderation).url("/")

    @property
    def _moderation(self) -> ModerationSettings:
        return ModerationSettings(public_url=self.web_url, connect_secret=SecretStr(self.connect_secret))

    @property
    def state(self) -> Path:
        return self.home / "forum.json"

    def settings(self, given: Settings, database_url: str) -> Settings:
        """The given settings, but for what would reach a real database or forum."""
        key, secret = SecretStr(self.bot_key), SecretStr(self.webhook_secret)
        return given.model_copy(
            update={
                "home": self.home,
                "forum": ForumSettings(base_url=self.forum_url, api_key=key),
                "webhook": WebhookSettings(secrets=(secret,)),
                "database": DatabaseSettings(url=SecretStr(database_url)),
                "moderation": self._moderation,
                "web": given.web.model_copy(update={"host": HOST, "port": self.web_port}),
                "worker": given.worker.model_copy(update={"metrics_host": HOST, "metrics_port": self.metrics_port}),
            }
        )

    def environment(self, settings: Settings) -> dict[str, str]:
        """The variables of every child: this process's own, with those settings instead of its own."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("ARIANE_")}
        sections = settings.model_dump(exclude={"home"})
        return {
            **own,
            "ARIANE_HOME": str(settings.home),
            **{f"ARIANE_{name.upper()}": json.dumps(value, default=_plain) for name, value in sections.items()},
            "SIMULATOR_WEBHOOK_SECRET": self.webhook_secret,
            "SIMULATOR_API_KEY": self.bot_key,
            "SIMULATOR_MEMBER_KEY": self.member_key,
            "SIMULATOR_CONNECT_SECRET": self.connect_secret,
        }


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def make_plan(settings: Settings, *, forum_port: int) -> Plan:
    """Choose free ports (the configured ones where nobody listens) and read or make the demo's secrets."""
    home = demo_home(settings)
    try:
        home.mkdir(parents=True, exist_ok=True)
        kept = _kept_secrets(home / SECRETS_FILE)
    except OSError as exc:
        raise Misconfigured(
            f"the demo can't write {home} ({exc.strerror}): set ARIANE_HOME to a folder of yours"
        ) from exc
    forum_port, web_port, metrics_port = free_ports(HOST, forum_port, settings.web.port, settings.worker.metrics_port)
    return Plan(
        home=home,
        forum_port=forum_port,
        web_port=web_port,
        metrics_port=metrics_port,
        webhook_secret=kept["webhook"],
        bot_key=kept["bot_key"],
        member_key=kept["member_key"],
        connect_secret=kept["connect"],
    )


@contextmanager
def only_demo(home: Path) -> Iterator[None]:
    """Hold the demo's folder; raises Misconfigured when another demo does."""
    with (home / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Misconfigured(
                f"a demo already runs in {home}: use that one, stop it, or set ARIANE_HOME to another folder"
            ) from exc
        yield


def _kept_secrets(path: Path) -> Mapping[str, str]:
    """The secrets of earlier starts, new ones for what had none yet; only this user can read them."""
    try:
        kept = dict(json.loads(path.read_text())) if path.exists() else {}
    except (ValueError, TypeError) as exc:
        raise Misconfigured(f"{path} is damaged: delete it and start again") from exc
    known = {name: str(kept.get(name) or secrets.token_hex(24)) for name in SECRET_NAMES}
    if known != kept:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(known, file)
    return known
