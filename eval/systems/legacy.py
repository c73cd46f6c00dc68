"""The service's legacy path as a system: whole topics by keywords, without a vector, not reranked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from eval.domain import Case, Hit, Retrieved
from eval.systems.question import Followups, question_of
from eval.systems.system import DEPTH
from service.answer.legacy import retrieve_by_topic
from service.answer.ports import TopicMatch
from service.domain import TopicId, Trace
from service.settings import RetrievalSettings
from service.store.topic_search import TopicSearchStore


@dataclass(frozen=True, slots=True)
class Legacy:
    """One post a topic, the best for the question's words; what it serves is then reranked, as on every path."""

    search: TopicSearchStore
    settings: RetrievalSettings
    followups: Followups
    name: str = "legacy"

    @property
    def switches(self) -> Mapping[str, object]:
        told = self.settings
        return {
            "words": told.legacy_words,
            "gate_percent": told.legacy_gate_percent,
            "boost_percent": told.legacy_boost_percent,
        }

    async def rank(self, case: Case) -> Retrieved:
        question = question_of(case, self.followups, self.settings.question_chars)
        search = CaseTopics(self.search, case.exclude_post)
        start = perf_counter()
        deep = self.settings.model_copy(update={"candidates": DEPTH})
        found = await retrieve_by_topic(question, search, deep, Trace())
        hits = tuple(Hit(one.topic_id, one.post_number, one.fused) for one in found)
        return Retrieved(case.id, hits, (question.text,), timings_ms={"topics": (perf_counter() - start) * 1000})


@dataclass(frozen=True, slots=True)
class CaseTopics:
    """Matches `service.answer.ports.TopicSearch`, for one case."""

    search: TopicSearchStore
    exclude_post: tuple[TopicId, int] | None

    async def keyword_topics(
        self, lexemes: Sequence[str], limit: int, *, words: int, exclude_from: tuple[TopicId, int] | None = None
    ) -> list[TopicMatch]:
        return await self.search.keyword_topics(
            lexemes, limit, words=words, exclude_from=exclude_from, exclude_post=self.exclude_post
        )
