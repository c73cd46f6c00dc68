"""What discourse-ai embeds of a post: its strategy 1 text to the letter, and what its rows say (docs/discourse, 7)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from unicodedata import normalize

from selectolax.lexbor import LexborHTMLParser

from service.discourse.depth import is_too_deep
from service.domain import PostId

SPECIAL_TOKENS = 2
"""What discourse-ai leaves of a model's window for the tokens that begin and end a text."""


@dataclass(frozen=True, slots=True)
class EmbeddingDefinition:
    """A model of the forum's, as its operators named it; what a version of discourse-ai doesn't know is None."""

    id: int
    name: str
    dimensions: int | None
    window_tokens: int | None
    version: int | None
    prompt: str


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A public post that the forum has a vector of, when that was made, and the SHA-1 (hex) of its truncated text.

    `tags` are those that the public sees, by name; `all_tags` may have hidden ones and are in the forum's order.
    """

    post_id: PostId
    digest: str
    made_at: datetime
    post_updated_at: datetime
    topic_updated_at: datetime
    title: str
    category: str
    tags: tuple[str, ...]
    all_tags: tuple[str, ...]
    cooked: str


def text_of(cooked: str) -> str:
    """The text of a post's HTML as Nokogiri gives it: all text nodes, nothing between them; "" where it is too deep."""
    if is_too_deep(cooked):
        return ""
    root = LexborHTMLParser(cooked, is_fragment=True).root
    return "" if root is None else root.text(deep=True)


def whole_texts(one: EmbeddedText) -> Iterator[str]:
    """The texts that discourse-ai may have embedded of it before truncation, the likeliest first.

    Title, category, tags and body are parted by blank lines; versions differ in whether a part that is empty leaves
    one, and the order of tags is the database's.
    """
    body = text_of(one.cooked)
    for tags in dict.fromkeys((one.all_tags, tuple(sorted(one.all_tags)), one.tags)):
        heads = (one.title, one.category, ", ".join(tags))
        yield "".join(f"{part}\n\n" for part in heads if part) + body
        yield "".join(f"{part}\n\n" for part in heads) + body


def digest_of(text: str) -> str:
    """The digest that discourse-ai stores of a text."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def surely_fits(text: str, window_tokens: int) -> bool:
    """Whether no tokenizer of subwords makes more tokens of it than the window has: each takes a byte at least."""
    return len(normalize("NFKC", text).encode("utf-8", "surrogatepass")) <= window_tokens - SPECIAL_TOKENS


def has_digest(one: EmbeddedText, texts: Sequence[str]) -> bool:
    return one.digest.lower() in {digest_of(text) for text in texts}
