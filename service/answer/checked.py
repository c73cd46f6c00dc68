"""A written draft on its way to a post: held against its sources, checked by the model, written anew once (spec A3).

When calls or time run short, a question does without the model's check first, then without the second draft: a draft
whose check was not made goes out if its sources bear it, and the trace says that it wasn't checked.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from service.answer.checking import Checking, DraftFault, Written
from service.answer.support.claims import Support
from service.answer.verify import cites, hold
from service.domain import Draft, Question, Source, Spent, Trace, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.telemetry import CHECKS, went_without

SearchAgain = Callable[[str], Awaitable[tuple[Source, ...]]]
"""The sources with what a search for this finds, numbered anew."""

MOST_SEARCHED = 3
"""Unsupported sentences that are searched for where the model names nothing that is missing."""


@dataclass(frozen=True, slots=True)
class _Examined:
    draft: Draft
    passed: bool
    missing: tuple[str, ...]
    spent: Spent


async def checked(
    question: Question,
    draft: Draft,
    sources: tuple[Source, ...],
    zone: Zone,
    deps: Checking,
    again: SearchAgain,
    trace: Trace,
    *,
    seed: int,
) -> Written:
    """The draft if it passes; else one corrective search, one second draft, then the limit. The trace keeps both.

    Raises Transient when the index can't be searched again.
    """
    if not cites(draft, sources):  # it declines, or knows nothing: no other evidence would change that
        return Written(None, sources)
    first = await _examined(question, draft, sources, zone, deps, trace, seed=seed)
    if first.passed:
        return Written(first.draft, sources)
    if deps.checker is None:
        return Written(None, sources)
    if not deps.checker.allows(first.spent, first.spent.seconds / 2):
        trace.checks.append("no second draft: no time")
        return Written(None, sources, limit=True)
    more = await again("\n".join(first.missing) or question.scored)
    asked_again = replace(question, spent=first.spent)
    try:
        second = await deps.answerer.draft(asked_again, more, zone)
    except (Transient, Rejected, Misconfigured) as exc:
        went_without("second_draft", exc)
        trace.checks.append("no second draft: model down")
        return Written(None, more, limit=True)
    if second.lang is None:  # what stands in for the model only quotes, from sources that led nowhere
        trace.checks.append("no second draft: model down")
        return Written(None, more, limit=True)
    trace.first_draft, trace.draft, trace.drafted_by = trace.draft, second.text, second.by
    trace.evidence = second.evidence
    trace.notes.extend(second.notes)
    last = await _examined(asked_again, second, more, zone, deps, trace, seed=seed)
    return Written(last.draft, more) if last.passed else Written(None, more, limit=True)


async def _examined(
    question: Question,
    draft: Draft,
    sources: Sequence[Source],
    zone: Zone,
    deps: Checking,
    trace: Trace,
    *,
    seed: int,
) -> _Examined:
    held = await hold(question, draft, sources, deps.embedder, trace, seed=seed)
    if not held.stands:
        trace.checks.append("failed: nothing that cites is supported")
        return _Examined(held.draft, False, (), draft.spent)
    if deps.checker is None:
        return _Examined(held.draft, True, (), draft.spent)
    kept = [claim for claim, one in held.judged.items() if one.support is not Support.NONE and claim.says_something]
    sentences = [" ".join((claim.text, *(f"[[{n}]]" for n in claim.cites if claim.own))) for claim in kept]
    found = await deps.checker.check(question, draft, sentences, sources)
    if found.verdict is None:
        CHECKS.labels("not_made").inc()
        trace.checks.append(f"not made: {found.not_made}")
        return _Examined(held.draft, True, (), found.spent)
    near_enough = set() if zone is Zone.NORMAL else {DraftFault.OFF_QUESTION}  # the weak zone only comes near
    faults = sorted(found.verdict.faults - near_enough)
    CHECKS.labels("failed" if faults else "passed").inc()
    trace.checks.append(f"failed: {', '.join(faults)}" if faults else "passed")
    # What a draft says without support may stand in another post.
    unsupported = tuple(claim.text for n in found.verdict.unsupported if not (claim := kept[n - 1]).code)[
        :MOST_SEARCHED
    ]
    return _Examined(held.draft, not faults, found.verdict.missing or unsupported, found.spent)
