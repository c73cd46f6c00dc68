"""Runs of gate and safety read again: what each measure's values are, which messages went badly, and their traces."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import product

import numpy as np

from eval.datasets import Dataset, GateCase, SafetyProbe, read_gate, read_safety
from eval.domain import Answered
from eval.endtoend.gating import Decided
from eval.endtoend.probing import Judge, Judged, safety_values
from eval.endtoend.safety import told
from eval.measures import PerCase, Unit
from eval.measures.comparison import Change, corrected, differences
from eval.measures.pairing import Comparison, made_differently, paired
from eval.measures.rows import GATE, SAFETY
from eval.measures.safety import gate_values
from eval.measures.table import ALL
from eval.report.content import Trace
from eval.report.traces import said
from eval.runs import Run
from eval.runs.lines import read_lines
from service.domain import TopicId
from service.errors import Rejected

DECLINED, LET_THROUGH = "declined", "let through"
SAFE, UNSAFE = "safe", "unsafe"


@dataclass(frozen=True, slots=True)
class Messages:
    """By system the values of messages, in a word what became of each, and those that it was put at all.

    `texts` are by message; `traces` are of what went badly.
    """

    tables: dict[str, PerCase]
    became: dict[str, dict[str, str]]
    put: dict[str, frozenset[str]]
    texts: dict[str, str]
    traces: list[Trace]


def read_messages(run: Run, dataset: Dataset, base_url: str) -> Messages:
    """Every message of a gate or safety run, judged again; raises Rejected for a broken run or dataset."""
    if run.record.command == GATE:
        return _gate(run, read_gate(dataset))
    return _safety(run, read_safety(dataset)[: run.record.limit], base_url)


def compare_messages(before: tuple[Run, Messages], after: tuple[Run, Messages]) -> Comparison:
    """As eval.measures.pairing.compare_runs, for messages."""
    (one, then), (other, now) = before, after
    pairs = paired(one, other, None)
    labels = other.record.labels[0]
    warnings = []
    if others := one.record.dataset.checksum != other.record.dataset.checksum:
        warnings.append("the runs are of different datasets: compared on the messages that both have")
    limits = [run.record.limit for run in (one, other)]
    if limits[0] != limits[1]:
        limit = min(limit for limit in limits if limit is not None)
        warnings.append(f"one run was limited to {limit} messages: compared on these")
    found, changes = [], []
    for first, second in pairs:
        both = then.became[first].keys() & now.became[second].keys()
        if others:
            both &= then.put[first] & now.put[second]
        if not both:
            raise Rejected(f"runs {one.record.id} and {other.record.id} have no message in common")
        left, right = _those(both, then.tables[first]), _those(both, now.tables[second])
        found += differences(labels, (first, left), (second, right), part=ALL, seed=other.record.seed)
        changes += [
            Change(labels, first, second, unit.id, unit.slice, was, is_now)
            for unit in right.units
            if (was := then.became[first][unit.id]) != (is_now := now.became[second][unit.id])
        ]
    return Comparison(
        pairs=tuple(pairs),
        differs=tuple(made_differently(one.record, other.record, pairs)),
        warnings=tuple(warnings),
        differences=tuple(corrected(found)),
        changes=tuple(changes),
    )


def _those(messages: Set[str], table: PerCase) -> PerCase:
    kept = np.array([unit.id in messages for unit in table.units], dtype=np.bool_)
    units = tuple(unit for unit in table.units if unit.id in messages)
    return PerCase(units, {name: values[kept] for name, values in table.values.items()})


def _gate(run: Run, cases: Sequence[GateCase]) -> Messages:
    units = [Unit(case.id, case.kind.partition("/")[0], case.lang, case.id) for case in cases]
    expected = {case.id: case.declines for case in cases}
    read = Messages({}, {}, {}, {case.id: case.text for case in cases}, [])
    for system in run.record.systems:
        decided = {one.case_id: one for one in read_lines(run.folder / f"{GATE}.{system}.jsonl", Decided)}
        declined = {name: one.declined for name, one in decided.items()}
        read.tables[system] = gate_values(units, expected, declined)
        read.put[system] = frozenset(decided)
        read.became[system] = {case.id: DECLINED if declined.get(case.id) else LET_THROUGH for case in cases}
        wrong = [case for case in cases if declined.get(case.id) != case.declines]
        wrong.sort(key=lambda case: not case.declines)
        read.traces.extend(_gate_trace(case, system, decided.get(case.id)) for case in wrong)
    return read


def _gate_trace(case: GateCase, system: str, one: Decided | None) -> Trace:
    more = [("rule", one.rule), ("span", one.span)] if one and one.declined else []
    return Trace(
        id=case.id,
        labels=GATE,
        system=system,
        slice=case.kind,
        lang=case.lang,
        why="why_let_through" if case.declines else "why_declined",
        question=case.text,
        history=case.history,
        more=tuple((name, (text,)) for name, text in more if text),
    )


def _safety(run: Run, probes: Sequence[SafetyProbe], base_url: str) -> Messages:
    nothing: dict[str, frozenset[TopicId]] = {}  # the hostile topics went with the copy that they were planted in
    judge = Judge(base_url, told(), nothing)
    read = Messages({}, {}, {}, {probe.id: probe.text for probe in probes}, [])
    unsafe: dict[tuple[str, str], Trace] = {}
    for system in run.record.systems:
        answers = run.answered(SAFETY, system)
        judged = [judge.judge(probe, answers.get(probe.id)) for probe in probes]
        table = safety_values(judged)
        read.tables[system] = PerCase(
            table.units, {name: values for name, values in table.values.items() if name != "evidence reached"}
        )
        read.put[system] = frozenset(answers)
        read.became[system] = {one.probe.id: SAFE if one.safe else UNSAFE for one in judged}
        unsafe |= {
            (one.probe.id, system): _safety_trace(one, system, answers.get(one.probe.id))
            for one in judged
            if not one.safe
        }
    ordered = product((probe.id for probe in probes), run.record.systems)
    read.traces.extend(unsafe[key] for key in ordered if key in unsafe)
    return read


def _safety_trace(judged: Judged, system: str, one: Answered | None) -> Trace:
    probe = judged.probe
    more = [("faults", judged.faults), ("evidence", probe.evidence), ("forbidden", probe.must_not)]
    return Trace(
        id=probe.id,
        labels=SAFETY,
        system=system,
        slice=probe.kind,
        lang=probe.lang,
        why="why_unsafe",
        question=probe.text,
        zone=one.zone if one else "",
        mode=one.mode if one else "",
        said=said(one) if one else None,
        more=tuple((name, tuple(texts)) for name, texts in more if texts),
    )
