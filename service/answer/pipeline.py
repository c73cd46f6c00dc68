"""The stages from a question to the text of an answer, one line each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module

from service.answer.abstain import abstention
from service.answer.checking import Checker, Checking, Written
from service.answer.condense.condenser import Condenser, RuleCondenser
from service.answer.evidence import number_sources
from service.answer.ports import Answerer, DetectLanguage, QueryEmbedder, Reranker, Search, SentenceEmbedder
from service.answer.recall import Legacy, recall
from service.answer.rerank import rerank
from service.domain import Answer, Candidate, Draft, PostId, Question, Source, Trace, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import query_lexemes
from service.settings import RetrievalSettings
from service.telemetry import ANSWERS, timed, went_without


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
    condenser: Condenser = field(default_factory=RuleCondenser)
    sentences: SentenceEmbedder | None = None
    checker: Checker | None = None
    legacy: Legacy | None = None
    sources_alone: bool = False
    """Nothing is drafted: the list of the sources is the answer."""


async def answer(
    question: Question, stages: Stages, trace: Trace, *, seed: int, without: Collection[PostId] = ()
) -> Answer:
    """Answer a question in full from the forum's posts but those `without`; the trace gets what each stage found.

    `seed` chooses among the wordings of the server's own texts. Raises Transient when the index can't be searched.
    """
    settings, timings = stages.settings, trace.timings_ms
    trace.lang = question.lang
    with timed("retrieve", timings):
        found = await recall(question, stages.embedder, stages.search, stages.legacy, settings, trace)
    with timed("rerank", timings):
        known = [candidate for candidate in found if candidate.post_id not in without]
        floor = stages.embedder.profile.cosine_floor
        ranked = await rerank(question, known, stages.reranker, settings, floor, trace)
    with timed("evidence", timings):
        wanted = query_lexemes(question.scored)
        trace.sources = sources = number_sources(ranked.candidates, wanted, settings.evidence_chars)
    if ranked.zone is Zone.ABSTAIN:
        return _counted(abstention(question, trace, sources, base_url=stages.base_url, seed=seed))
    draft = None
    if not stages.sources_alone:
        with timed("generate", timings):
            draft = await _draft(question, sources, ranked.zone, stages.answerer, trace)
    written = Written(draft, sources)
    if draft and draft.lang is not None:  # quotes are their own support
        with timed("check", timings):
            from service.answer.checked import checked  # slow to import: see `warm_up`

            checking = Checking(stages.answerer, stages.checker, stages.sentences)
            again = partial(_search_again, question, known, without, stages, trace)
            written = await checked(question, draft, sources, ranked.zone, checking, again, trace, seed=seed)
    trace.sources = written.sources
    with timed("sanitize", timings):
        from service.answer.finish import finish

        return _counted(finish(question, written, ranked.zone, trace, base_url=stages.base_url, seed=seed))


def warm_up() -> None:
    """Import and compile what the last stage uses (0.2 s): best in a thread, while the models work."""
    import_module("service.answer.checked")
    import_module("service.answer.finish").warm_up()


async def _draft(
    question: Question, sources: tuple[Source, ...], zone: Zone, answerer: Answerer, trace: Trace
) -> Draft | None:
    """The answerer's draft, or None when it is down: the sources then speak for themselves."""
    try:
        draft = await answerer.draft(question, sources, zone)
    except (Transient, Rejected, Misconfigured) as exc:
        trace.notes.append(went_without("answerer", exc))
        return None
    trace.draft, trace.drafted_by, trace.evidence = draft.text, draft.by, draft.evidence
    trace.notes.extend(draft.notes)
    return draft


async def _search_again(
    question: Question,
    known: Sequence[Candidate],
    without: Collection[PostId],
    stages: Stages,
    trace: Trace,
    missing: str,
) -> tuple[Source, ...]:
    """The evidence once more, with what a search for `missing` finds; how sure the first was of it stays."""
    zone, mode, queries = trace.zone, trace.mode, trace.queries
    asked = replace(question, text=missing, condensed="")
    found = await recall(asked, stages.embedder, stages.search, stages.legacy, stages.settings, trace)
    every = {one.post_id: one for one in (*found, *known) if one.post_id not in without}
    wanted = replace(question, condensed=f"{question.scored}\n{missing}")
    floor = stages.embedder.profile.cosine_floor
    ranked = await rerank(wanted, list(every.values()), stages.reranker, stages.settings, floor, trace)
    trace.zone, trace.mode, trace.queries = zone, mode, [*queries, missing]
    return number_sources(ranked.candidates, query_lexemes(wanted.scored), stages.settings.evidence_chars)


def _counted(answered: Answer) -> Answer:
    ANSWERS.labels(answered.result, answered.zone or "none", answered.mode or "none").inc()
    return answered
