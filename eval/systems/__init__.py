"""Systems under test: the service's own stages with switches, and baselines that are computed apart from it."""

from eval.systems.catalogue import EMBEDDING, SYSTEMS, USUAL, open_systems
from eval.systems.engines import question_embedder
from eval.systems.question import Followups, asked_text, question_of
from eval.systems.ranking import rank_all
from eval.systems.system import DEPTH, System
from eval.systems.vectors import QueryVectors

__all__ = [
    "DEPTH",
    "EMBEDDING",
    "SYSTEMS",
    "USUAL",
    "Followups",
    "QueryVectors",
    "System",
    "asked_text",
    "open_systems",
    "question_embedder",
    "question_of",
    "rank_all",
]
