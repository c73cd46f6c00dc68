"""How well a system finds the posts that answer: Hit, MRR and nDCG of ir-measures, by topic and by post."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import ir_measures
import numpy as np
from ir_measures import RR, Success, nDCG

from eval.domain import ANSWERS, Case, Hit, Retrieved
from eval.measures.table import PerCase, units
from eval.statistics.clusters import Floats

DEPTH = 25
"""How far down a ranking is read, for every measure: systems that list more gain nothing by it."""

MEASURES = {
    "Hit@1": Success(rel=ANSWERS) @ 1,
    "Hit@5": Success(rel=ANSWERS) @ 5,
    "Hit@25": Success(rel=ANSWERS) @ 25,
    "MRR": RR(rel=ANSWERS),
    "nDCG@10": nDCG @ 10,
}


class Grain(StrEnum):
    """What counts as found: the topic that holds a golden, or the very post."""

    TOPIC = "topic"
    POST = "post"


def retrieval_values(cases: Sequence[Case], retrieved: Mapping[str, Retrieved]) -> PerCase:
    """Every measure of one system for every case at both grains, by case id; a case it has nothing for gets zeros.

    A case counts where a golden that answers can be seen at that grain; it is NaN elsewhere.
    """
    values: dict[str, Floats] = {}
    for grain in Grain:
        values |= _grain_values(cases, retrieved, grain)
    return PerCase(units(cases), values)


def first_ranks(cases: Iterable[Case], retrieved: Mapping[str, Retrieved], grain: Grain) -> dict[str, int | None]:
    """By id of the cases that count: the rank, from 1, of the first topic or post that answers; None past DEPTH."""
    ranks: dict[str, int | None] = {}
    for case in cases:
        judged = grades(case, grain)
        if not _answers(judged):
            continue
        listed = ranking(retrieved[case.id].hits, grain) if case.id in retrieved else []
        ranks[case.id] = next((at for at, name in enumerate(listed, start=1) if judged.get(name, 0) >= ANSWERS), None)
    return ranks


def ranking(hits: Iterable[Hit], grain: Grain) -> list[str]:
    """The first DEPTH topics, in the order of their first hit, or posts `<topic>.<post>`; scores aren't looked at."""
    names = (str(hit.topic_id) if grain is Grain.TOPIC else f"{hit.topic_id}.{hit.post_number}" for hit in hits)
    return list(dict.fromkeys(names))[:DEPTH]


def grades(case: Case, grain: Grain) -> dict[str, int]:
    """The best grade of each topic or post among the goldens that this grain can see."""
    best: dict[str, int] = {}
    for golden in case.golden:
        if grain is Grain.TOPIC:
            name = str(golden.topic_id)
        elif golden.post_number is not None:
            name = f"{golden.topic_id}.{golden.post_number}"
        else:
            continue
        best[name] = max(best.get(name, 0), golden.grade)
    return best


def _answers(judged: Mapping[str, int]) -> bool:
    return any(grade >= ANSWERS for grade in judged.values())


def _grain_values(cases: Sequence[Case], retrieved: Mapping[str, Retrieved], grain: Grain) -> dict[str, Floats]:
    names = {measure: f"{grain} {name}" for name, measure in MEASURES.items()}
    judged = {str(at): found for at, case in enumerate(cases) if _answers(found := grades(case, grain))}
    values = {name: np.full(len(cases), np.nan) for name in names.values()}
    for column in values.values():
        column[[int(at) for at in judged]] = 0.0
    # Falling whole numbers in place of scores: trec_eval sorts by score, and breaks ties by name.
    run = {
        at: {name: float(DEPTH - rank) for rank, name in enumerate(ranking(retrieved[case.id].hits, grain))}
        for at, case in ((at, cases[int(at)]) for at in judged)
        if case.id in retrieved and retrieved[case.id].hits
    }
    if run:
        for metric in ir_measures.iter_calc(list(names), judged, run):
            values[names[metric.measure]][int(metric.query_id)] = metric.value
    return values
