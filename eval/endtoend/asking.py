"""Asks the production pipeline one question, nothing posted, and keeps what it said, drafted and went through."""

from dataclasses import replace
from typing import cast

from eval.domain import Answered, Case, CitedSource
from eval.systems.legacy import CaseTopics
from eval.systems.search import CaseSearch, SharedSearch
from service.answer.gate.admit import Gating, admitted
from service.answer.gate.compiled import Gate
from service.answer.pipeline import Stages, answer
from service.domain import Answer, Lang, Question, Result, Trace
from service.errors import Transient
from service.store.search import SearchStore
from service.store.topic_search import TopicSearchStore

SEED = 0
"""Which of the server's own wordings is said: always the same."""


def question_of(case: Case, stages: Stages) -> Question:
    """The case as a member's post would ask it: as much of it as is read, its language told as in production."""
    text = case.question[: stages.settings.question_chars]
    lang = stages.detect_language(text, fallback=Lang(case.lang))
    return Question(text, lang, exclude_from=case.exclude_from, history=case.history)


def stages_of(case: Case, stages: Stages) -> Stages:
    """The stages over an index without the post that the case excludes, which is searched as `eval.systems` does."""
    if case.exclude_post is None:
        return stages
    store = cast("SearchStore", stages.search)  # what every index of evaluation is opened with
    legacy = stages.legacy
    if legacy is not None:
        legacy = replace(legacy, search=CaseTopics(cast("TopicSearchStore", legacy.search), case.exclude_post))
    return replace(stages, search=CaseSearch(SharedSearch(store), case.exclude_post), legacy=legacy)


async def ask(name: str, question: Question, stages: Stages, gate: Gate | None = None) -> Answered:
    """What the pipeline says to the question, behind the gate if one is given, under the id `name`.

    A question that must be tried later has failed. Raises Misconfigured where a person must act.
    """
    trace = Trace()
    try:
        passed = await admitted(question, _gating(gate, question), stages.condenser, trace, seed=SEED)
        said = passed if isinstance(passed, Answer) else await answer(passed, stages, trace, seed=SEED)
    except Transient:
        said = Answer(Result.FAILED, "", trace.zone, trace.mode)
    return Answered(
        case_id=name,
        result=said.result,
        zone=said.zone or "",
        mode=said.mode or "",
        markdown=said.markdown,
        sources=tuple(
            CitedSource(source.n, source.topic_id, source.post_number, source.excerpt, source.n in said.cited)
            for source in said.sources
        ),
        draft=trace.draft,
        drafted_by=trace.drafted_by,
        notes=tuple(trace.notes),
        timings_ms=dict(trace.timings_ms),
    )


def _gating(gate: Gate | None, question: Question) -> Gating | None:
    if gate is None:
        return None
    return Gating(gate, tuple(text for role, text in question.history if role == "user"))
