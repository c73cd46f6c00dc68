"""Dataset folders: which files one has, what they say, and whether that can be trusted."""

from eval.datasets.folder import Dataset, load_dataset
from eval.datasets.items import DraftCase, GateCase, SafetyProbe, read_drafts, read_gate, read_safety
from eval.datasets.labels import read_cases

__all__ = [
    "Dataset",
    "DraftCase",
    "GateCase",
    "SafetyProbe",
    "load_dataset",
    "read_cases",
    "read_drafts",
    "read_gate",
    "read_safety",
]
