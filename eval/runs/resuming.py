"""Whether a run can be gone on with: what it was begun with is held against what there is now."""

from collections.abc import Mapping
from typing import Any

from eval.runs.finding import FOLDER
from eval.runs.folder import Run
from eval.runs.used import git_hash, models_of, program_version, settings_fingerprint
from service.errors import Rejected
from service.settings import Settings
from service.wiring.configuration import configuration

_CALLED = {"git": "commit", "version": "program version", "signature": "configuration"}


def gone_on_with(run: Run, settings: Settings, **asked: Any) -> Run:
    """The run, begun by this program under these settings and as it is `asked` now; raises Rejected naming the rest.

    `asked` are fields of RunRecord, such as `dataset` and `systems`; where the dataset lies is no difference. Of a
    checkout with uncommitted changes only the commit is compared.
    """
    now = asked | {
        "git": git_hash(),
        "version": program_version(),
        "settings": settings_fingerprint(settings),
        "signature": configuration(settings).sha256,
        "models": models_of(settings),
    }
    other = [
        _CALLED.get(name, name)
        for name, value in now.items()
        if _compared(value) != _compared(getattr(run.record, name))
    ]
    if other:
        raise Rejected(f"{run.folder}: made with other {', '.join(other)}: begin a new run")
    return run


def _compared(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: one for name, one in value.items() if name != FOLDER}
    return value
