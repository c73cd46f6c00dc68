"""Puts a question in full, once, before it is searched."""

from dataclasses import replace

from service.answer.condense.condenser import Condenser
from service.domain import Question, Trace
from service.telemetry import timed


async def in_full(question: Question, condenser: Condenser, trace: Trace) -> Question:
    """The question with what it leans on, decided once: every later stage searches and scores the same queries."""
    with timed("condense", trace.timings_ms):
        if not question.history:
            return question
        condensed = await condenser.condense(question)
    if condensed.by:
        trace.notes.append(f"condensed_by_{condensed.by}")
    trace.notes.extend(condensed.notes)
    exclude_from = question.exclude_from
    if condensed.text and exclude_from and question.history_from is not None:
        # The posts whose words are in the query would be found by it, and the member has just read them.
        exclude_from = (exclude_from[0], min(exclude_from[1], question.history_from))
    return replace(question, condensed=condensed.text, spent=condensed.spent, exclude_from=exclude_from)
