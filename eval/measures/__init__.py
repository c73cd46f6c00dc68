"""What evaluation measures, case by case and summed up over slices with intervals."""

from eval.measures.answers import answer_values, outcome
from eval.measures.retrieval import Grain, first_ranks, retrieval_values
from eval.measures.rows import measured, measured_answers, measured_gate, rows
from eval.measures.table import PerCase, Unit, units

__all__ = [
    "Grain",
    "PerCase",
    "Unit",
    "answer_values",
    "first_ranks",
    "measured",
    "measured_answers",
    "measured_gate",
    "outcome",
    "retrieval_values",
    "rows",
    "units",
]
