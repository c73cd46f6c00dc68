"""What the model is told: persona, role limit and citing rules, then the evidence and the question, fenced as data."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

from service.answer.evidence import excerpt
from service.answer.markup.invisible import strip_invisible
from service.domain import ENGLISH, ChatMessage, Lang, Question, Role, Source, Zone
from service.domain.models import MESSAGE_TOKENS
from service.errors import Misconfigured, Rejected
from service.lexer import query_lexemes

DEFAULT = "default"
"""The variant of the prompt that is no folder of its own."""
LEAST_CHARS = 400
"""Excerpts shrink to this before a source is dropped (spec P10)."""
LAST_CHARS = 150
"""What the last source shrinks to before the prompt is refused."""
SHRINK_STEP = 100
TITLE_CHARS = 200

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
    variant: str = DEFAULT,
) -> Prompt:
    """The prompt in the question's language (else English); the same zone begins with the same bytes.

    Tokens win over characters: excerpts shrink to LEAST_CHARS, then sources drop from the last and keep their numbers.
    `delimiter` is one unguessable word; no source and no question holds it in the prompt. Raises Rejected (413) when
    not even the first source fits.
    """
    if not re.fullmatch(r"\w{8,64}", delimiter):
        raise ValueError("a delimiter is one word of 8 to 64 characters")
    lang = prompt_language(question.lang)
    wanted = frozenset(query_lexemes(question.scored))
    system = ChatMessage(Role.SYSTEM, system_text(lang, zone, variant))

    asked = {
        name: as_data(said, delimiter).strip()
        for name, said in (("title", question.title), ("text", question.text), ("in_full", question.condensed))
    }

    def user(evidence: Sequence[str], numbers: Sequence[int]) -> str:
        return render("user", lang, variant, delimiter=delimiter, sources=evidence, numbers=numbers, **asked)

    def length(*contents: str) -> int:
        return math.ceil(sum(count_tokens(content) + MESSAGE_TOKENS for content in contents))

    read = [_Read(source, as_data(source.title, delimiter), as_data(source.excerpt, delimiter)) for source in sources]
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


def shown_sources(
    question: Question, sources: Sequence[Source], chars: int, delimiter: str, variant: str = DEFAULT
) -> list[str]:
    """The sources word for word as `build_prompt` shows them at `chars` characters each."""
    lang = prompt_language(question.lang)
    wanted = frozenset(query_lexemes(question.scored))
    read = (_Read(one, as_data(one.title, delimiter), as_data(one.excerpt, delimiter)) for one in sources)
    return [one.rendered(wanted, chars, lang, variant, delimiter) for one in read]


def less_evidence(budget: PromptBudget) -> PromptBudget:
    """The budget of a second attempt: half the evidence."""
    return replace(
        budget, evidence_tokens=budget.evidence_tokens // 2, source_chars=max(LEAST_CHARS, budget.source_chars // 2)
    )


@cache
def system_text(lang: Lang, zone: Zone, variant: str = DEFAULT) -> str:
    """The fixed part of the prompt; every zone but the normal one is answered as the weak one."""
    lang = prompt_language(lang)
    return render("system", lang, variant, zone=f"{'normal' if zone is Zone.NORMAL else 'weak'}.{lang}.j2")


def prompt_language(lang: Lang) -> Lang:
    """The language of the prompts for a question in `lang`: English where it has none of its own."""
    return lang if lang in languages() else ENGLISH


@cache
def languages() -> frozenset[Lang]:
    """The languages that have prompts of their own; a variant adds none."""
    return frozenset(Lang(name.split(".")[1]) for name in template_texts(DEFAULT))


def variants() -> tuple[str, ...]:
    """The variants of the prompt: the default one first, then each folder of templates that stand before its own."""
    return (DEFAULT, *sorted(entry.name for entry in _folder().iterdir() if entry.is_dir()))


def known_variant(name: str) -> str:
    """The name; raises Misconfigured, naming those there are, where it is no variant's."""
    if name not in variants():
        raise Misconfigured(f"models.answerer.prompt_variant: no {name!r}; there are: {', '.join(variants())}")
    return name


def template_texts(variant: str) -> dict[str, str]:
    """The templates that a variant is made of, by their names in it: its own, and those of the default that it uses."""
    default = _texts(_folder())
    if known_variant(variant) == DEFAULT:
        return default
    own = _texts(_folder() / variant)
    told = "".join(own.values())
    extended = {path: text for name, text in default.items() if (path := f"{DEFAULT}/{name}") in told}
    return {**default, **own, **extended}


def _texts(folder: Traversable) -> dict[str, str]:
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".j2")}


def _folder() -> Traversable:
    return files("service.answer") / "prompts"


@cache
def _templates(variant: str) -> Environment:
    """A template of a variant may include the default one that it stands before, as "default/..."."""
    default = PackageLoader("service.answer", "prompts")
    own = () if known_variant(variant) == DEFAULT else (PackageLoader("service.answer", f"prompts/{variant}"),)
    return Environment(
        loader=ChoiceLoader([*own, default, PrefixLoader({DEFAULT: default})]),
        autoescape=False,  # noqa: S701 # plain text for a model: escaping would change what it reads
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, lang: Lang, variant: str, **values: object) -> str:
    """The template of this name in this language, which has to be one of `languages`, as the variant has it."""
    return _templates(variant).get_template(f"{name}.{lang}.j2").render(values)


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
