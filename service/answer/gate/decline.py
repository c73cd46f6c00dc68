"""What the gate does with a question: lets it through, or answers it in the server's own words without any model."""

from collections.abc import Sequence
from typing import Protocol

from service.answer.gate.compiled import Gate
from service.answer.gate.match import Decline, decide
from service.answer.messages import Message, message
from service.domain import Answer, Lang, Post, Result, Trace
from service.telemetry import GATED, timed


class Turns(Protocol):
    async def before(self, post: Post, limit: int) -> tuple[str, ...]:
        """The texts of the last `limit` posts that the post's author wrote before it in its topic, oldest first."""
        ...


def gate_answer(gate: Gate, text: str, earlier: Sequence[str], lang: Lang, trace: Trace, *, seed: int) -> Answer | None:
    """The reply to a message that a rule declines, tagged GATED, or None; the trace gets the rule and its kind.

    `earlier` are the member's own turns before it, oldest first. The reply repeats nothing of the message.
    """
    with timed("gate", trace.timings_ms):
        found = decide(gate, text, earlier)
    if found is None:
        return None
    GATED.labels(found.kind, found.rule).inc()
    trace.notes.append(f"gate:{found.kind}:{found.rule}")
    return declined(found, lang, seed=seed)


def declined(found: Decline, lang: Lang, *, seed: int) -> Answer:
    """One of the wordings of a decline, chosen by `seed`."""
    return Answer(Result.GATED, message(Message(f"decline_{found.kind}"), lang, seed))
