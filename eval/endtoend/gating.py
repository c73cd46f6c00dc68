"""Puts labelled messages to the gate: what it declines, by which rule, and how long it takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import thread_time

import numpy as np

from eval.datasets import GateCase
from eval.domain import Measured
from eval.measures import Unit, measured_gate
from eval.measures.rows import GATE
from eval.measures.table import ALL
from eval.statistics.bootstrap import quantile_intervals
from eval.statistics.clusters import codes
from service.answer.gate.compiled import load_gate
from service.answer.gate.match import Decline, decide
from service.settings import Settings

SYSTEM = "gate"
REPEATS = 3
"""A message is timed so often, in the processor's time: what other processes take is not the gate's."""

LEVELS = {"p50": 0.5, "p99": 0.99}

Decide = Callable[[str, Sequence[str]], Decline | None]
"""The gate's decision on a message after the member's own earlier turns."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What the gate did with a message: the rule that declined it and the words it met, empty when it went through."""

    case_id: str
    declined: bool
    rule: str
    span: str
    ms: float


def decider(settings: Settings) -> Decide:
    """The gate as these settings have it; raises Misconfigured for a kind or a rule that can't be."""
    return partial(decide, load_gate(settings.gate))


def decide_all(cases: Sequence[GateCase], gate: Decide) -> list[Decided]:
    """The gate's decision on every message, in order, with the least time of REPEATS."""
    found = []
    for case in cases:
        earlier = [text for role, text in case.history if role == "user"]
        tried = [_timed(gate, case.text, earlier) for _ in range(REPEATS)]
        ms, met = min(tried, key=lambda one: one[0])
        rule, span = (met.rule, met.span) if met else ("", "")
        found.append(Decided(case.id, met is not None, rule, span, ms))
    return found


def _timed(gate: Decide, text: str, earlier: Sequence[str]) -> tuple[float, Decline | None]:
    start = thread_time()
    met = gate(text, earlier)
    return (thread_time() - start) * 1000, met


def measured_decisions(cases: Sequence[GateCase], decided: Sequence[Decided], *, seed: int) -> list[Measured]:
    """Recall and false declines, over all, by the kinds' families and by language; then the time of a message."""
    units = [Unit(case.id, case.kind.partition("/")[0], case.lang, case.id) for case in cases]
    expected = {case.id: case.declines for case in cases}
    measures = measured_gate(units, expected, {SYSTEM: {one.case_id: one.declined for one in decided}}, seed=seed)
    times = np.array([one.ms for one in decided])
    each = codes([one.case_id for one in decided])
    intervals = quantile_intervals(times, each, tuple(LEVELS.values()), seed=seed)
    return measures + [
        Measured(GATE, SYSTEM, ALL, f"time message {name} ms", len(decided), interval)
        for name, interval in zip(LEVELS, intervals, strict=True)
    ]
