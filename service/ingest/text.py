"""The texts that are embedded for a post, by strategy (spec P2), and their digests."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain import PASSAGES
from service.errors import Misconfigured
from service.ingest.ports import PassageEmbedder, TopicPost
from service.ingest.split import split

DISCOURSE = 1
"""Discourse's own layout: title, category, tags, text of the body."""
TITLE_AND_BODY = 100
"""Ours: title and the first characters of the cleaned body."""
TITLE_AND_BODY_CHARS = 1500


@dataclass(frozen=True, slots=True)
class PassageText:
    """A text as its model gets it; `cut` where the post has more that the model's window has no room for."""

    text: str
    cut: bool


def passage_texts(post: TopicPost, embedder: PassageEmbedder) -> list[PassageText]:
    """What the vectors of a post stand for, by passage: one text, but of a long post under the strategy PASSAGES.

    There each is the title and a piece of the cleaned body. Raises Misconfigured for an unknown strategy.
    """
    profile = embedder.profile
    if profile.strategy == PASSAGES:
        return _passages(post, embedder)
    whole = embedded_text(post, profile.strategy)
    return [_fitted(whole, embedder)]


def embedded_text(post: TopicPost, strategy: int) -> str:
    """The one text of a post under a strategy that doesn't split, before the model's own window cuts it."""
    if strategy == DISCOURSE:
        return f"{post.title}\n\n{post.category}\n\n{', '.join(post.tags)}\n\n{post.body}"
    if strategy == TITLE_AND_BODY:
        return f"{post.title}\n\n{post.body[:TITLE_AND_BODY_CHARS]}"
    raise Misconfigured(f"embedding strategy {strategy} is unknown: use {DISCOURSE}, {TITLE_AND_BODY} or {PASSAGES}")


def digest(text: str) -> bytes:
    """SHA-1 of the text as it was embedded, as Discourse does it: same digest, same vector."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()


def whole_digest(texts: Sequence[PassageText]) -> bytes:
    """The digest of all texts of a post, as one that the model fails on is remembered by; of a single text, its own."""
    return digest("".join(one.text for one in texts))


def _passages(post: TopicPost, embedder: PassageEmbedder) -> list[PassageText]:
    profile, around = embedder.profile, embedder.tokens("")
    room = profile.window_tokens - around

    def count(text: str) -> float:
        return embedder.tokens(text) - around

    [head, *rest] = split(post.title, count, size=room / 2, overlap=0) or [""]  # half of the window is the body's
    size = min(profile.passage_tokens or room, room - count(head))
    pieces = split(post.body, count, size=size, overlap=profile.overlap_tokens) or [""]
    texts = [_fitted(f"{head}\n\n{piece}", embedder) for piece in pieces]
    return [PassageText(one.text, one.cut or bool(rest)) for one in texts]


def _fitted(whole: str, embedder: PassageEmbedder) -> PassageText:
    text = embedder.truncate(whole)
    return PassageText(text, len(text) < len(whole.rstrip()))
