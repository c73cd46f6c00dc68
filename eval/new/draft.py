"""Writes questions.yml for a person to judge: every candidate with its text beside it, and no grade yet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import yaml

from eval.new.asked import Wanted
from service.answer.markup.links import post_url
from service.domain import Candidate

EXCERPT_CHARS = 240

HEAD = """\
# Questions to be judged by a person. For each post that was found, replace null:
#   2  it answers the question by itself      1  it helps, without answering      0  neither
# A post that answers and wasn't found can be added. A question that nothing here answers keeps no post of grade 2:
# look once more by hand, then give it the slice unanswerable (or offtopic, where it is none of the forum's business).
# While a grade is null, whoever reads this file says which questions still wait.
# When all are judged: python -m eval new --manifest FOLDER
"""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A question, its language, and what may answer it."""

    wanted: Wanted
    lang: str
    candidates: Sequence[Candidate]


def draft_yaml(drafted: Iterable[Drafted], base_url: str) -> str:
    """The text of questions.yml; whatever the posts say, each stays a comment of one line."""
    return HEAD + "".join("\n" + "\n".join(_item(one, base_url)) + "\n" for one in drafted)


def _item(one: Drafted, base_url: str) -> Iterator[str]:
    wanted = one.wanted
    yield f"- id: {_quoted(wanted.id)}"
    yield f"  slice: {_quoted(wanted.slice)}"
    yield f"  lang: {_quoted(one.lang)}"
    yield f"  question: {_quoted(wanted.question)}"
    if wanted.history:
        yield "  history:"
        for turn in wanted.history:
            yield f"    - {{role: {turn.role}, text: {_quoted(turn.text)}}}"
    if wanted.standalone:
        yield f"  standalone: {_quoted(wanted.standalone)}"
    yield f"  note: {_quoted(wanted.note)}"
    yield "  golden:" if one.candidates else "  golden: []"
    for found in one.candidates:
        yield f"    # {_comment(found.title)}"
        yield f"    # {post_url(found, base_url)}"
        yield f"    # {_comment(found.body)}"
        yield f"    - {{topic: {found.topic_id}, posts: [{found.post_number}], grade: null}}"


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf")).strip()


def _comment(text: str) -> str:
    """`text` on one line of characters that YAML takes."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * EXCERPT_CHARS]).split())
    return flat if len(flat) <= EXCERPT_CHARS else flat[: EXCERPT_CHARS - 1] + "…"
