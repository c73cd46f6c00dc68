"""`ariane sanitize`: what would be posted of a model's drafts, one JSON line each."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO
from zlib import crc32

import click
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from service.answer.messages import Message, message
from service.answer.sanitize import sanitize
from service.commands.jsonl import answer_lines, read_line
from service.commands.options import configured
from service.domain import ENGLISH, Lang, Zone
from service.settings import Settings

DEFAULT_BASE_URL = "https://forum.example"


@dataclass(frozen=True, slots=True)
class NumberedSource:
    """A source as a line gives it: what a link needs."""

    topic_id: int
    post_number: int
    slug: str
    title: str


class _GivenSource(BaseModel):
    model_config = ConfigDict(strict=True)

    topic_id: int = Field(gt=0)
    post_number: int = Field(gt=0)
    slug: str
    title: str


class _Line(BaseModel):
    """One draft; `sources` is a list of posts, or N for N invented ones."""

    id: str | int
    draft: str
    sources: int | list[_GivenSource]
    zone: Zone = Zone.NORMAL
    lang: str | None = None
    base_url: str = DEFAULT_BASE_URL


_LINE = TypeAdapter(_Line)
_BASE_URL = re.compile(r"https?://[^\s<>()\[\]\"'\\`]+")
_MOST_SOURCES = 1000


def sanitize_jsonl(lines: Iterable[str], out: TextIO) -> int:
    """Sanitize a draft a line; status and errors as for `answer_lines`."""
    return answer_lines("ariane sanitize", lines, out, _read, _sanitized)


def _read(line: str) -> _Line:
    given = read_line(line, _LINE)
    if isinstance(given.sources, int) and not 0 <= given.sources <= _MOST_SOURCES:
        raise ValueError(f"sources: a number from 0 to {_MOST_SOURCES}, or a list of posts")
    if not _BASE_URL.fullmatch(given.base_url):
        raise ValueError("base_url: an http or https address without spaces, brackets or quotes")
    return given


def _sanitized(given: _Line) -> dict[str, object]:
    seed = crc32(str(given.id).encode(errors="surrogatepass"))
    caution = message(Message.CAUTION, Lang(given.lang or ENGLISH), seed) if given.zone is Zone.WEAK else ""
    result = sanitize(
        given.draft, _sources(given), zone=given.zone, base_url=given.base_url, lang=given.lang, caution=caution
    )
    return {
        "id": given.id,
        "post": result.post,
        "fallback": result.fallback,
        "cited": list(result.cited),
        "removed": dict(result.removed),
    }


def _sources(given: _Line) -> list[NumberedSource]:
    if isinstance(given.sources, int):
        return [NumberedSource(1000 + n, n, f"topic-{n}", f"Topic {n}") for n in range(1, given.sources + 1)]
    return [NumberedSource(each.topic_id, each.post_number, each.slug, each.title) for each in given.sources]


@click.command("sanitize")
@click.argument("drafts", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option(
    "--jsonl",
    is_flag=True,
    required=True,
    help="Read a JSON object a line from DRAFTS (by default stdin), write one a line.",
)
@configured
def command(_settings: Settings, drafts: TextIO, jsonl: bool) -> None:
    """Say what would be posted of drafts: {"id", "draft", "sources", "zone"?, "lang"?, "base_url"?} a line."""
    del jsonl
    raise SystemExit(sanitize_jsonl(drafts, sys.stdout))
