"""Turns a model's draft into a post that may go out, or says that it may not: the last stage before posting."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from service.answer.markup.audit import faults
from service.answer.markup.invisible import strip_invisible
from service.answer.markup.language import is_foreign
from service.answer.markup.leaks import drop_leaks
from service.answer.markup.links import Linkable, links, post_url
from service.answer.markup.read import read
from service.answer.markup.reasoning import strip_hidden
from service.answer.markup.source_list import drop_source_list
from service.answer.markup.tree import Block, citations, inline_runs, plain
from service.answer.markup.trim import cut
from service.answer.markup.write import write
from service.domain import Zone

Fallback = Literal["abstain", "sources"]

LONGEST_POST = 32_000
"""Discourse's default limit of a post (max_post_length)."""

_LONGEST_DRAFT = 1_000_000
_LONGEST_TEXT = 40_000
_MOST_LINES = 2_000
_FEWEST_LETTERS = 4
_MOST_LAYERS = 5


@dataclass(frozen=True, slots=True)
class Sanitized:
    """A post that may go out, or None and what the server should say instead.

    `cited` are the numbers of the sources that the post links, in reading order; `removed` counts what was taken out.
    """

    post: str | None
    fallback: Fallback | None
    cited: tuple[int, ...]
    removed: Mapping[str, int]


def sanitize(
    draft: str,
    sources: Sequence[Linkable],
    *,
    zone: Zone,
    base_url: str,
    lang: str | None = None,
    caution: str = "",
    prompt: str = "",
    longest: int = LONGEST_POST,
) -> Sanitized:
    """The draft as a post whose only links are the server's, one for each `[[n]]` that names one of `sources`.

    Everything else that a forum would make live is gone outside code: addresses, images, HTML, BBCode, mentions,
    hashtags; so are reasoning, a list of sources of the model's own, and its talk of itself. `caution` is put before
    the answer in the weak zone. The post is None when nothing may be posted as a sourced answer: in the abstain zone,
    without a sentence, without a citation, or not in `lang` where that is known; `fallback` then says whether the
    server shows the sources it has, or abstains. `prompt` is the fixed part of the model's orders, `longest` the
    forum's limit in characters. Total: any string is a draft.
    """
    removed: Counter[str] = Counter()
    blocks = clean_blocks(draft, len(sources), prompt, removed)
    reason = _unfit(blocks, zone, lang)
    if reason is None:
        blocks, post = _fitted(blocks, sources, base_url, caution if zone == Zone.WEAK else "", longest, removed)
        reason = _unfit(blocks, zone, lang)
        if reason is None and not faults(post, {post_url(source, base_url) for source in sources}):
            return Sanitized(post, None, citations(blocks), _counts(removed))
    removed[reason or "unsafe"] += 1
    fallback: Fallback = "abstain" if zone == Zone.ABSTAIN or not sources else "sources"
    return Sanitized(None, fallback, (), _counts(removed))


def clean(draft: str, sources: int) -> str:
    """The draft as it is before its `[[n]]` become links: a fixed point, cleaning it again changes nothing."""
    return write(clean_blocks(draft, sources, "", Counter()), lambda n: f"[[{n}]]")


def clean_blocks(draft: str, sources: int, prompt: str, removed: Counter[str]) -> tuple[Block, ...]:
    """The draft as the tree of what may be posted of it, not yet judged as an answer; counts what it drops."""
    text, invisible = strip_invisible(draft[:_LONGEST_DRAFT])
    removed["invisible"] += invisible
    text = _bounded(strip_hidden(text, removed), removed)
    blocks = read(text, sources, removed)
    for _ in range(_MOST_LAYERS):
        # What one removal leaves may start with the next thing to remove.
        shorter = drop_source_list(drop_leaks(blocks, prompt, removed), removed)
        if shorter == blocks:
            break
        blocks = shorter
    return blocks


def _bounded(text: str, removed: Counter[str]) -> str:
    """The beginning of a text that is far longer than any post, so that no time is spent on the rest."""
    kept = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT].rsplit(" ", 1)[0]
    bounded = "\n".join(kept.split("\n")[:_MOST_LINES])
    removed["cut"] += len(bounded) < len(text)
    return bounded


def _fitted(
    blocks: tuple[Block, ...],
    sources: Sequence[Linkable],
    base_url: str,
    caution: str,
    longest: int,
    removed: Counter[str],
) -> tuple[tuple[Block, ...], str]:
    """As many of the blocks as the forum takes, and their post; a source is titled where it's first cited."""
    made = {n: links(n, sources[n - 1], base_url) for n in citations(blocks)}
    seen: set[int] = set()

    def cite(n: int) -> str:
        titled, plain_number = made[n]
        if n in seen:
            return plain_number
        seen.add(n)
        return titled

    def posted(part: Sequence[Block]) -> str:
        seen.clear()
        return "\n\n".join(filter(None, (caution, write(part, cite))))

    fitting = cut(blocks, longest, lambda part: len(posted(part)))
    removed["cut"] += fitting != blocks
    return fitting, posted(fitting)


def _unfit(blocks: Sequence[Block], zone: Zone, lang: str | None) -> str | None:
    """Why these blocks are no sourced answer, or None if they are."""
    words = "".join(plain(run) for run in inline_runs(blocks))
    if zone == Zone.ABSTAIN:
        return "abstain_zone"
    if sum(char.isalpha() for char in words) < _FEWEST_LETTERS:
        return "no_sentence"
    if not citations(blocks):
        return "no_citation"
    # A quotation may be in the language of the post that it quotes.
    if lang is not None and is_foreign("\n".join(plain(run) for run in inline_runs(blocks, quotes=False)), lang):
        return "language"
    return None


def _counts(removed: Counter[str]) -> Mapping[str, int]:
    return MappingProxyType({kind: count for kind, count in sorted(removed.items()) if count})
