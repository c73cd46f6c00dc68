"""The lists that the bundled reranker would get, as numbers: what it is fitted on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.bundled.asked import Asked
from eval.domain import ANSWERS, Case, Hit, Labels, Retrieved
from eval.index import open_index
from eval.measures import Grain, first_ranks
from eval.systems import Followups, QueryVectors, open_systems
from eval.systems.question import question_of
from eval.systems.ranking import ABREAST
from eval.systems.search import CaseSearch, SharedSearch
from eval.systems.tasks import together
from service.answer.rerank import as_read
from service.answer.retrieve import retrieve
from service.domain import Trace
from service.inference.bundled_reranker import MAX_QUESTION_CHARS
from service.inference.pair_features import LIST_FEATURES, PAIR_FEATURES, features
from service.lexer import lexemes
from service.settings import RetrievalSettings, Settings
from service.store.search import SearchStore

APART = ("dense", "rrf")
"""The systems apart from the service that its lists are compared with."""

FUSED = "fused"


@dataclass(frozen=True, slots=True)
class List:
    """The candidates of one question: `pairs` (candidates, features), `whole` (features,), which of them answer.

    `cluster` names the topic whose questions stand or fall together. `ranks` are those of the first topic that answers,
    by system; None where none does. A question without a lexeme has no candidates.
    """

    labels: Labels
    dataset: str
    part: str
    cluster: str
    answerable: bool
    pairs: NDArray[np.float64]
    whole: NDArray[np.float64]
    right: NDArray[np.bool_]
    ranks: Mapping[str, int | None]


async def gathered(settings: Settings, asked: Asked, progress: Callable[[str, int, int], None]) -> list[List]:
    """Search every question of one forum; raises as open_index and searching do."""
    cases = (*asked.own, *asked.foreign)
    found: dict[int, List] = {}
    async with open_index(settings, asked.dataset, progress=progress) as at:
        vectors = QueryVectors(at.embedder, settings.home / "eval" / "vectors")
        search = SharedSearch(SearchStore(at.pool))
        apart = await open_systems(at, APART, vectors, Followups.FULL)
        waiting = enumerate(cases)

        async def search_in_turn() -> None:
            for place, case in waiting:
                others = {system.name: await system.rank(case) for system in apart} if case.answerable else {}
                found[place] = await _list(case, asked.dataset.name, vectors, search, others, settings.retrieval)
                progress(asked.dataset.name, len(found), len(cases))

        await together(*(search_in_turn() for _ in range(ABREAST)))
    return [found[place] for place in range(len(cases))]


async def _list(
    case: Case,
    dataset: str,
    vectors: QueryVectors,
    shared: SharedSearch,
    others: Mapping[str, Retrieved],
    settings: RetrievalSettings,
) -> List:
    question = question_of(case, Followups.FULL, settings.question_chars)
    await vectors.embed_query(question.text)  # raises: retrieval would go on without
    found = await retrieve(question, vectors, CaseSearch(shared, case.exclude_post), settings, Trace())
    hits = tuple(Hit(one.topic_id, one.post_number, one.fused) for one in found)
    lists = {**others, FUSED: Retrieved(case.id, hits)}
    wanted = lexemes(question.text[:MAX_QUESTION_CHARS])
    pairs, whole = np.empty((0, len(PAIR_FEATURES))), np.zeros(len(LIST_FEATURES))
    if wanted and found:
        seen = features(wanted, as_read(question, found, settings))
        pairs, whole = seen.pairs, seen.whole
    golden = {one.topic_id for one in case.golden if one.grade >= ANSWERS}
    return List(
        labels=case.labels,
        dataset=dataset,
        part=case.slice,
        cluster=f"{dataset} {case.cluster}",
        answerable=case.answerable,
        pairs=pairs,
        whole=whole,
        right=np.array([one.topic_id in golden for one in found][: len(pairs)], dtype=np.bool_),
        ranks={name: first_ranks([case], {case.id: one}, Grain.TOPIC).get(case.id) for name, one in lists.items()},
    )
