"""The language model's check of a draft: the same model, the same excerpts at the same length (spec A3)."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from service.answer.checking import Checked, DraftFault, Verdict
from service.answer.generate import CallLimits, allowed, new_delimiter
from service.answer.markup.invisible import strip_invisible
from service.answer.markup.reasoning import strip_hidden
from service.answer.ports import ChatModel
from service.answer.prompt import as_data, shown_sources
from service.answer.templates import DEFAULT, render
from service.answer.verify import MOST_CLAIMS
from service.domain import ChatMessage, Draft, Question, Role, Source, Spent
from service.errors import Misconfigured, Rejected, Transient
from service.telemetry import log, went_without

TOKENS = 250
"""Enough for the longest verdict that the schema lets through."""
MOST_UNSUPPORTED = 10
MOST_MISSING = 3
QUERY_CHARS = 120
EARLIER_ANSWERS = 2
EARLIER_CHARS = 1_000
LEAST_SHARE = 0.5
"""A check begins while this share of the draft's own time is left: reading takes most of it, and it writes little."""

UNREADABLE = Verdict(frozenset({DraftFault.UNREADABLE}), ())
"""Of a check that was made and says nothing clear: no draft goes out on it."""


def _cut(most: int) -> BeforeValidator:
    """Of a longer list or text its beginning is read: where a server doesn't bind its model to the schema, that is."""
    return BeforeValidator(lambda value: value[:most] if isinstance(value, list | str) else value)


Sentence = Annotated[int, Field(ge=1, le=MOST_CLAIMS)]
Query = Annotated[str, _cut(QUERY_CHARS), StringConstraints(strip_whitespace=True, max_length=QUERY_CHARS)]


class Told(BaseModel):
    """What the model answers, as its JSON schema: any other shape is no verdict.

    The verdict comes first and what it lacks last: where a model goes on and on, that is what is cut.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    answers: bool
    repeats: bool
    about_itself: bool
    unsupported: Annotated[list[Sentence], _cut(MOST_UNSUPPORTED), Field(max_length=MOST_UNSUPPORTED)]
    missing: Annotated[list[Query], _cut(MOST_MISSING), Field(max_length=MOST_MISSING)]

    def verdict(self) -> Verdict:
        faults = {
            DraftFault.OFF_QUESTION: not self.answers,
            DraftFault.UNSUPPORTED: bool(self.unsupported),
            DraftFault.REPEATS: self.repeats,
            DraftFault.ABOUT_ITSELF: self.about_itself,
        }
        missing = tuple(query for one in self.missing if (query := " ".join(one.split())))
        return Verdict(frozenset(fault for fault, so in faults.items() if so), missing, tuple(self.unsupported))


@dataclass(frozen=True, slots=True)
class ModelChecker:
    """Checker on a ChatModel, within the limits of the question that it has left; `variant` is the prompt's."""

    model: ChatModel
    limits: CallLimits
    _: KW_ONLY
    variant: str = DEFAULT
    delimiter: Callable[[], str] = new_delimiter
    clock: Callable[[], float] = time.monotonic

    def allows(self, spent: Spent, seconds: float) -> bool:
        return allowed(self.limits, spent, self.clock).allows(seconds)

    async def check(
        self, question: Question, draft: Draft, sentences: Sequence[str], sources: Sequence[Source]
    ) -> Checked:
        """Not made: when no call or too little time is left, the prompt has no room, or the model fails.

        A check that was made and can't be read is UNREADABLE.
        """
        spent = draft.spent
        if not self.allows(spent, LEAST_SHARE * (spent.seconds - question.spent.seconds)):
            return Checked(None, spent, "no time")
        prompt = await asyncio.to_thread(
            check_prompt, question, draft, sentences, sources, self.delimiter(), self.variant
        )
        allowance = allowed(self.limits, spent, self.clock)
        schema = Told.model_json_schema()
        try:
            completion = await self.model.complete(
                prompt, max_tokens=TOKENS, temperature=0.0, timeout_seconds=allowance.spend(), schema=schema
            )
        except (Transient, Rejected, Misconfigured) as exc:
            went_without("check", exc)
            no_room = isinstance(exc, Rejected) and exc.status == 413
            return Checked(None, allowance.spent, "no room" if no_room else "model down")
        verdict = read_verdict(completion.text, len(sentences))
        if verdict is None:
            log.warning("check_unreadable", capped=completion.truncated)
        return Checked(verdict or UNREADABLE, allowance.spent)


def check_prompt(
    question: Question,
    draft: Draft,
    sentences: Sequence[str],
    sources: Sequence[Source],
    delimiter: str,
    variant: str = DEFAULT,
) -> tuple[ChatMessage, ...]:
    """The fixed instructions, then the sources as the writer saw them, the question, and the draft by its sentences."""
    lang = question.lang
    earlier = [text for role, text in question.history if role == "bot"][-EARLIER_ANSWERS:]

    def told(text: str) -> str:
        return as_data(text, delimiter).strip()

    shown = sources if draft.shown is None else sources[: len(draft.shown)]
    data = render(
        "check_draft",
        lang,
        variant,
        delimiter=delimiter,
        sources=shown_sources(question, shown, draft.chars, delimiter, variant),
        title=told(question.title),
        text=told(question.text),
        in_full=told(question.condensed),
        earlier=[told(text[:EARLIER_CHARS]) for text in earlier],
        sentences=[told(sentence).replace("\n", "\n   ") for sentence in sentences],  # code stays under its number
    )
    return ChatMessage(Role.SYSTEM, render("check", lang, variant)), ChatMessage(Role.USER, data)


def read_verdict(completion: str, sentences: int) -> Verdict | None:
    """The verdict in a completion on so many sentences; None for anything but JSON of the schema about them. Total.

    A completion that was cut inside its last field, `missing`, holds a verdict all the same.
    """
    text = strip_hidden(strip_invisible(completion)[0], Counter()).strip()
    text = text.removeprefix("```json").removeprefix("```").removesuffix("```")
    judged, key, missing = text.partition('"missing"')
    if key and "}" not in missing:
        text = f"{judged}{key}: []}}"
    try:
        told = Told.model_validate_json(text)
    except ValidationError:
        return None
    return told.verdict() if max(told.unsupported, default=0) <= sentences else None
