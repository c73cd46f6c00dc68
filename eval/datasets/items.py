"""What whole answers are tried on: messages to the gate, drafts to be sanitized, probes of safety."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, StringConstraints, model_validator

from eval.datasets.folder import Dataset
from eval.datasets.parsing import (
    MAX_TEXT_CHARS,
    E,
    Entry,
    History,
    Language,
    Line,
    Name,
    PostNumber,
    Text,
    TopicNumber,
    yaml_items,
)
from service.errors import Rejected

MAX_SOURCES = 100


@dataclass(frozen=True, slots=True)
class GateCase:
    """A message to the bot; `declines` is what is expected, `kind` says of what ("family/detail")."""

    id: str
    lang: str
    text: str
    history: tuple[tuple[str, str], ...]
    declines: bool
    kind: str


@dataclass(frozen=True, slots=True)
class DraftSource:
    """A post that a draft may cite."""

    topic_id: int
    post_number: int
    slug: str
    title: str


@dataclass(frozen=True, slots=True)
class DraftCase:
    """A model's draft and what its posted text must and must not hold; `sources` is their number, or themselves."""

    id: str
    draft: str
    sources: int | tuple[DraftSource, ...]
    zone: str
    lang: str | None
    must_not: tuple[str, ...]
    must: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class SafetyProbe:
    """A message to be refused, or one whose `evidence` (texts of posts) tries to steer the answer.

    `must_not` may stand in no posted text.
    """

    id: str
    lang: str
    kind: Literal["refuse", "evidence"]
    text: str
    evidence: tuple[str, ...]
    must_not: tuple[str, ...]


class _Gate(Entry):
    id: Name
    lang: Language | None = None
    text: Text
    history: History = Field(default_factory=list)
    expect: Literal["proceed", "decline"]
    kind: Name


class _Source(Entry):
    topic_id: TopicNumber
    post_number: PostNumber
    slug: Line
    title: Line


class _Draft(Entry):
    id: Name
    draft: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]
    sources: Annotated[int, Field(ge=0, le=MAX_SOURCES)] | Annotated[list[_Source], Field(max_length=MAX_SOURCES)]
    zone: Literal["normal", "weak", "abstain"] = "normal"
    lang: Language | None = None
    must_not: list[Text] = Field(default_factory=list, max_length=100)
    must: list[Text] = Field(default_factory=list, max_length=100)
    note: Line = ""


class _Forbids(Entry):
    must_not: list[Text] = Field(min_length=1, max_length=100)


class _Probe(Entry):
    id: Name
    lang: Language | None = None
    kind: Literal["refuse", "evidence"]
    text: Text
    evidence: list[Text] = Field(default_factory=list, max_length=MAX_SOURCES)
    expect: Literal["decline"] | _Forbids
    note: Line = ""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if (self.kind == "evidence") != bool(self.evidence):
            raise ValueError("evidence is what a probe of kind evidence has, and no other")
        if self.kind == "evidence" and self.expect == "decline":
            raise ValueError("a question of kind evidence is innocent: say what an answer must_not hold")
        return self


def read_gate(dataset: Dataset) -> tuple[GateCase, ...]:
    """The messages of gate.yml, in its order; raises Rejected saying what is wrong where."""
    lang = dataset.languages[0]

    def case(one: _Gate) -> GateCase:
        history = tuple((turn.role, turn.text) for turn in one.history)
        return GateCase(one.id, one.lang or lang, one.text, history, one.expect == "decline", one.kind)

    return tuple(_each(dataset, "gate.yml", _Gate, case))


def read_drafts(dataset: Dataset) -> tuple[DraftCase, ...]:
    """The drafts of drafts.yml, in its order; raises Rejected saying what is wrong where."""

    def case(one: _Draft) -> DraftCase:
        given = one.sources
        return DraftCase(
            id=one.id,
            draft=one.draft,
            sources=given if isinstance(given, int) else tuple(DraftSource(**source.model_dump()) for source in given),
            zone=one.zone,
            lang=one.lang,
            must_not=tuple(one.must_not),
            must=tuple(one.must),
            note=one.note,
        )

    return tuple(_each(dataset, "drafts.yml", _Draft, case))


def read_safety(dataset: Dataset) -> tuple[SafetyProbe, ...]:
    """The probes of safety.yml, in its order; raises Rejected saying what is wrong where."""
    lang = dataset.languages[0]

    def probe(one: _Probe) -> SafetyProbe:
        must_not = () if one.expect == "decline" else tuple(one.expect.must_not)
        return SafetyProbe(one.id, one.lang or lang, one.kind, one.text, tuple(one.evidence), must_not)

    return tuple(_each(dataset, "safety.yml", _Probe, probe))


T = TypeVar("T")


def _each(dataset: Dataset, name: str, model: type[E], made: Callable[[E], T]) -> Iterator[T]:
    path = dataset.path(name)
    seen: set[str] = set()
    for where, one in yaml_items(path, model):
        if (known := str(getattr(one, "id", ""))) in seen:
            raise Rejected(f"{where}: the id {known!r} is there twice")
        seen.add(known)
        yield made(one)
    if not seen:
        raise Rejected(f"{path}: nothing in it")
