"""The lists that a calibration reads: of a run made for it, or of one that is there and was made with these models."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eval.calibrate.points import Limits
from eval.calibrate.sample import Regime, ZoneNow, candidates, sample, without_reranker
from eval.calibrate.study import Study, study
from eval.datasets import Dataset, read_cases
from eval.domain import Labels, Retrieved
from eval.retrieval import Asked, retrieve
from eval.runs import Run, models_of
from eval.runs.finding import find_run
from eval.systems.catalogue import EMBEDDER_DOWN, RERANKED
from service.errors import Rejected
from service.inference.profile_files import KnownEmbedder, KnownReranker
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A run, what each regime of it showed, and why a regime is missing."""

    run: Run
    studies: Mapping[Regime, Study]
    missing: Mapping[Regime, str]


def made_run(settings: Settings, dataset: Dataset, labels: Labels, *, seed: int) -> Run:
    """Search every case with all parts and with keywords alone; raises as `retrieve`."""
    systems = (EMBEDDER_DOWN, RERANKED)
    asked = Asked(dataset, read_cases(dataset, labels), (labels,), systems, seed=seed)
    return asyncio.run(retrieve(settings, asked)).run


def found_run(settings: Settings, name: str, dataset: Dataset, embedder: KnownEmbedder, reranker: KnownReranker) -> Run:
    """A run of this name; raises Rejected unless it was finished on this dataset with these models."""
    run = find_run(settings, name)
    record = run.record
    made = record.systems.get(RERANKED)
    if made is None or record.finished is None:
        raise Rejected(f"{run.folder}: not a finished run of {RERANKED!r}")
    if record.dataset.checksum != dataset.checksum:
        raise Rejected(f"{run.folder}: made on another dataset, {record.dataset.name}, or on what it was before")
    then = (record.models, made.get("embedder"), made.get("reranker"), made.get("candidates"))
    now = (models_of(settings), embedder.profile.name, reranker.profile.name, settings.retrieval.candidates)
    if then != now:
        raise Rejected(f"{run.folder}: made with other models or candidates than the settings have")
    return run


def calibrated(
    run: Run,
    dataset: Dataset,
    labels: Labels,
    zone_now: ZoneNow,
    limits: Limits,
    *,
    max_sources: int,
    seed: int,
    repeats: int,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Calibrated:
    """Study every regime; one in which too little was found is left out, but for the full one: raises Rejected."""
    cases = read_cases(dataset, labels)
    full = {case: candidates(found) for case, found in run.retrieved(labels, RERANKED).items()}
    found: dict[Regime, Mapping[str, Retrieved]] = {Regime.RERANKED: full}
    if EMBEDDER_DOWN in run.record.systems:
        keyword = run.retrieved(labels, EMBEDDER_DOWN)
        found[Regime.KEYWORD] = {case: candidates(one) for case, one in keyword.items()}
    found[Regime.RERANKER_DOWN] = {case: without_reranker(one) for case, one in full.items()}
    studies: dict[Regime, Study] = {}
    missing = {} if Regime.KEYWORD in found else {Regime.KEYWORD: f"the run has no system {EMBEDDER_DOWN!r}"}
    for regime, lists in found.items():
        try:
            judged, left_out = sample(cases, lists, regime, zone_now, max_sources=max_sources)
            studies[regime] = study(judged, left_out, limits, seed=seed, repeats=repeats, progress=progress)
        except Rejected as exc:
            if regime is Regime.RERANKED:
                raise
            missing[regime] = str(exc)
    return Calibrated(run, studies, missing)
