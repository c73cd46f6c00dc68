"""What a cross-encoder reads: the question beside title and excerpt, whose share of the window is reserved."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain import Candidate
from service.inference.tokens import estimated_tokens, sendable

_SPECIAL_TOKENS = 4
UNSCORABLE = -20.0
"""Logit of a pair that the model fails on: below every threshold, so it is never an answer."""


@dataclass(frozen=True, slots=True)
class PairOptions:
    """`excerpt_chars` of a post are read; question, title and excerpt share `window_tokens`."""

    excerpt_chars: int = 300
    window_tokens: int = 512


def pair_text(candidate: Candidate, options: PairOptions) -> str:
    """Title, line break, and the post's first characters."""
    return sendable(f"{candidate.title}\n{candidate.body[: options.excerpt_chars].strip()}")


def pairs(question: str, candidates: Sequence[Candidate], options: PairOptions) -> tuple[str, list[str]]:
    """The question as it is sent, and the texts it is scored with.

    The question is cut at a word so that the longest text keeps its room, which is at most half of the window (the
    tokenizer cuts the longer of the two first).
    """
    texts = [pair_text(candidate, options) for candidate in candidates]
    room = options.window_tokens - _SPECIAL_TOKENS
    if len(question) + max(map(len, texts), default=0) <= room:  # no text is estimated at more tokens than characters
        return sendable(question), texts
    reserved = min(max(map(estimated_tokens, texts), default=0.0), room / 2)
    return _first_tokens(sendable(question), room - reserved), texts


def _first_tokens(text: str, tokens: float) -> str:
    if estimated_tokens(text) <= tokens:
        return text
    left = tokens
    for word in re.finditer(r"\S+", text):
        left -= estimated_tokens(word[0])
        if left < 0:
            return text[: word.start()].rstrip() or text[: int(tokens)]
    return text
