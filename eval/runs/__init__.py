"""Runs on disk: what was tried with what, what came out for every question, and what it was measured to be worth."""

from eval.runs.folder import Run, new_run, open_run, runs_folder
from eval.runs.record import DatasetUsed, RunRecord
from eval.runs.used import models_of, settings_fingerprint

__all__ = [
    "DatasetUsed",
    "Run",
    "RunRecord",
    "models_of",
    "new_run",
    "open_run",
    "runs_folder",
    "settings_fingerprint",
]
