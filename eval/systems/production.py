"""The service's own stages as systems: which channels search, and whether the reranker orders what they find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from eval.domain import Case, Hit, Retrieved
from eval.systems.question import Followups, question_of
from eval.systems.search import CaseSearch, SharedSearch
from service.answer.condense.rules import VERSION
from service.answer.ports import QueryEmbedder, Reranker
from service.answer.rerank import rerank
from service.answer.retrieve import BY_VECTOR, retrieve
from service.domain import Candidate, Mode, Trace
from service.errors import Transient
from service.settings import Channel, RetrievalSettings

WORDED = frozenset({Channel.KEYWORD, Channel.TOPIC_KEYWORD})


@dataclass(frozen=True, slots=True)
class Parts:
    """What production systems share."""

    embedder: QueryEmbedder
    search: SharedSearch
    reranker: Reranker
    settings: RetrievalSettings
    followups: Followups


@dataclass(frozen=True, slots=True)
class Production:
    """Retrieval as configured, but over these channels; `reranked` adds the reranker.

    The candidates of an answer, all of them and no more, best first: one post a topic. A hit's score is the logit, or
    without the reranker the fused score.
    """

    name: str
    channels: tuple[Channel, ...]
    reranked: bool
    parts: Parts

    @property
    def switches(self) -> Mapping[str, object]:
        settings = self.parts.settings
        told: dict[str, object] = {
            "channels": [str(channel) for channel in self.channels],
            "weights": {str(one): settings.weights[one] for one in self.channels if one in settings.weights},
            "rrf_k": settings.rrf_k,
            "candidates": settings.candidates,
        }
        if self.parts.followups is Followups.CONDENSED:
            told["condense"] = {"version": VERSION, "message_percent": settings.message_percent}
        if WORDED & set(self.channels):
            told["keyword_words"] = settings.keyword_words
        if self._embeds:
            told["embedder"] = self.parts.embedder.profile.name
        if self.reranked:
            told |= {"reranker": self.parts.reranker.profile.name, "excerpt_chars": settings.excerpt_chars}
        return told

    async def rank(self, case: Case) -> Retrieved:
        settings = self.parts.settings.model_copy(update={"channels": self.channels})
        question = question_of(case, self.parts.followups, settings.question_chars)
        if self._embeds:
            for query in question.queries:
                await self.parts.embedder.embed_query(query)  # raises: without it the service would go on
        search = CaseSearch(self.parts.search, case.exclude_post)
        trace = Trace()
        found = await retrieve(question, self.parts.embedder, search, settings, trace)
        if not self.reranked:
            ordered = sorted(found, key=lambda one: (-one.fused, one.topic_id, one.post_number))
            hits = tuple(Hit(one.topic_id, one.post_number, one.fused) for one in ordered)
            return _retrieved(case, trace, hits, ordered, search.timings_ms)
        start = perf_counter()
        floor = self.parts.embedder.profile.cosine_floor
        await rerank(question, found, self.parts.reranker, settings, floor, trace)
        search.timings_ms["rerank"] = (perf_counter() - start) * 1000
        if trace.mode is Mode.RERANKER_DOWN:
            raise Transient(f"the reranker is down, and {self.name} would measure as another system: try again")
        hits = tuple(Hit(one.topic_id, one.post_number, one.logit or 0.0) for one in trace.candidates)
        return _retrieved(case, trace, hits, trace.candidates, search.timings_ms)

    @property
    def _embeds(self) -> bool:
        return bool(BY_VECTOR.intersection(self.channels))


def _retrieved(
    case: Case, trace: Trace, hits: tuple[Hit, ...], ordered: Sequence[Candidate], timings_ms: Mapping[str, float]
) -> Retrieved:
    """`mode` and `zone` are the reranker's word: without it a production system has none."""
    reranked = trace.zone is not None
    return Retrieved(
        case_id=case.id,
        hits=hits,
        queries=tuple(trace.queries),
        mode=str(trace.mode or "") if reranked else "",
        zone=str(trace.zone or "") if reranked else "",
        logits=tuple(one.logit for one in ordered) if reranked else (),
        cosines=tuple(one.cosine for one in ordered),
        timings_ms=timings_ms,
    )
