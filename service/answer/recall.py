"""Which path finds the candidates: the posts pipeline, or the legacy hybrid in its place (spec P7, P14)."""

from dataclasses import dataclass

from service.answer.legacy import retrieve_by_topic
from service.answer.ports import FlagReader, QueryEmbedder, Search, TopicSearch
from service.answer.retrieve import BY_VECTOR, retrieve
from service.domain import Candidate, Question, Trace
from service.errors import Transient
from service.settings import RetrievalSettings
from service.telemetry import went_without

SWITCHED_OFF = "posts_pipeline_off"


@dataclass(frozen=True, slots=True)
class Legacy:
    """The index of the legacy path, and the switches that put it in place of the posts pipeline.

    Without switches it only stands in: who asks by a command tries the posts pipeline before it is switched on.
    """

    search: TopicSearch
    flags: FlagReader | None = None


async def recall(
    question: Question,
    embedder: QueryEmbedder,
    search: Search,
    legacy: Legacy | None,
    settings: RetrievalSettings,
    trace: Trace,
) -> list[Candidate]:
    """The candidates, best first; the trace's mode says which path found them, its notes why.

    The legacy path serves while posts_pipeline is off, where a search of a channel fails, and where every channel looks
    for vectors and there are none. While the embedder is down the channels of words go on: they find more than it does
    (docs/adr/0011). Raises Transient when the index can't be searched by either path.
    """
    if legacy is None:
        return await retrieve(question, embedder, search, settings, trace)
    if legacy.flags and not (await legacy.flags.read()).posts_pipeline:
        trace.notes.append(SWITCHED_OFF)
        return await retrieve_by_topic(question, legacy.search, settings, trace)
    try:
        found = await retrieve(question, embedder, search, settings, trace)
    except Transient as exc:
        found = await retrieve_by_topic(question, legacy.search, settings, trace)
        trace.notes.append(went_without("search", exc))
        return found
    if found or not BY_VECTOR.issuperset(settings.channels):
        return found
    return await retrieve_by_topic(question, legacy.search, settings, trace)
