"""Drafts an answer with a language model, within a deadline and a number of calls; and what stands in for the model."""

import asyncio
import re
import secrets
import string
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from service.answer.categories import CategoryNames
from service.answer.markup.reasoning import strip_hidden
from service.answer.ports import Answerer, ChatModel
from service.answer.prompt import Prompt, PromptBudget, build_prompt, less_evidence, system_text
from service.answer.templates import DEFAULT
from service.domain import Completion, Draft, Question, Source, Spent, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.telemetry import COMPLETIONS, log, went_without

DELIMITER_LETTERS = 12

_MARKERS = r"(?:\[\[\s?\d{1,3}\s?\]\]\s{0,3}){1,8}"
_CLOSERS = r"[\"'”’»)*_]{0,4}"
_CITED_END = re.compile(
    rf"[.!?…]{_CLOSERS}\s{{0,3}}{_MARKERS}[.!?…]?"  # It sticks. [[1]]
    rf"|{_MARKERS}[.!?…]{_CLOSERS}(?=\s|$)"  # It sticks [[1]].
    rf"|{_MARKERS}(?<=\n)"  # - it sticks [[1]], at a line's end
)
_NUMBER = re.compile(r"\d+")


class Fault(StrEnum):
    """Why a completion can't be the draft; the same words in metrics and in the trace."""

    EMPTY = "empty"
    CAPPED = "capped"
    PROMPT_CUT = "prompt_cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The deadline and the cap of all model calls of one question."""

    deadline_seconds: float = 120.0
    max_calls: int = 4


@dataclass(frozen=True, slots=True)
class GenerateOptions(CallLimits):
    """`model` is its name in drafts, `variant` that of the prompt."""

    model: str
    answer_tokens: int = 700
    evidence_tokens: int = 1900
    source_chars: int = 1250
    temperature: float = 0.2
    variant: str = DEFAULT


@dataclass(slots=True)
class Allowance:
    """The model calls that one question may still make, and until when (in seconds, on `clock`)."""

    limits: CallLimits
    calls: int
    until: float
    clock: Callable[[], float]

    def allows(self, seconds: float = 0.0) -> bool:
        """Whether one more call of that length may begin."""
        return self.calls > 0 and self.seconds > seconds

    @property
    def seconds(self) -> float:
        """What is left of the time."""
        return self.until - self.clock()

    @property
    def spent(self) -> Spent:
        """What the question has used up."""
        return Spent(self.limits.max_calls - self.calls, self.limits.deadline_seconds - self.seconds)

    def spend(self) -> float:
        """Take one call; returns how many seconds it may last. Raises Transient when no call or no time is left."""
        if not self.allows():
            raise Transient("this question has used up its model calls or its time")
        self.calls -= 1
        return self.seconds


def allowed(limits: CallLimits, spent: Spent, clock: Callable[[], float]) -> Allowance:
    """What is left to a question of its calls and seconds."""
    return Allowance(limits, limits.max_calls - spent.calls, clock() + limits.deadline_seconds - spent.seconds, clock)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one call gave: text without thinking, what it was asked, and what is wrong with it."""

    text: str
    prompt: Prompt
    fault: Fault | None


def new_delimiter() -> str:
    """A word that nobody who wrote a source can have guessed (56 bits)."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(DELIMITER_LETTERS))


class GeneratedAnswerer:
    """Answerer through a language model: never an empty draft, never one that stops in the middle of a sentence.

    When time or calls run short, what a question does without goes in this order: the check, the second draft, the
    rewriting of the question; the first draft is shed last, and the sources or their quotes then speak for it.
    """

    def __init__(
        self,
        model: ChatModel,
        count_tokens: Callable[[str], float],
        options: GenerateOptions,
        *,
        categories: CategoryNames | None = None,
        delimiter: Callable[[], str] = new_delimiter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`count_tokens` estimates on the safe side, as the model's adapter does."""
        self._model = model
        self._categories = categories
        self._count_tokens = count_tokens
        self._options = options
        self._delimiter = delimiter
        self._clock = clock

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        """The model's draft. Raises Transient (down, or no time), Rejected (nothing usable came) or Misconfigured.

        An empty or capped text, and a prompt that the server cut, are tried once more with less evidence. What is
        capped then is cut after its last full sentence that cites.
        """
        options, started = self._options, self._clock()
        allowance = allowed(options, question.spent, self._clock)
        room = self._model.window_tokens - options.answer_tokens
        budget = PromptBudget(room, options.evidence_tokens, options.source_chars)
        notes: tuple[str, ...] = ()
        told = system_text(question.lang, zone, options.variant)
        names = await self._categories.read() if self._categories else ()
        attempt = await self._attempt(question, sources, zone, budget, allowance, names)
        # A call that can't end in time only makes a healthy server look slow; with less to read it takes less.
        if attempt.fault and allowance.allows((self._clock() - started) / 2):
            notes = (f"retried_{attempt.fault}",)
            attempt = await self._attempt(question, sources, zone, less_evidence(budget), allowance, names)
        text = attempt.text
        if attempt.fault is Fault.CAPPED and (text := cut_after_citation(attempt.text, attempt.prompt.shown)):
            notes = (*notes, "cut_after_citation")
        elif attempt.fault:
            raise Rejected(f"{options.model} gave no usable draft: {attempt.fault}", status=422)
        read = attempt.prompt
        return Draft(
            text,
            options.model,
            read.shown,
            notes,
            question.lang,
            told,
            read.chars,
            allowance.spent,
            evidence=read.messages[-1].content,
        )

    async def _attempt(
        self,
        question: Question,
        sources: Sequence[Source],
        zone: Zone,
        budget: PromptBudget,
        allowance: Allowance,
        categories: Sequence[str],
    ) -> Attempt:
        delimiter = self._delimiter()
        # Up to a tenth of a second over long posts: the worker goes on meanwhile.
        prompt = await asyncio.to_thread(
            build_prompt,
            question,
            sources,
            zone,
            budget=budget,
            count_tokens=self._count_tokens,
            delimiter=delimiter,
            categories=categories,
            variant=self._options.variant,
        )
        try:
            completion = await self._model.complete(
                prompt.messages,
                max_tokens=self._options.answer_tokens,
                temperature=self._options.temperature,
                timeout_seconds=allowance.spend(),
            )
        except Rejected as exc:
            if exc.status != 413:
                raise
            log.warning("prompt_cut", error=str(exc))
            attempt = Attempt("", prompt, Fault.PROMPT_CUT)
        else:
            attempt = _read(completion, prompt, delimiter)
        COMPLETIONS.labels(attempt.fault or "ok").inc()
        return attempt


def _read(completion: Completion, prompt: Prompt, delimiter: str) -> Attempt:
    """The completion without thinking, wherever it stands, and without the prompt's fences."""
    spoken = strip_hidden(completion.text, Counter())
    text = "\n".join(line for line in spoken.split("\n") if delimiter.lower() not in line.lower()).strip()
    if not text:
        return Attempt(text, prompt, Fault.EMPTY)
    return Attempt(text, prompt, Fault.CAPPED if completion.truncated else None)


def cut_after_citation(text: str, numbers: Collection[int]) -> str:
    """The text up to the end of its last full sentence that cites one of `numbers`; empty when there is none."""
    end = 0
    for cited in _CITED_END.finditer(text):
        if any(int(number) in numbers for number in _NUMBER.findall(cited[0])):
            end = cited.end()
    return text[:end].rstrip()


class FallbackAnswerer:
    """Answerer that asks the model first, and `stand_in` when that is down or gives nothing usable."""

    def __init__(self, model: Answerer, stand_in: Answerer | None) -> None:
        """Without a stand-in the model's error goes on to the pipeline, which shows the sources alone."""
        self._model = model
        self._stand_in = stand_in

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        """A draft whose `by` and notes say so when the model didn't write it."""
        try:
            return await self._model.draft(question, sources, zone)
        except (Transient, Rejected, Misconfigured) as exc:
            if self._stand_in is None:
                raise
            note = went_without("model", exc)
        quoted = await self._stand_in.draft(question, sources, zone)
        return replace(quoted, by=f"{quoted.by}, the model was down", notes=(*quoted.notes, note))
