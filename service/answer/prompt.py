"""What the model is told: persona, role limit and citing rules, then the evidence and the question, fenced as data."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from service.answer.evidence import excerpt
from service.answer.markup.invisible import strip_invisible
from service.answer.templates import DEFAULT, render
from service.domain import ChatMessage, Lang, Question, Role, Source, Zone
from service.domain.models import MESSAGE_TOKENS
from service.errors import Rejected
from service.lexer import query_lexemes

LEAST_CHARS = 400
"""Excerpts shrink to this before a source is dropped (spec P10)."""
LAST_CHARS = 150
"""What the last source shrinks to before the prompt is refused."""
SHRINK_STEP = 100
TITLE_CHARS = 200
CATEGORY_CHARS = 50
"""Of a category's name: Discourse's own limit."""
CATEGORY_TOKENS = 300
"""Most of the whole list of categories: about 60 names of two words."""

_CONTROL_TOKEN = re.compile(
    r"<(?=[|｜]|/?s>|/?(?:start|end)_of_turn>|/?(?:begin|end)_of_\w{1,20}>|<?/?SYS>|/?think(?:ing)?>|/?tool_\w{1,20}>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w{1,20})\])|(?<![\w/])/(?=(?:no_)?think\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """Most tokens of the whole prompt and of its sources (titles and fences too), most characters of one source."""

    prompt_tokens: int
    evidence_tokens: int = 1900
    source_chars: int = 1250


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt within its budget; `shown` are the numbers of the sources in it, `tokens` its estimated length.

    `chars` is the most that it shows of a source.
    """

    messages: tuple[ChatMessage, ...]
    shown: tuple[int, ...]
    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class _Read:
    """A source as the model may read it, whole."""

    source: Source
    title: str
    text: str

    def rendered(self, wanted: frozenset[str], chars: int, lang: Lang, variant: str, delimiter: str) -> str:
        """Its part of the prompt, with the `chars` of its text that match best."""
        title = " ".join(self.title.split())[:TITLE_CHARS]
        text, date = excerpt(self.text, wanted, chars), self.source.created_at.date().isoformat()
        return render("source", lang, variant, delimiter=delimiter, n=self.source.n, title=title, date=date, text=text)


def build_prompt(
    question: Question,
    sources: Sequence[Source],
    zone: Zone,
    *,
    budget: PromptBudget,
    count_tokens: Callable[[str], float],
    delimiter: str,
    categories: Sequence[str] = (),
    variant: str = DEFAULT,
) -> Prompt:
    """The prompt in the question's language (else English); the same zone and categories begin with the same bytes.

    Tokens win over characters: excerpts shrink to LEAST_CHARS, then sources drop from the last and keep their numbers.
    The names of `categories`, as many of the first as CATEGORY_TOKENS allow, are left out where all the evidence would
    not fit beside them. `delimiter` is one unguessable word; no source, no name and no question holds it in the prompt.
    Raises Rejected (413) when not even the first source fits.
    """
    if not re.fullmatch(r"\w{8,64}", delimiter):
        raise ValueError("a delimiter is one word of 8 to 64 characters")
    lang = question.lang
    wanted = frozenset(query_lexemes(question.scored))
    system = ChatMessage(Role.SYSTEM, system_text(lang, zone, variant))

    asked = {
        name: as_data(said, delimiter).strip()
        for name, said in (("title", question.title), ("text", question.text), ("in_full", question.condensed))
    }

    listed = _listed(categories, delimiter, count_tokens)

    def user(evidence: Sequence[str], numbers: Sequence[int]) -> str:
        values = {"categories": listed, "sources": evidence, "numbers": numbers, **asked}
        return render("user", lang, variant, delimiter=delimiter, **values)

    def length(*contents: str) -> int:
        return math.ceil(sum(count_tokens(content) + MESSAGE_TOKENS for content in contents))

    read = [_Read(source, as_data(source.title, delimiter), as_data(source.excerpt, delimiter)) for source in sources]
    every = [source.n for source in sources]
    if length(system.content, user([""] * len(every), every)) + budget.evidence_tokens > budget.prompt_tokens:
        listed = []
    # what stands around the evidence is counted first: no less of it would make room for a question that has none
    tries = (
        _ever_less(read, budget.source_chars) if length(system.content, user((), ())) <= budget.prompt_tokens else ()
    )
    for part, chars in tries:
        evidence: list[str] = []
        left = float(budget.evidence_tokens)
        for one in part:
            evidence.append(one.rendered(wanted, chars, lang, variant, delimiter))
            left -= count_tokens(evidence[-1])
            if left < 0:
                break
        if left < 0:
            continue
        shown = tuple(one.source.n for one in part)
        messages = (system, ChatMessage(Role.USER, user(evidence, shown)))
        tokens = length(*(one.content for one in messages))
        if tokens <= budget.prompt_tokens:
            return Prompt(messages, shown, tokens, chars)
    raise Rejected(
        f"no source fits in a prompt of {budget.prompt_tokens} tokens with {budget.evidence_tokens} of evidence: "
        "give the model a larger context",
        status=413,
    )


def _listed(names: Sequence[str], delimiter: str, count_tokens: Callable[[str], float]) -> list[str]:
    """Names as lines of a list, which ends at a line of "=" that none of them can hold."""
    lines: list[str] = []
    left = float(CATEGORY_TOKENS)
    for name in names:
        line = " ".join(as_data(name[:TITLE_CHARS].replace("=", " "), delimiter).split())[:CATEGORY_CHARS]
        left -= count_tokens(f"- {line}\n")
        if left < 0:
            break
        if line:
            lines.append(line)
    return lines


def shown_sources(
    question: Question, sources: Sequence[Source], chars: int, delimiter: str, variant: str = DEFAULT
) -> list[str]:
    """The sources word for word as `build_prompt` shows them at `chars` characters each."""
    wanted = frozenset(query_lexemes(question.scored))
    read = (_Read(one, as_data(one.title, delimiter), as_data(one.excerpt, delimiter)) for one in sources)
    return [one.rendered(wanted, chars, question.lang, variant, delimiter) for one in read]


def less_evidence(budget: PromptBudget) -> PromptBudget:
    """The budget of a second attempt: half the evidence."""
    return replace(
        budget, evidence_tokens=budget.evidence_tokens // 2, source_chars=max(LEAST_CHARS, budget.source_chars // 2)
    )


@cache
def system_text(lang: Lang, zone: Zone, variant: str = DEFAULT) -> str:
    """The fixed part of the prompt; every zone but the normal one is answered as the weak one."""
    return render("system", lang, variant, zone="normal" if zone is Zone.NORMAL else "weak")


def _ever_less(sources: Sequence[_Read], most_chars: int) -> Iterator[tuple[Sequence[_Read], int]]:
    """The sources to show and the characters of each: what is given up comes in the order of spec P10."""
    if not sources:
        return
    least = min(LEAST_CHARS, most_chars)
    for chars in range(most_chars, least, -SHRINK_STEP):
        yield sources, chars
    for count in range(len(sources), 0, -1):
        yield sources[:count], least
    yield sources[:1], min(LAST_CHARS, least)


def as_data(text: str, delimiter: str) -> str:
    """Untrusted text that can't end its fence: without the delimiter, invisible characters and live control tokens.

    Model servers read control tokens (a turn's end, a thinking switch) wherever they stand, so a space breaks them.
    """
    visible, _ = strip_invisible(text)
    return _CONTROL_TOKEN.sub(r"\g<0> ", re.sub(re.escape(delimiter), " ", visible, flags=re.IGNORECASE))
