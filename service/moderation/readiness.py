"""The four cells of the first page: whether search, library, ranking and generation do their part (spec L8)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.ingest.ports import Census
from service.settings.models import AnswererKind, ModelSettings, RerankerKind
from service.store.parts import PartState


class Readiness(StrEnum):
    """How a part stands: as configured, going on with less, unable, not used yet, or not installed."""

    READY = "ready"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Cell:
    """One part for people: `why` is the key of its sentence in `home.yml`."""

    part: str
    readiness: Readiness
    why: str


def readiness(parts: Mapping[str, PartState], census: Census, models: ModelSettings) -> tuple[Cell, ...]:
    """The cells, by what the workers last said of their parts and by what the index holds."""
    return _search(parts, census), Cell("library", Readiness.ABSENT, "why_no_library"), *_models(parts, models)


def _search(parts: Mapping[str, PartState], census: Census) -> Cell:
    if not census.indexed:
        return Cell("search", Readiness.DOWN, "why_empty")
    if "embedder" not in parts:
        return Cell("search", Readiness.DOWN, "why_no_worker")
    works = parts["embedder"].works
    if works is None:
        return Cell("search", Readiness.UNKNOWN, "why_not_used")
    if not works:
        return Cell("search", Readiness.DEGRADED, "why_words_alone")
    if census.left_to_embed:
        return Cell("search", Readiness.DEGRADED, "why_left_to_embed")
    return Cell("search", Readiness.READY, "why_search_works")


def _models(parts: Mapping[str, PartState], models: ModelSettings) -> tuple[Cell, Cell]:
    ranking = "why_bundled_ranking" if models.reranker.kind is RerankerKind.BUNDLED else "why_ranking_works"
    quoting = models.answerer.kind is AnswererKind.EXTRACTIVE
    return (
        _model("ranking", parts.get("reranker"), ranking, "why_without_ranking"),
        Cell("generation", Readiness.READY, "why_quoting")
        if quoting and "model" in parts
        else _model("generation", parts.get("model"), "why_generation_works", "why_without_model"),
    )


def _model(name: str, state: PartState | None, works: str, fails: str) -> Cell:
    if state is None:
        return Cell(name, Readiness.DOWN, "why_no_worker")
    if state.works is None:
        return Cell(name, Readiness.UNKNOWN, "why_not_used")
    return Cell(name, Readiness.READY, works) if state.works else Cell(name, Readiness.DEGRADED, fails)
