"""Labelled questions of a dataset: questions.yml, links.jsonl and accepted.jsonl as cases."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from eval.datasets.clusters import clustered
from eval.datasets.folder import LABEL_FILES, Dataset
from eval.datasets.parsing import (
    Entry,
    History,
    Language,
    Line,
    Name,
    PostNumber,
    Text,
    TopicNumber,
    json_items,
    one_line,
    yaml_items,
)
from eval.domain import ANSWERS, Case, Golden, Labels
from service.domain import TopicId
from service.errors import Rejected

ASKED_CHARS = 900
"""How much of a first post, title included, is asked: what the natural labels' reference figures were made with."""

MAX_GOLDEN = 1_000
NEGATIVE_SLICES = ("unanswerable", "offtopic")
_NATURAL_ID = re.compile(f"({Labels.LINKS}|{Labels.ACCEPTED})-[0-9]+")
_MANY_NAMED = 5


class Judged(Entry):
    """Posts of one topic, all of it where none is named, with their grade.

    2 answers, 1 helps, 0 does neither; null is not judged yet.
    """

    topic: TopicNumber
    posts: Annotated[list[PostNumber], Field(min_length=1, max_length=MAX_GOLDEN)] | None = None
    grade: Annotated[int, Field(ge=0, le=ANSWERS)] | None


class Asked(Entry):
    """An item of questions.yml."""

    id: Name
    slice: Name
    lang: Language | None = None
    question: Text
    history: History = Field(default_factory=list)
    standalone: Text | None = None
    golden: Annotated[list[Judged], Field(max_length=MAX_GOLDEN)]
    note: Line | None = None


class Pointed(Entry):
    """A post, or without a number a whole topic."""

    topic_id: TopicNumber
    post_number: PostNumber | None = None


class Found(Entry):
    """A line of links.jsonl or accepted.jsonl."""

    topic_id: TopicNumber
    title: Annotated[str, StringConstraints(max_length=1_000)]
    text: Annotated[str, StringConstraints(max_length=1_000_000)]
    lang: Language | None = None
    golden: Annotated[list[Pointed], Field(min_length=1, max_length=MAX_GOLDEN)]


def read_cases(dataset: Dataset, labels: Labels) -> tuple[Case, ...]:
    """The cases of one label file, in its order; raises Rejected saying what is wrong where.

    A question of links.jsonl leaves out the whole asking topic, one of accepted.jsonl only its own first post.
    """
    lang = dataset.languages[0]
    path = dataset.path(LABEL_FILES[labels])
    found = _questions(path, lang) if labels is Labels.QUESTIONS else _natural(path, labels, lang)
    cases = list(_distinct(found))
    if not cases:
        raise Rejected(f"{path}: no question in it")
    return clustered(cases)


def _questions(path: Path, lang: str) -> Iterator[tuple[str, Case]]:
    unjudged: list[str] = []
    for where, asked in yaml_items(path, Asked):
        if _NATURAL_ID.fullmatch(asked.id):
            raise Rejected(f"{where}, id: so are the questions of links.jsonl and accepted.jsonl called")
        if any(one.grade is None for one in asked.golden):
            unjudged.append(asked.id)
            continue
        golden = _goldens(where, asked.golden)
        if asked.slice in NEGATIVE_SLICES and any(one.grade >= ANSWERS for one in golden):
            raise Rejected(f"{where}, golden: a question of slice {asked.slice!r} has no answer, but this one has")
        yield where, _case_of(asked, golden, lang)
    if unjudged:
        names = ", ".join(unjudged[:_MANY_NAMED]) + (", ..." if len(unjudged) > _MANY_NAMED else "")
        raise Rejected(
            f"{path}: {len(unjudged)} questions wait for a person to judge them (grade: null): {names}; "
            "say 2 (answers), 1 (helps) or 0 (neither) for each post"
        )


def _goldens(where: str, judged: Iterable[Judged]) -> tuple[Golden, ...]:
    grades: dict[tuple[int, int | None], int] = {}
    for one in judged:
        numbers: list[int] | list[None] = one.posts or [None]
        for number in numbers:
            if (one.topic, number) in grades:
                named = f"topic {one.topic}" + (f", post {number}" if number else "")
                raise Rejected(f"{where}, golden: {named} is judged twice")
            grades[one.topic, number] = one.grade or 0
        if len(grades) > MAX_GOLDEN:
            raise Rejected(f"{where}, golden: more than {MAX_GOLDEN:,} posts")
    return tuple(Golden(TopicId(topic), number, grade) for (topic, number), grade in grades.items() if grade)


def _case_of(asked: Asked, golden: tuple[Golden, ...], lang: str) -> Case:
    return Case(
        id=asked.id,
        labels=Labels.QUESTIONS,
        slice=asked.slice,
        lang=asked.lang or lang,
        question=asked.question,
        golden=golden,
        cluster=asked.id,
        history=tuple((turn.role, turn.text) for turn in asked.history),
        standalone=asked.standalone,
    )


def _natural(path: Path, labels: Labels, lang: str) -> Iterator[tuple[str, Case]]:
    for where, found in json_items(path, Found):
        question = f"{found.title}\n\n{found.text}"[:ASKED_CHARS].strip()
        if not question:
            raise Rejected(f"{where}, title: neither a title nor a text to ask")
        topic_id = TopicId(found.topic_id)
        whole = labels is Labels.LINKS
        yield (
            where,
            Case(
                id=f"{labels}-{topic_id}",
                labels=labels,
                slice=str(labels),
                lang=found.lang or lang,
                question=question,
                golden=tuple(
                    Golden(TopicId(topic), number)
                    for topic, number in dict.fromkeys((one.topic_id, one.post_number) for one in found.golden)
                ),
                cluster=f"{labels}-{topic_id}",
                exclude_from=(topic_id, 1) if whole else None,
                exclude_post=None if whole else (topic_id, 1),
            ),
        )


def _distinct(cases: Iterable[tuple[str, Case]]) -> Iterator[Case]:
    seen: set[str] = set()
    for where, case in cases:
        if case.id in seen:
            raise Rejected(f"{where}: the id {one_line(case.id)!r} is there twice")
        seen.add(case.id)
        yield case
