"""The service's own stages as systems: which channels search, and whether the reranker orders what they find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from eval.domain import Case, Hit, Retrieved
from eval.systems.question import Followups, question_of
from eval.systems.search import CaseSearch, SharedSearch
from eval.systems.system import DEPTH
from service.answer.ports import QueryEmbedder, Reranker
from service.answer.rerank import rerank
from service.answer.retrieve import retrieve
from service.domain import Candidate, Mode, PostId, Question, Trace
from service.errors import Transient
from service.settings import Channel, RetrievalSettings


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
    """Retrieval as configured, over these channels.

    `reranked`: the first `retrieval.candidates` of the fused list are reranked, the best post of each topic going
    before the other posts, as the sources of an answer are chosen; the rest of the list follows. Scores are then
    reciprocal ranks, since logits and fused scores don't compare.
    """

    name: str
    channels: tuple[Channel, ...]
    reranked: bool
    parts: Parts

    @property
    def switches(self) -> Mapping[str, object]:
        settings = self.parts.settings
        told: dict[str, object] = {"channels": list(self.channels), "rrf_k": settings.rrf_k}
        if Channel.VECTOR in self.channels:
            told["embedder"] = self.parts.embedder.profile.name
        if self.reranked:
            told |= {
                "reranker": self.parts.reranker.profile.name,
                "candidates": settings.candidates,
                "excerpt_chars": settings.excerpt_chars,
            }
        return told

    async def rank(self, case: Case) -> Retrieved:
        settings = self.parts.settings
        question = question_of(case, self.parts.followups, settings.question_chars)
        if Channel.VECTOR in self.channels:
            await self.parts.embedder.embed_query(question.text)  # raises: without it the service would go on
        search = CaseSearch(self.parts.search, case.exclude_post)
        trace = Trace()
        fused = await self._found(question, search, DEPTH, trace)
        if not self.reranked:
            ordered = sorted(fused, key=lambda one: (-self._score(one), one.topic_id, one.post_number))
            hits = tuple(Hit(one.topic_id, one.post_number, self._score(one)) for one in ordered)
            return self._retrieved(case, trace, hits, ordered, search.timings_ms)
        found = await self._found(question, search, settings.candidates, trace)
        start = perf_counter()
        floor = self.parts.embedder.profile.cosine_floor
        await rerank(question, found, self.parts.reranker, settings, floor, trace)
        search.timings_ms["rerank"] = (perf_counter() - start) * 1000
        if trace.mode is Mode.RERANKER_DOWN:
            raise Transient(f"the reranker is down, and {self.name} would measure as another system: try again")
        ordered = _first_of_each_topic_first(trace.candidates, fused)
        hits = tuple(Hit(one.topic_id, one.post_number, 1 / rank) for rank, one in enumerate(ordered, start=1))
        return self._retrieved(case, trace, hits, ordered, search.timings_ms)

    async def _found(self, question: Question, search: CaseSearch, depth: int, trace: Trace) -> list[Candidate]:
        settings = self.parts.settings.model_copy(update={"channels": self.channels, "candidates": depth})
        return await retrieve(question, self.parts.embedder, search, settings, trace)

    def _score(self, candidate: Candidate) -> float:
        """A lone channel's own score, else the fused one."""
        match self.channels:
            case (Channel.VECTOR,):
                return candidate.cosine or 0.0
            case (Channel.KEYWORD,):
                return candidate.bm25 or 0.0
        return candidate.fused

    def _retrieved(
        self,
        case: Case,
        trace: Trace,
        hits: tuple[Hit, ...],
        ordered: Sequence[Candidate],
        timings_ms: Mapping[str, float],
    ) -> Retrieved:
        return Retrieved(
            case_id=case.id,
            hits=hits,
            queries=tuple(trace.queries),
            mode=str(trace.mode or "") if self.reranked else "",
            zone=str(trace.zone or "") if self.reranked else "",
            logits=tuple(one.logit for one in ordered) if self.reranked else (),
            cosines=tuple(one.cosine for one in ordered),
            timings_ms=timings_ms,
        )


def _first_of_each_topic_first(reranked: Sequence[Candidate], fused: Sequence[Candidate]) -> list[Candidate]:
    topics: dict[int, Candidate] = {}
    for one in reranked:
        topics.setdefault(one.topic_id, one)
    ordered: dict[PostId, Candidate] = {one.post_id: one for one in topics.values()}
    for one in (*reranked, *fused):
        ordered.setdefault(one.post_id, one)
    return list(ordered.values())[:DEPTH]
