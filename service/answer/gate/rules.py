"""The gate's rules as people write them: YAML files, checked on reading, merged by the id of a rule."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from service.domain import Lang
from service.errors import Misconfigured

LEAST_EXAMPLES = 3
MAX_FILE_BYTES = 1_000_000


class GateKind(StrEnum):
    """What a declined message wanted; each has wordings of its own."""

    GENERALIST = "generalist"
    VIOLENCE = "violence"
    SELF_HARM = "self_harm"
    ILLEGAL_TRADE = "illegal_trade"
    INTRUSION = "intrusion"
    PERSONAL_DATA = "personal_data"
    INJECTION = "injection"
    MEDICAL_ADVICE = "medical_advice"
    LEGAL_FINANCIAL_ADVICE = "legal_financial_advice"
    HARASSMENT = "harassment"


_PATTERN = re.compile(r"(?:[a-z0-9 ()\[\]+|?*_.-]|\{[a-z_]+\})+")


def _pattern(value: str) -> str:
    if not _PATTERN.fullmatch(value):
        raise ValueError(f"{value!r}: only a-z, 0-9, spaces, ( ) [ ] | ? + * _ . and {{words}}, without accents")
    return value


def _unique(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if twice := {pattern for pattern in patterns if patterns.count(pattern) > 1}:
        raise ValueError(f"given twice: {', '.join(sorted(twice))}")
    return patterns


Pattern = Annotated[str, AfterValidator(_pattern)]
"""Words as the normaliser leaves them. `|`, `?` and brackets as in a regular expression; `prompt*` any ending; ` _ ` up
to three words of any kind; `.` a sentence's end; `{name}` one of the file's `words`."""
Patterns = Annotated[tuple[Pattern, ...], AfterValidator(_unique)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Intent(_Model):
    """What is wanted: a verb and its object, at most `within` words apart, in that order if `ordered`.

    Without an object the verb patterns alone tell. `split` lets the object stand in the member's earlier turns while
    the verb points back to it.
    """

    verb: Annotated[Patterns, Field(min_length=1)]
    object: Patterns = ()
    within: int = Field(5, ge=0, le=60)
    ordered: bool = False
    split: bool = False


class Rule(_Model):
    """One rule; an exception in the sentences of a match lifts it, one of `preceded_by` only before it."""

    id: str = Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$")
    kind: GateKind
    language: Lang
    intent: tuple[Intent, ...] = Field(min_length=1)
    exceptions: Patterns = ()
    preceded_by: Patterns = ()
    positives: tuple[str, ...] = Field(min_length=LEAST_EXAMPLES)
    lookalikes: tuple[str, ...] = Field(min_length=LEAST_EXAMPLES)


class RuleFile(_Model):
    """A file: its rules, the `words` that all patterns share, and the rules before it that it does `without`.

    `fillers` are patterns that say nothing, `reporting` those that make quoted words a report, `pointing` the words
    that point back to an earlier turn, `known` words that no misspelt word of a rule is.
    """

    words: Mapping[str, Pattern] = {}
    fillers: Patterns = ()
    reporting: Patterns = ()
    pointing: Patterns = ()
    known: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = ()


def read_rule_file(text: str, name: str) -> RuleFile:
    """The rules of a file's text; raises Misconfigured with one line that says what is wrong where."""
    try:
        values = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError) as exc:
        raise Misconfigured(f"{name}: {' '.join(str(exc).split())}") from exc
    return checked_file(values or {}, name)


def checked_file(values: object, name: str) -> RuleFile:
    """The rules of what a file says; raises Misconfigured with one line that says what is wrong where."""
    try:
        found = RuleFile.model_validate(values)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        raise Misconfigured(f"{name}, {where}: {fault['msg']}") from exc
    ids = [rule.id for rule in found.rules]
    if twice := {one for one in ids if ids.count(one) > 1}:
        raise Misconfigured(f"{name}: rules given twice: {', '.join(sorted(twice))}")
    return found


@cache
def _bundled() -> Mapping[str, RuleFile]:
    folder = files("service.answer.gate").joinpath("rules")
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".yml")}
    return {name: read_rule_file(texts[name], name) for name in sorted(texts)}


def bundled_names() -> tuple[str, ...]:
    """The names of the rule files that come with the program, in their order."""
    return tuple(_bundled())


def bundled_files() -> tuple[RuleFile, ...]:
    """The rules that come with the program, in the order of their files' names."""
    return tuple(_bundled().values())


def rule_files(own: str) -> tuple[RuleFile, ...]:
    """The bundled files and, last, the moderators' own (a path, or none); raises Misconfigured."""
    if not own:
        return bundled_files()
    path = Path(own)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise Misconfigured(f"gate.rules_file: {exc}") from exc
    if len(data) > MAX_FILE_BYTES:
        raise Misconfigured(f"gate.rules_file: {path} has more than {MAX_FILE_BYTES} bytes")
    return (*bundled_files(), read_rule_file(text, str(path)))


def expanded(pattern: str, words: Mapping[str, str]) -> str:
    """A pattern with its `{words}` put in; raises Misconfigured for one that isn't there or needs itself."""
    for _ in range(4):
        pattern = re.sub(r"\{([a-z_]+)\}", lambda name: f"({_word(name[1], words)})", pattern)
    if "{" in pattern:
        raise Misconfigured(f"the gate's words need themselves: {pattern[:80]!r}")
    return pattern


def _word(name: str, words: Mapping[str, str]) -> str:
    if name not in words:
        raise Misconfigured(f"the gate has no words {name!r}")
    return words[name]


def merged(found: Iterable[RuleFile]) -> list[Rule]:
    """The rules of all files; a later one of the same id takes the place of the earlier one. Raises Misconfigured."""
    rules: dict[str, Rule] = {}
    for file in found:
        if unknown := file.without - rules.keys():
            raise Misconfigured(f"the gate has no rules {', '.join(sorted(unknown))} to do without")
        rules = {name: rule for name, rule in rules.items() if name not in file.without}
        rules.update({rule.id: rule for rule in file.rules})
    return list(rules.values())


def merged_words(found: Iterable[RuleFile]) -> dict[str, str]:
    """The words of all files, which every rule may use; later ones take the place of earlier ones."""
    return {name: pattern for file in found for name, pattern in file.words.items()}
