"""Orders the candidates by the reranker's logits, one post a topic; by cosine when it is down (spec P8, P15)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.answer.evidence import excerpt
from service.answer.ports import Reranker
from service.answer.zones import zone_of_list, zone_without_reranker
from service.domain import Candidate, Mode, Question, TopicId, Trace, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import query_lexemes
from service.settings import RetrievalSettings
from service.telemetry import went_without


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best post of each of the best topics, best first, and the zone they allow."""

    candidates: tuple[Candidate, ...]
    zone: Zone


async def rerank(
    question: Question,
    found: Sequence[Candidate],
    reranker: Reranker,
    settings: RetrievalSettings,
    cosine_floor: float,
    trace: Trace,
) -> Ranked:
    """Score and order the candidates; the trace keeps them all with their logits.

    Without the reranker the zone is weak at best, and abstain under `cosine_floor`: losing it never loses abstention.
    """
    try:
        # Up to a tenth of a second over long posts: the worker goes on meanwhile.
        shortened = await asyncio.to_thread(_shortened, question, found, settings)
        logits = await reranker.rerank(question.text, shortened) if found else []
    except (Transient, Rejected, Misconfigured) as exc:
        trace.mode = Mode.RERANKER_DOWN
        trace.notes.append(went_without("reranker", exc))
        ordered = sorted(found, key=_by_cosine)
        zone = zone_without_reranker(ordered[0].cosine if ordered else None, cosine_floor)
    else:
        scored = [replace(one, logit=logit) for one, logit in zip(found, logits, strict=True)]
        ordered = sorted(scored, key=_by_logit)
        cosine = max((one.cosine for one in ordered if one.cosine is not None), default=None)
        best_first = [one.logit for one in ordered if one.logit is not None]
        zone = zone_of_list(best_first, cosine, reranker.profile, trace.mode)
    trace.candidates, trace.zone = ordered, zone
    return Ranked(_one_a_topic(ordered)[: settings.max_sources], zone)


def _shortened(question: Question, found: Sequence[Candidate], settings: RetrievalSettings) -> list[Candidate]:
    """The candidates as the reranker reads them: the title, and the part of the post that matches best."""
    wanted = query_lexemes(question.text)
    return [replace(one, body=excerpt(one.body, wanted, settings.excerpt_chars)) for one in found]


def _by_logit(candidate: Candidate) -> tuple[float, float]:
    return (-candidate.logit if candidate.logit is not None else float("inf"), -candidate.fused)


def _by_cosine(candidate: Candidate) -> tuple[float, float]:
    return (-candidate.cosine if candidate.cosine is not None else float("inf"), -candidate.fused)


def _one_a_topic(ordered: Sequence[Candidate]) -> tuple[Candidate, ...]:
    best: dict[TopicId, Candidate] = {}
    for candidate in ordered:
        best.setdefault(candidate.topic_id, candidate)
    return tuple(best.values())
