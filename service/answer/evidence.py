"""Numbered evidence: for each source, the part of its text that matches the question best."""

import re
from collections.abc import Collection, Sequence

from service.domain import Candidate, Source
from service.lexer import lexemes

READ_CHARS = 8_000
"""How much of a post is looked through for its best part."""

_ELLIPSIS = "…"
_SENTENCE = re.compile(r"[^\n.!?…]*(?:[.!?…]+(?=\s|$)|\n+|[.!?…]|$)\s*")


def number_sources(candidates: Sequence[Candidate], wanted: Collection[str], max_chars: int) -> tuple[Source, ...]:
    """The candidates as sources 1, 2, ... in their order, each with its excerpt."""
    return tuple(
        Source(
            n=n,
            post_id=found.post_id,
            topic_id=found.topic_id,
            post_number=found.post_number,
            title=found.title,
            slug=found.slug,
            excerpt=excerpt(found.body, wanted, max_chars),
            username=found.username,
            created_at=found.created_at,
            cosine=found.cosine,
            logit=found.logit,
        )
        for n, found in enumerate(candidates, start=1)
    )


def excerpt(body: str, wanted: Collection[str], max_chars: int) -> str:
    """At most `max_chars` characters of whole sentences holding the most of the `wanted` lexemes, earliest first.

    A sentence longer than that is cut at a word. An ellipsis stands where text was left out.
    """
    body = body.strip()
    if len(body) <= max_chars:
        return body
    sentences = [match.group() for match in _SENTENCE.finditer(body[:READ_CHARS]) if match.group()]
    first, last = _best_run(sentences, frozenset(wanted), max_chars - 2 * len(_ELLIPSIS))
    text = "".join(sentences[first:last]).strip()
    if len(text) > max_chars - 2 * len(_ELLIPSIS):
        text = _cut_around(text, frozenset(wanted), max_chars - 2 * len(_ELLIPSIS))
    position = body.find(text)
    return f"{_ELLIPSIS if position > 0 else ''}{text}{_ELLIPSIS if position + len(text) < len(body) else ''}"


def _best_run(sentences: Sequence[str], wanted: frozenset[str], max_chars: int) -> tuple[int, int]:
    """The run of sentences [first, last) within `max_chars` (or one sentence) with the most distinct wanted lexemes."""
    hits = [wanted.intersection(lexemes(sentence)) for sentence in sentences]
    best, best_score = (0, 1), -1
    last, size = 0, 0
    for first in range(len(sentences)):
        if last <= first:
            last, size = first + 1, len(sentences[first])
        while last < len(sentences) and size + len(sentences[last].rstrip()) <= max_chars:
            size += len(sentences[last])
            last += 1
        score = len(frozenset().union(*hits[first:last]))
        if score > best_score:
            best, best_score = (first, last), score
        size -= len(sentences[first])
    return best


def _cut_around(text: str, wanted: frozenset[str], max_chars: int) -> str:
    """The part of one overlong sentence from a little before its first wanted word, cut at words."""
    words = list(re.finditer(r"\S+", text))
    hit = next((word.start() for word in words if wanted.intersection(lexemes(word.group()))), 0)
    start = max(0, min(hit - max_chars // 4, len(text) - max_chars))
    part = text[start : start + max_chars]
    if start > 0:
        part = part.partition(" ")[2] or part
    if start + max_chars < len(text):
        part = part.rpartition(" ")[0] or part
    return part.strip()
