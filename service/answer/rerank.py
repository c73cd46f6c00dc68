"""Orders the candidates by the reranker's logits, one post a topic; as fused when it is down (spec P8, P15)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.answer.distinct import distinct
from service.answer.evidence import excerpt
from service.answer.ports import Reranker
from service.answer.zones import zone_of_list, zone_without_reranker
from service.domain import Candidate, Mode, Question, TopicId, Trace, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import query_lexemes
from service.settings import RetrievalSettings
from service.telemetry import TOP_LOGIT, went_without


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best post of each of the best topics, best first, none saying what another does, and the zone they allow."""

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
        shortened = await asyncio.to_thread(as_read, question, found, settings)
        logits = await reranker.rerank(question.scored, shortened) if found else []
    except (Transient, Rejected, Misconfigured) as exc:
        trace.mode = Mode.RERANKER_DOWN
        trace.notes.append(went_without("reranker", exc))
        ordered = sorted(found, key=lambda one: -one.fused)
        zone = zone_without_reranker(_top_cosine(found), cosine_floor)
    else:
        scored = [replace(one, logit=logit) for one, logit in zip(found, logits, strict=True)]
        ordered = sorted(scored, key=_by_logit)
        cosine = _top_cosine(found)
        best_first = [one.logit for one in ordered if one.logit is not None]
        zone = zone_of_list(best_first, cosine, reranker.profile, trace.mode)
        if best_first:
            TOP_LOGIT.observe(best_first[0])
    trace.candidates, trace.zone = ordered, zone
    return Ranked(tuple(distinct(_one_a_topic(ordered))[: settings.max_sources]), zone)


def as_read(question: Question, found: Sequence[Candidate], settings: RetrievalSettings) -> list[Candidate]:
    """The candidates as the reranker reads them: the title, and the part of the post that matches best."""
    wanted = query_lexemes(question.scored)
    return [replace(one, body=excerpt(one.body, wanted, settings.excerpt_chars)) for one in found]


def _by_logit(candidate: Candidate) -> tuple[float, float]:
    return (-candidate.logit if candidate.logit is not None else float("inf"), -candidate.fused)


def _top_cosine(found: Sequence[Candidate]) -> float | None:
    """The highest cosine of a post, also of one that its topic's candidate is better than by its words."""
    cosines = [one.topic.cosine if one.topic else one.cosine for one in found]
    return max((cosine for cosine in cosines if cosine is not None), default=None)


def _one_a_topic(ordered: Sequence[Candidate]) -> tuple[Candidate, ...]:
    best: dict[TopicId, Candidate] = {}
    for candidate in ordered:
        best.setdefault(candidate.topic_id, candidate)
    return tuple(best.values())
