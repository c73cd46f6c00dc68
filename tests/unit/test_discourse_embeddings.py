"""What discourse-ai embeds of a post, to the letter, and which vectors are taken for ones of our profile."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.embeddings import EmbeddedText, digest_of, has_digest, surely_fits, text_of, whole_texts
from service.discourse.forum_rows import vector_from_text
from service.domain import EmbeddingProfile, PostId
from service.ingest.copied_vectors import is_unit
from tests.integration.store_data import NOON

SMALL = EmbeddingProfile("bge-m3", 1, 1, dimensions=2, window_tokens=8192)


def embedded(**changes: object) -> EmbeddedText:
    given_: dict[str, object] = {
        "post_id": PostId(1),
        "digest": "",
        "made_at": NOON,
        "post_updated_at": NOON,
        "topic_updated_at": NOON,
        "title": "Tomatoes",
        "category": "Garden",
        "tags": ("soil",),
        "all_tags": ("soil", "hidden"),
        "cooked": "<p>Why?</p>",
    }
    return EmbeddedText(**given_ | changes)  # type: ignore[arg-type] # the fields above, by name


@pytest.mark.parametrize(
    ("cooked", "text"),
    [
        ("<p>One &amp; two</p>\n<ul>\n<li>three</li>\n</ul>", "One & two\n\nthree\n"),
        ('<aside class="quote"><blockquote>quoted</blockquote></aside>\n<p>answered</p>', "quoted\nanswered"),
        ('<p>a<img class="emoji" title=":smile:">b</p>', "ab"),
        ("no tag", "no tag"),
        ("", ""),
        ("<div>" * 2000, ""),
    ],
)
def test_the_body_is_every_text_node_and_nothing_else(cooked: str, text: str) -> None:
    assert text_of(cooked) == text


@given(st.text(max_size=60) | st.lists(st.sampled_from(["<p>", "</p>", "<pre", ">", "&amp", "a", "<!--"])).map("".join))
def test_any_html_has_a_text(cooked: str) -> None:
    assert isinstance(text_of(cooked), str)


def test_the_layout_is_title_category_tags_and_body() -> None:
    texts = list(whole_texts(embedded()))
    assert texts[0] == "Tomatoes\n\nGarden\n\nsoil, hidden\n\nWhy?"
    assert "Tomatoes\n\nGarden\n\nhidden, soil\n\nWhy?" in texts
    assert "Tomatoes\n\nGarden\n\nsoil\n\nWhy?" in texts


def test_a_part_that_is_empty_may_leave_a_blank_line() -> None:
    texts = list(whole_texts(embedded(tags=(), all_tags=())))
    assert texts == ["Tomatoes\n\nGarden\n\nWhy?", "Tomatoes\n\nGarden\n\n\n\nWhy?"]


def test_the_digest_is_sha_1_in_hex() -> None:
    text = "Tomatoes\n\nGarden\n\nsoil\n\nÉté"
    assert digest_of(text) == hashlib.sha1(text.encode()).hexdigest()
    assert has_digest(embedded(digest=digest_of("b").upper()), ["a", "b"])
    assert not has_digest(embedded(digest=digest_of("c")), ["a", "b"])


@given(st.text(max_size=40), st.integers(2, 200))
def test_a_text_that_surely_fits_has_a_byte_for_every_token(text: str, window: int) -> None:
    if surely_fits(text, window):
        assert len(text.encode("utf-8", "surrogatepass")) <= 3 * (window - 2)
    assert not surely_fits("a" * (window - 1), window)
    assert surely_fits("a" * (window - 2), window)


def test_a_character_that_becomes_many_counts_as_many() -> None:
    assert not surely_fits("\ufdfa" * 4, 20)


@given(st.text(max_size=30))
def test_what_is_no_vector_is_none(text: str) -> None:
    found = vector_from_text(text)
    assert found is None or bool(np.isfinite(found).all())


@pytest.mark.parametrize("text", ["", "[]", "[nan,1]", "[1,inf]", "[1e39,0]", "[1,x]", "[[1,0]]]x"])
def test_vectors_that_are_not_finite_are_none(text: str) -> None:
    assert vector_from_text(text) is None


def test_a_unit_vector_of_our_dimensions_is_taken() -> None:
    assert is_unit(vector_from_text("[0.6,0.8]"), SMALL)
    for other in ("[0.6,0.8,0]", "[0.6,0.7]", "[0,0]", "[1]", "[6e4,6e4]"):
        assert not is_unit(vector_from_text(other), SMALL)
    assert not is_unit(None, SMALL)
    assert not is_unit(np.array([math.nan, 1], dtype=np.float32), SMALL)
