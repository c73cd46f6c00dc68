"""Every setting with its default: a YAML file, overridden by ARIANE_* environment variables."""

import os
from pathlib import Path
from typing import Any

import platformdirs
import yaml
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from service.errors import Misconfigured
from service.settings.faults import DELIMITER, PREFIX, listed
from service.settings.models import ModelSettings
from service.settings.sections import (
    ActivationSettings,
    BackfillSettings,
    Channel,
    DatabaseSettings,
    ForumSettings,
    GateSettings,
    LimitSettings,
    LogSettings,
    ModerationSettings,
    OnChange,
    ReconcileSettings,
    RetentionSettings,
    RetrievalSettings,
    WebhookSettings,
    WebSettings,
    WorkerSettings,
)

__all__ = [
    "ActivationSettings",
    "BackfillSettings",
    "Channel",
    "DatabaseSettings",
    "ForumSettings",
    "GateSettings",
    "LimitSettings",
    "LogSettings",
    "ModelSettings",
    "ModerationSettings",
    "OnChange",
    "ReconcileSettings",
    "RetentionSettings",
    "RetrievalSettings",
    "Settings",
    "WebSettings",
    "WebhookSettings",
    "WorkerSettings",
    "default_home",
    "demo_home",
    "load_settings",
]


def default_home() -> Path:
    """The user's data directory; root's is outside any home, since the embedded Postgres then runs as another user."""
    if os.geteuid() == 0:
        return Path("/var/lib/ariane")
    return platformdirs.user_data_path("ariane")


def demo_home(settings: "Settings") -> Path:
    """Where the demo keeps its own database and forum, apart from any real index."""
    return settings.home / "demo"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=DELIMITER, extra="forbid", frozen=True)

    home: Path = Field(default_factory=default_home, description="Data folder of the embedded defaults (ARIANE_HOME).")
    forum: ForumSettings = ForumSettings()
    webhook: WebhookSettings = WebhookSettings()
    database: DatabaseSettings = DatabaseSettings()
    web: WebSettings = WebSettings()
    worker: WorkerSettings = WorkerSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    models: ModelSettings = ModelSettings()
    activation: ActivationSettings = ActivationSettings()
    gate: GateSettings = GateSettings()
    limits: LimitSettings = LimitSettings()
    retention: RetentionSettings = RetentionSettings()
    reconcile: ReconcileSettings = ReconcileSettings()
    backfill: BackfillSettings = BackfillSettings()
    moderation: ModerationSettings = ModerationSettings()
    log: LogSettings = LogSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings


def load_settings(path: Path | None = None) -> Settings:
    """Read the file (if any) and the environment; raises Misconfigured with one line a fault, each saying where."""
    values: Any = {}
    if path is not None:
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as exc:
            raise Misconfigured(f"{path}: {' '.join(str(exc).split())}") from exc
        if not isinstance(values, dict):
            raise Misconfigured(f"{path}: expected settings by section, found {type(values).__name__}")
    try:
        return Settings(**values)
    except ValidationError as exc:
        faults = exc.errors(include_input=False)
        raise Misconfigured(listed(faults, path=path, values=values, environment=os.environ)) from exc
    except ValueError as exc:  # pydantic-settings: an environment variable that isn't valid JSON
        example = """ARIANE_WEBHOOK__SECRETS='["..."]'"""
        raise Misconfigured(f"environment: {exc}; a list is written as JSON: {example}") from exc
