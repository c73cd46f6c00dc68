"""Reads a finished run and everything that its report tells, whichever command made it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from eval.datasets import Dataset, read_cases
from eval.domain import Answered, Case, Labels, Measured, Retrieved
from eval.measures.pairing import ANSWER, RETRIEVE, compare_runs
from eval.measures.rows import GATE, SAFETY
from eval.report.content import HEADLINES, Differences, Report, Scores, Trace
from eval.report.messages import compare_messages, read_messages
from eval.report.posts import told_posts
from eval.report.scores import has_scores, scores_of
from eval.report.traces import answer_trace, found_trace, keys_of
from eval.report.worst import worst_answered, worst_found
from eval.runs import Run
from eval.verdict import configured_system
from service.errors import Rejected
from service.settings import Settings
from service.wiring.configuration import configuration

MOST = 30
"""Traces of a report."""

CHANGED = "changed_dataset"

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class _Parts:
    """What is read of a run: its traces, how many questions went badly, and what its scores tell."""

    traces: list[Trace]
    bad: int
    questions: dict[str, str]
    scores: list[Scores] = field(default_factory=list)
    unscored: dict[str, str] = field(default_factory=dict)


def gather(run: Run, before: Run | None, dataset: Dataset, settings: Settings, progress: Progress) -> Report:
    """The report of a run, compared with the one before; raises Rejected for an unfinished or a broken run."""
    record = run.record
    measures = finished_measures(run)
    configured = configured_system(run, settings)
    system = configured or list(record.systems)[-1]
    read = {RETRIEVE: _retrieve, ANSWER: _answer, GATE: _messages, SAFETY: _messages}[record.command]
    parts = read(run, system, dataset, settings, progress)
    warnings = [] if dataset.checksum == record.dataset.checksum else [CHANGED]
    return Report(
        record=record,
        system=system,
        in_use=configured is not None and record.signature == configuration(settings).sha256,
        measures=tuple(measures),
        traces=tuple(parts.traces),
        bad=parts.bad,
        questions=parts.questions,
        scores=tuple(parts.scores),
        unscored=parts.unscored,
        differences=_differences(run, before, dataset, settings) if before else None,
        warnings=tuple(warnings),
    )


def finished_measures(run: Run) -> list[Measured]:
    """The measures of a run that is whole; raises Rejected saying what it lacks, and how to go on with it."""
    record = run.record
    if record.command not in HEADLINES:
        raise Rejected(f"{run.folder}: a run of {record.command}: reports are of {', '.join(HEADLINES)}")
    if record.finished is None:
        raise Rejected(
            f"{run.folder}: this run is not finished: go on with it by "
            f"`python -m eval {record.command} --dataset DIR --resume {record.id}`"
        )
    measures = run.measures()
    for labels in record.labels:
        for system in record.systems:
            if not (run.folder / f"{labels}.{system}.jsonl").is_file():
                raise Rejected(f"{run.folder}: broken: the lines of {system} for {labels} are missing")
            if not any((one.labels, one.system) == (labels, system) for one in measures):
                raise Rejected(f"{run.folder}: broken: nothing is measured of {system} for {labels}")
    return measures


def _asked(run: Run, dataset: Dataset) -> list[Case]:
    """The questions that the run was asked, those of questions.yml first: people judged them."""
    known = [one for one in Labels if one in run.record.labels]
    return [case for labels in known for case in read_cases(dataset, labels)[: run.record.limit]]


def _retrieve(run: Run, system: str, dataset: Dataset, settings: Settings, progress: Progress) -> _Parts:
    cases = _asked(run, dataset)
    found: dict[str, dict[str, Retrieved]] = {}
    for at, name in enumerate(run.record.systems):
        progress("runs read", at, len(run.record.systems))
        found[name] = {key: one for labels in run.record.labels for key, one in run.retrieved(labels, name).items()}
    progress("runs read", len(found), len(found))
    worst = worst_found(cases, found, system)
    shown = worst[:MOST]
    told = told_posts(dataset, keys_of(shown, found, system, {}), progress)
    parts = _Parts([found_trace(case, found, system, told) for case in shown], len(worst), _questions(cases))
    if has_scores(found[system]):
        for labels in dict.fromkeys(case.labels for case in cases):
            some: Sequence[Case] = [case for case in cases if case.labels == labels]
            mine = {case.id: found[system][case.id] for case in some if case.id in found[system]}
            try:
                parts.scores.append(
                    scores_of(labels, some, mine, max_sources=settings.retrieval.max_sources, seed=run.record.seed)
                )
            except Rejected as exc:
                parts.unscored[labels] = str(exc)
    return parts


def _answer(run: Run, system: str, dataset: Dataset, _: Settings, progress: Progress) -> _Parts:
    cases = _asked(run, dataset)
    answered: dict[str, Answered] = {
        key: one for labels in run.record.labels for key, one in run.answered(labels, system).items()
    }
    worst = worst_answered(cases, answered)
    shown = worst[:MOST]
    told = told_posts(dataset, keys_of(shown, {}, system, answered), progress)
    return _Parts([answer_trace(case, system, answered, told) for case in shown], len(worst), _questions(cases))


def _messages(run: Run, _: str, dataset: Dataset, settings: Settings, __: Progress) -> _Parts:
    read = read_messages(run, dataset, settings.forum.base_url)
    return _Parts(read.traces[:MOST], len(read.traces), read.texts)


def _questions(cases: Sequence[Case]) -> dict[str, str]:
    return {case.id: case.question for case in cases}


def _differences(run: Run, before: Run, dataset: Dataset, settings: Settings) -> Differences:
    base_url = settings.forum.base_url
    if run.record.command in (GATE, SAFETY):
        then, now = (read_messages(one, dataset, base_url) for one in (before, run))
        return Differences(before.record, compare_messages((before, then), (run, now)))
    compared = compare_runs(
        before, run, lambda labels: read_cases(dataset, Labels(labels)), baseline=None, base_url=base_url
    )
    return Differences(before.record, compared)
