"""Condenses with the language model: its rewriting is checked, and rules do it where it fails or time is short."""

import asyncio
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from service.answer.condense.condenser import Condensed, RuleCondenser
from service.answer.condense.dependence import Dependence, dependence
from service.answer.condense.rules import HUMAN_TURNS, MAX_CHARS, MIN_CHARS, addressed, clean
from service.answer.generate import CallLimits, new_delimiter
from service.answer.markup.reasoning import strip_hidden
from service.answer.ports import ChatModel, DetectLanguage
from service.answer.prompt import as_data
from service.answer.templates import DEFAULT, render
from service.domain import ChatMessage, Question, Role, Spent
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import lexemes
from service.telemetry import went_without

TOKENS = 80
"""Most of a rewriting (spec P6)."""
SHARE = 0.25
"""Of the question's time for model calls, the most that a rewriting may take."""
LEAST_SECONDS = 5.0
"""A shorter share isn't worth a call: the time is the draft's."""
LEAST_CALLS = 2
"""With fewer calls for a question, the only one is the draft's."""
TURN_CHARS = 500
FROM_THREAD = 0.5
"""The least share of a rewriting's content words that somebody in the thread has said."""
REMEMBERED = 64
"""Rewritings kept: a question that is tried again asks for the same."""

SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string", "maxLength": MAX_CHARS}},
    "required": ["question"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class RewriteOptions(CallLimits):
    """`model` is its name in notes, `variant` that of the prompt."""

    model: str
    variant: str = DEFAULT


class ModelCondenser:
    """Condenser that asks the language model about messages which, by the rules, lean on earlier turns."""

    def __init__(
        self,
        model: ChatModel,
        detect_language: DetectLanguage,
        options: RewriteOptions,
        *,
        delimiter: Callable[[], str] = new_delimiter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._detect_language = detect_language
        self._options = options
        self._delimiter = delimiter
        self._clock = clock
        self._rules = RuleCondenser()
        self._known: OrderedDict[object, str] = OrderedDict()

    async def condense(self, question: Question) -> Condensed:
        """Rewritten by the model, or by the rules with a note when it is down or writes nothing fit for a search.

        A rewriting that is known costs nothing; what failed is tried again.
        """
        ruled = await self._rules.condense(question)
        if not ruled.text or dependence(clean(question.text)) is not Dependence.LEANS or not self._has_time():
            return ruled
        key = (question.text, question.lang, question.history)
        if key in self._known:
            return Condensed(self._known[key], self._options.model)
        condensed = await self._rewritten(question, ruled)
        if condensed.by == self._options.model:
            self._known[key] = condensed.text
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return condensed

    def _has_time(self) -> bool:
        return self._options.max_calls >= LEAST_CALLS and SHARE * self._options.deadline_seconds >= LEAST_SECONDS

    async def _rewritten(self, question: Question, ruled: Condensed) -> Condensed:
        started = self._clock()

        def spent() -> Spent:
            return Spent(1, self._clock() - started)

        try:
            completion = await self._model.complete(
                rewriting_prompt(question, self._delimiter(), self._options.variant),
                max_tokens=TOKENS,
                temperature=0.0,
                timeout_seconds=SHARE * self._options.deadline_seconds,
                schema=SCHEMA,
            )
        except (Transient, Rejected, Misconfigured) as exc:
            note = went_without("model", exc)
            return Condensed(ruled.text, ruled.by, spent(), (note,))
        # Detecting a language may load its model.
        text = await asyncio.to_thread(usable, completion.text, question, self._detect_language)
        if not text:
            return Condensed(ruled.text, ruled.by, spent(), ("rewriting_refused",))
        return Condensed(text, self._options.model, spent())


def rewriting_prompt(question: Question, delimiter: str, variant: str = DEFAULT) -> tuple[ChatMessage, ...]:
    """The fixed instructions, then the last turns and the message as data between unguessable fences."""
    lang = question.lang

    def told(text: str) -> str:
        return as_data(clean(text)[:TURN_CHARS], delimiter).strip()

    turns = [(role, told(text)) for role, text in _last(question.history)]
    data = render("condense_turns", lang, variant, delimiter=delimiter, turns=turns, message=told(question.text))
    return ChatMessage(Role.SYSTEM, render("condense", lang, variant)), ChatMessage(Role.USER, data)


def usable(completion: str, question: Question, detect_language: DetectLanguage) -> str:
    """The question in a completion, on one line; empty unless it is fit for a search.

    Fit is: JSON of the schema, 3 to 300 characters, no address or mention, the question's language, and content words
    of which at least half were said in the thread.
    """
    try:
        content = json.loads(strip_hidden(completion, Counter()))
    except (ValueError, RecursionError):
        return ""
    told = content.get("question") if isinstance(content, dict) else None
    if not isinstance(told, str) or len(told) > MAX_CHARS or addressed(told):
        return ""
    text = clean(told)
    said = {lexeme for part in (question.text, *(turn for _, turn in question.history)) for lexeme in lexemes(part)}
    words = lexemes(text)
    from_thread = sum(word in said for word in words) >= FROM_THREAD * len(words)
    if len(text) < MIN_CHARS or not words or not from_thread:
        return ""
    return text if detect_language(text, fallback=question.lang) == question.lang else ""


def _last(turns: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """The title, and the turns from the last human ones on that may be read."""
    humans = [place for place, (role, _) in enumerate(turns) if role == "user"]
    start = humans[-(HUMAN_TURNS - 1) :][0] if humans else len(turns)
    return [turn for place, turn in enumerate(turns) if place >= start or turn[0] == "title"]
