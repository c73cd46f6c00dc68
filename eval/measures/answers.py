"""What became of each question: answered or abstained, rightly or wrongly; and what its citations are worth."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from eval.domain import ANSWERS, Answered, Case, CitedSource
from eval.measures.links import only_shown
from eval.measures.retrieval import Grain, grades
from eval.measures.table import PerCase, units
from eval.statistics.clusters import Floats
from service.domain import Result

ANSWERED_RIGHT = "answered right"
TOPIC_ANSWERED_RIGHT = "topic answered right"
ANSWERED_WRONG = "answered wrong"
ABSTAINED_RIGHT = "abstained right"
ABSTAINED_WRONG = "abstained wrong"
FAILED = "failed"
OUTCOMES = (ANSWERED_RIGHT, ANSWERED_WRONG, ABSTAINED_RIGHT, ABSTAINED_WRONG, FAILED)
"""Each case has exactly one of them."""

Measure = Callable[[Case, Answered | None], float | None]
"""A value in [0, 1], or None where the case doesn't count."""


def answer_values(cases: Sequence[Case], answered: Mapping[str, Answered], *, base_url: str) -> PerCase:
    """Every measure of one system's answers for every case, by case id; a case it has nothing for has failed.

    `base_url` is the forum's, which links to sources start with.
    """

    def column(measure: Measure) -> Floats:
        found = (measure(case, answered.get(case.id)) for case in cases)
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)

    values = {name: column(_outcome_is(name, Grain.POST)) for name in OUTCOMES}
    values[TOPIC_ANSWERED_RIGHT] = column(_outcome_is(ANSWERED_RIGHT, Grain.TOPIC))
    values["coverage"] = column(lambda _, one: float(_is_answer(one)))
    values["wrong when answered"] = column(_wrong)
    values["citations valid"] = column(lambda _, one: _valid(one, base_url))
    for grain in Grain:
        values[f"{grain} support precision"] = column(partial(_precision, grain))
        values[f"{grain} support recall"] = column(partial(_recall, grain))
    return PerCase(units(cases), values)


def outcome(case: Case, answered: Answered | None, grain: Grain = Grain.POST) -> str:
    """Which of OUTCOMES an answer is; no answer, or a failure of the pipeline, is FAILED.

    An answer is right when a source it cites is a golden that answers: that very post, where the golden names one (at
    topic grain its topic is enough). Any other end that isn't a failure abstains, which is right without such a golden.
    """
    if answered is None or answered.result == Result.FAILED:
        return FAILED
    if not _is_answer(answered):
        return ABSTAINED_WRONG if case.answerable else ABSTAINED_RIGHT
    supported = any(_grade(case, source, grain) >= ANSWERS for source in _cited(answered))
    return ANSWERED_RIGHT if supported else ANSWERED_WRONG


def _outcome_is(name: str, grain: Grain) -> Measure:
    return lambda case, one: float(outcome(case, one, grain) == name)


def _is_answer(answered: Answered | None) -> bool:
    return answered is not None and answered.result == Result.ANSWERED


def _cited(answered: Answered) -> tuple[CitedSource, ...]:
    return tuple(source for source in answered.sources if source.cited)


def _grade(case: Case, source: CitedSource, grain: Grain) -> int:
    """The best grade that a golden gives this source; a golden without a post number speaks for its whole topic."""
    return max(
        (
            golden.grade
            for golden in case.golden
            if golden.topic_id == source.topic_id
            and (grain is Grain.TOPIC or golden.post_number in (None, source.post_number))
        ),
        default=0,
    )


def _wrong(case: Case, answered: Answered | None) -> float | None:
    return float(outcome(case, answered) == ANSWERED_WRONG) if _is_answer(answered) else None


def _valid(answered: Answered | None, base_url: str) -> float | None:
    if answered is None or not _is_answer(answered):
        return None
    return float(only_shown(answered.markdown, answered.sources, base_url))


def _precision(grain: Grain, case: Case, answered: Answered | None) -> float | None:
    """The share of cited sources that are goldens of any grade, for answers to cases that have goldens."""
    if answered is None or not _is_answer(answered) or not case.golden:
        return None
    found = [_grade(case, source, grain) > 0 for source in _cited(answered)]
    return sum(found) / len(found) if found else 0.0


def _recall(grain: Grain, case: Case, answered: Answered | None) -> float | None:
    """The share of goldens that answer which are among the cited sources, for answers to cases that have such ones."""
    wanted = {name for name, grade in grades(case, grain).items() if grade >= ANSWERS}
    if answered is None or not _is_answer(answered) or not wanted:
        return None
    cited = {
        str(source.topic_id) if grain is Grain.TOPIC else f"{source.topic_id}.{source.post_number}"
        for source in _cited(answered)
    }
    return len(wanted & cited) / len(wanted)
