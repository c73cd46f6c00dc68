"""What the demo decides before it starts anything: folders, ports, secrets, and the settings its processes share."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from service.demo.processes import free_port
from service.errors import Misconfigured
from service.settings import Settings, demo_home

HOST = "127.0.0.1"
SECRETS_FILE = "secrets.json"
SECRET_NAMES = ("webhook", "bot_key", "member_key")


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
    def state(self) -> Path:
        return self.home / "forum.json"

    def environment(self, database_url: str) -> dict[str, str]:
        """The variables of every child: this process's own, and the demo's settings over them."""
        return {
            **os.environ,
            "ARIANE_HOME": str(self.home),
            "ARIANE_DATABASE__URL": database_url,
            "ARIANE_FORUM__BASE_URL": self.forum_url,
            "ARIANE_FORUM__API_KEY": self.bot_key,
            "ARIANE_WEBHOOK__SECRETS": json.dumps([self.webhook_secret]),
            "ARIANE_WEB__HOST": HOST,
            "ARIANE_WEB__PORT": str(self.web_port),
            "ARIANE_WORKER__METRICS_PORT": str(self.metrics_port),
            "SIMULATOR_WEBHOOK_SECRET": self.webhook_secret,
            "SIMULATOR_API_KEY": self.bot_key,
            "SIMULATOR_MEMBER_KEY": self.member_key,
        }


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
    return Plan(
        home=home,
        forum_port=free_port(HOST, forum_port),
        web_port=free_port(HOST, settings.web.port),
        metrics_port=free_port(HOST, settings.worker.metrics_port),
        webhook_secret=kept["webhook"],
        bot_key=kept["bot_key"],
        member_key=kept["member_key"],
    )


def _kept_secrets(path: Path) -> Mapping[str, str]:
    """The secrets of earlier starts, or new ones that only this user can read."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({name: secrets.token_hex(24) for name in SECRET_NAMES}, file)
    try:
        kept = json.loads(path.read_text())
        return {name: str(kept[name]) for name in SECRET_NAMES}
    except (ValueError, KeyError, TypeError) as exc:
        raise Misconfigured(f"{path} is damaged: delete it and start again") from exc
