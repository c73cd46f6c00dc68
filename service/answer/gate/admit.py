"""Puts a question to the gate with all that it brings along from its topic, before anything is searched."""

from dataclasses import dataclass, replace

from service.answer.condense.condenser import Condenser
from service.answer.condense.in_full import in_full
from service.answer.gate.compiled import Gate
from service.answer.gate.decline import gate_answer
from service.answer.gate.match import decide
from service.domain import Answer, Question, Trace
from service.telemetry import timed

LEFT_OUT = "declined_turn_left_out"
"""Noted where something said before the question is kept from it."""


@dataclass(frozen=True, slots=True)
class Gating:
    """The gate's rules, and the member's own turns before the question, oldest first."""

    rules: Gate
    earlier: tuple[str, ...]


async def admitted(
    question: Question, gating: Gating | None, condenser: Condenser, trace: Trace, *, seed: int
) -> Question | Answer:
    """The question in full as the stages may have it, or the gate's reply to it; without `gating` the gate is off.

    A message that passes must not carry in what was declined before it: turns that a rule declines, whoever's they are,
    are left out of its history. What it is condensed to has to pass too, and the message once more, read after that.
    """
    if gating is None:
        return await in_full(question, condenser, trace)
    if said := gate_answer(gating.rules, question.text, gating.earlier, question.lang, trace, seed=seed):
        return said
    with timed("gate", trace.timings_ms):
        history = _passing(gating.rules, question.history)
    if history != question.history:
        trace.notes.append(LEFT_OUT)
    question = await in_full(replace(question, history=history), condenser, trace)
    if not question.condensed:
        return question
    # What was carried over stands too far from the message for a rule that wants its words near each other.
    for text, earlier in ((question.condensed, gating.earlier), (question.text, (question.condensed,))):
        if said := gate_answer(gating.rules, text, earlier, question.lang, trace, seed=seed):
            return said
    return question


def _passing(rules: Gate, turns: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The turns that no rule declines, each read after what people said before it; ours may quote what they asked."""
    passing: list[tuple[str, str]] = []
    said: list[str] = []
    for role, text in turns:
        if decide(rules, text, () if role == "bot" else said) is None:
            passing.append((role, text))
        if role != "bot":
            said.append(text)
    return tuple(passing)
