"""The stages from a question to the text of an answer, one line each."""

from collections.abc import Collection
from dataclasses import dataclass

from service.answer.evidence import number_sources
from service.answer.markup.links import links
from service.answer.messages import Message, message
from service.answer.ports import Answerer, DetectLanguage, QueryEmbedder, Reranker, Search
from service.answer.rerank import rerank
from service.answer.retrieve import retrieve
from service.answer.sanitize import LONGEST_POST, sanitize
from service.domain import Answer, Draft, PostId, Question, Result, Source, Trace, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import query_lexemes
from service.settings import RetrievalSettings
from service.telemetry import ANSWERS, timed, went_without

RESERVED_CHARS = 1_000
"""Left of the forum's limit for what is put after an answer: its notes and its footer."""


@dataclass(frozen=True, slots=True)
class Stages:
    """What the pipeline works with."""

    embedder: QueryEmbedder
    search: Search
    reranker: Reranker
    answerer: Answerer
    detect_language: DetectLanguage
    settings: RetrievalSettings
    base_url: str


async def answer(
    question: Question, stages: Stages, trace: Trace, *, seed: int, without: Collection[PostId] = ()
) -> Answer:
    """Answer from the forum's posts, leaving out the posts `without`; the trace gets what each stage found.

    `seed` chooses among the wordings of the server's own texts. Raises Transient when the index can't be searched.
    """
    settings, timings = stages.settings, trace.timings_ms
    trace.lang = question.lang
    with timed("retrieve", timings):
        found = await retrieve(question, stages.embedder, stages.search, settings, trace)
    with timed("rerank", timings):
        known = [candidate for candidate in found if candidate.post_id not in without]
        floor = stages.embedder.profile.cosine_floor
        ranked = await rerank(question, known, stages.reranker, settings, floor, trace)
    with timed("evidence", timings):
        wanted = query_lexemes(question.text)
        trace.sources = sources = number_sources(ranked.candidates, wanted, settings.evidence_chars)
    if ranked.zone is Zone.ABSTAIN:
        return _counted(abstention(question, trace, sources, seed=seed))
    with timed("generate", timings):
        draft = await _draft(question, sources, ranked.zone, stages.answerer, trace)
    with timed("sanitize", timings):
        return _counted(_answer(question, draft, sources, ranked.zone, stages, trace, seed))


async def _draft(
    question: Question, sources: tuple[Source, ...], zone: Zone, answerer: Answerer, trace: Trace
) -> Draft | None:
    """The answerer's draft, or None when it is down: the sources then speak for themselves."""
    try:
        draft = await answerer.draft(question, sources, zone)
    except (Transient, Rejected, Misconfigured) as exc:
        trace.notes.append(went_without("answerer", exc))
        return None
    trace.draft, trace.drafted_by = draft.text, draft.by
    trace.notes.extend(draft.notes)
    return draft


def _answer(
    question: Question,
    draft: Draft | None,
    sources: tuple[Source, ...],
    zone: Zone,
    stages: Stages,
    trace: Trace,
    seed: int,
) -> Answer:
    """The sanitized draft; without one that cites, the list of sources; in the weak zone after the caution."""
    caution = message(Message.CAUTION, question.lang, seed) if zone is Zone.WEAK else ""
    if draft:
        longest = LONGEST_POST - RESERVED_CHARS
        clean = sanitize(
            draft.text,
            sources if draft.shown is None else sources[: len(draft.shown)],
            zone=zone,
            base_url=stages.base_url,
            lang=draft.lang,
            caution=caution,
            prompt=draft.prompt,
            longest=longest,
        )
        trace.removed = dict(clean.removed)
        if clean.post is not None:
            return Answer(Result.ANSWERED, clean.post, zone, trace.mode, sources, clean.cited)
    trace.notes.append("sources_alone")
    text = "\n\n".join(filter(None, (caution, _source_list(question, sources, stages.base_url, seed))))
    return Answer(Result.ANSWERED, text, zone, trace.mode, sources, tuple(source.n for source in sources))


def abstention(question: Question, trace: Trace, sources: tuple[Source, ...] = (), *, seed: int) -> Answer:
    """The server's own "I found nothing": no model is called."""
    trace.zone = Zone.ABSTAIN
    text = message(Message.ABSTAIN, question.lang, seed, question=question.title or question.text)
    return Answer(Result.ABSTAINED, text, Zone.ABSTAIN, trace.mode, sources)


def _source_list(question: Question, sources: tuple[Source, ...], base_url: str, seed: int) -> str:
    intro = message(Message.SOURCES_INTRO, question.lang, seed, question=question.title or question.text)
    return "\n".join((intro, "", *(f"- {links(source.n, source, base_url)[0]}" for source in sources)))


def _counted(answered: Answer) -> Answer:
    ANSWERS.labels(answered.result, answered.zone or "none", answered.mode or "none").inc()
    return answered
