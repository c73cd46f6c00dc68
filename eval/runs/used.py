"""What a run was made with: the program, the settings that matter, the models."""

import hashlib
import json
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, SecretStr

from service.settings import Settings
from service.settings.models import AnswererKind

DISTRIBUTION = "ariane-forum"
_PLACES = ("url", "timeout_seconds", "concurrency", "pod_concurrency", "batch_texts")
"""Where a model runs and how fast it may be asked: its profile says what it is."""


def program_version() -> str:
    return version(DISTRIBUTION)


def git_hash() -> str | None:
    """The checkout's commit, "-dirty" behind it when files differ from it; None outside a checkout."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"]
    told = subprocess.run(  # noqa: S603 - a fixed command
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or None


def models_of(settings: Settings) -> dict[str, str]:
    """The models by their role, as the settings name them."""
    models = settings.models
    answerer = models.answerer
    return {
        "embedder": models.embedder.profile,
        "reranker": models.reranker.profile,
        "answerer": answerer.kind if answerer.kind is AnswererKind.EXTRACTIVE else f"{answerer.kind} {answerer.model}",
        "index": models.index_kind,
    }


def settings_fingerprint(settings: Settings) -> str:
    """SHA-256 of what decides figures: retrieval, models, their profiles, and which posts are indexed.

    Secrets, addresses and waits are left out.
    """
    profiles = settings.models.profiles_file
    content = Path(profiles).read_bytes() if profiles and Path(profiles).is_file() else b""
    told = {
        "retrieval": _told(settings.retrieval),
        "models": _told(settings.models),
        "profiles": hashlib.sha256(content).hexdigest(),
        "bots": sorted({settings.forum.bot_username, *settings.forum.known_bots}),
        "banners": settings.forum.index_banners,
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _told(section: BaseModel) -> dict[str, object]:
    told: dict[str, object] = {}
    for name, value in section:
        if isinstance(value, BaseModel):
            told[name] = _told(value)
        elif not isinstance(value, SecretStr) and name not in (*_PLACES, "profiles_file"):
            told[name] = value
    return told
