"""The text that is embedded for a post, by strategy (spec P2), and its digest."""

import hashlib

from service.errors import Misconfigured
from service.ingest.ports import TopicPost

DISCOURSE = 1
"""Discourse's own layout: title, category, tags, text of the body."""
TITLE_AND_BODY = 100
"""Ours: title and the first characters of the cleaned body."""
TITLE_AND_BODY_CHARS = 1500


def embedded_text(post: TopicPost, strategy: int) -> str:
    """What a vector of this strategy stands for, before the model's own window cuts it."""
    if strategy == DISCOURSE:
        return f"{post.title}\n\n{post.category}\n\n{', '.join(post.tags)}\n\n{post.body}"
    if strategy == TITLE_AND_BODY:
        return f"{post.title}\n\n{post.body[:TITLE_AND_BODY_CHARS]}"
    raise Misconfigured(f"embedding strategy {strategy} is unknown: use {DISCOURSE} or {TITLE_AND_BODY}")


def digest(text: str) -> bytes:
    """SHA-1 of the text as it was embedded, as Discourse does it: same digest, same vector."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
