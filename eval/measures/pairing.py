"""Which systems of which runs are compared on which cases, and the comparison itself."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval.domain import Answered, Case
from eval.measures.answers import answer_values
from eval.measures.comparison import Change, Difference, changed_outcomes, changed_ranks, corrected, differences
from eval.measures.retrieval import retrieval_values
from eval.measures.table import ALL, PerCase, slices, units
from eval.runs import Run
from eval.runs.finding import FOLDER
from eval.runs.record import RunRecord, differing
from service.errors import Rejected

RETRIEVE = "retrieve"
ANSWER = "answer"
_MADE_WITH = ("git", "version", "settings", "signature", "seed")
_HASH = re.compile(r"[0-9a-f]{40,}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`differs` names what the two runs were made with that isn't the same in both; changes are the largest first."""

    pairs: tuple[tuple[str, str], ...]
    differs: tuple[str, ...]
    warnings: tuple[str, ...]
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]


def compare_runs(
    before: Run,
    after: Run,
    cases: Callable[[str], Sequence[Case]],
    *,
    baseline: str | None,
    base_url: str,
    part: str = ALL,
) -> Comparison:
    """Each system of `after` against its namesake in `before`, or every one against `baseline` of `before`.

    `cases` gives those of a label file, as the dataset has them now; `before` and `after` may be the same run. Runs of
    one dataset are compared on all its cases, what is missing counting as zero or as failed; runs of different ones,
    with a warning, on the cases that both have. Raises Rejected when there is nothing to compare.
    """
    pairs = paired(before, after, baseline)
    command = _command(before.record, after.record)
    whole = before.record.dataset.checksum == after.record.dataset.checksum
    warnings = [] if whole else ["the runs are of different datasets: compared on the questions that both have"]
    limits = [run.record.limit for run in (before, after)]
    limit = min((one for one in limits if one is not None), default=None)
    if limits[0] != limits[1]:
        warnings.append(f"one run was limited to {limit} questions of each file: compared on these")
    found: list[Difference] = []
    changes: list[Change] = []
    known: dict[str, None] = {}
    for labels in [labels for labels in before.record.labels if labels in after.record.labels]:
        asked = cases(labels)[:limit]
        for first, second in pairs:
            if command == RETRIEVE:
                one, other = before.retrieved(labels, first), after.retrieved(labels, second)
                some = _compared(asked, (one, other), whole, f"{labels}, {first} and {second}", warnings)
                changes += changed_ranks(_of(part, some), (first, one), (second, other))
                tables = retrieval_values(some, one), retrieval_values(some, other)
            else:
                said, says = before.answered(labels, first), after.answered(labels, second)
                some = _compared(asked, (said, says), whole, f"{labels}, {first} and {second}", warnings)
                changes += changed_outcomes(_of(part, some), (first, said), (second, says))
                tables = _answer_tables(some, said, says, base_url)
            if some:
                known |= dict.fromkeys(name for name, _ in slices(units(some)))
                seed = before.record.seed
                found += differences(labels, (first, tables[0]), (second, tables[1]), part=part, seed=seed)
    if not found:
        raise Rejected(
            f"no questions of slice {part!r}; there are: {', '.join(known)}"
            if known
            else f"runs {before.record.id} and {after.record.id} have no question in common"
        )
    return Comparison(
        pairs=tuple(pairs),
        differs=tuple(made_differently(before.record, after.record, pairs)),
        warnings=tuple(dict.fromkeys(warnings)),
        differences=tuple(corrected(found)),
        changes=tuple(changes),
    )


def paired(before: Run, after: Run, baseline: str | None) -> list[tuple[str, str]]:
    """The systems to compare, (of before, of after); raises Rejected saying which there are."""
    there, here = list(before.record.systems), list(after.record.systems)
    same_run = before.folder.resolve() == after.folder.resolve()
    if baseline is not None:
        if baseline not in there:
            raise Rejected(f"run {before.record.id} has no system {baseline!r}, but {', '.join(there)}")
        pairs = [(baseline, system) for system in here if not (same_run and system == baseline)]
    elif same_run:
        raise Rejected(f"one run: name the system that the others are compared with (--baseline {'|'.join(there)})")
    else:
        pairs = [(system, system) for system in there if system in here]
    if not pairs:
        raise Rejected(
            f"no systems to compare: run {before.record.id} has {', '.join(there)}, run {after.record.id} has "
            f"{', '.join(here)} (--baseline compares all with one)"
        )
    return pairs


def made_differently(before: RunRecord, after: RunRecord, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What may explain a difference, one line each: program, settings, models, options, the systems' switches."""
    told = [
        _HASH.sub(lambda found: found[0][:12], f"{name}: {getattr(before, name)} -> {getattr(after, name)}")
        for name in _MADE_WITH
        if getattr(before, name) != getattr(after, name)
    ]
    for kind, then, now in (("", before.models, after.models), ("option ", before.options, after.options)):
        told += [
            f"{kind}{name}: {then.get(name)} -> {now.get(name)}" for name in differing(then, now) if name != FOLDER
        ]
    for first, second in pairs:
        then, now = before.systems[first], after.systems[second]
        called = first if first == second else f"{first} -> {second}"
        told += [f"{called}, {name}: {then.get(name)} -> {now.get(name)}" for name in differing(then, now)]
    return told


def _command(before: RunRecord, after: RunRecord) -> str:
    if before.command != after.command:
        raise Rejected(f"a run of {before.command} ({before.id}) and one of {after.command} ({after.id})")
    if before.command not in (RETRIEVE, ANSWER):
        raise Rejected(f"run {before.id} is of {before.command}: runs of {RETRIEVE} and {ANSWER} can be compared")
    return before.command


def _compared(
    cases: Sequence[Case], sides: tuple[Mapping[str, object], ...], whole: bool, what: str, warnings: list[str]
) -> list[Case]:
    """The cases to compare on; adds a warning where a side has nothing for some of them."""
    missing = sum(any(case.id not in side for side in sides) for case in cases)
    if not whole:
        return [case for case in cases if all(case.id in side for side in sides)]
    if missing:
        warnings.append(f"{what}: {missing} of {len(cases)} questions are missing on a side, and count against it")
    return list(cases)


def _of(part: str, cases: Sequence[Case]) -> list[Case]:
    """The cases of a slice or a language, none where there is none of that name."""
    members = dict(slices(units(cases))).get(part)
    return [] if members is None else [case for case, kept in zip(cases, members, strict=True) if kept]


def _answer_tables(
    cases: Sequence[Case], before: Mapping[str, Answered], after: Mapping[str, Answered], base_url: str
) -> tuple[PerCase, PerCase]:
    return answer_values(cases, before, base_url=base_url), answer_values(cases, after, base_url=base_url)
