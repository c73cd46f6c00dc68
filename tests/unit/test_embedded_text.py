"""The embedded texts of each strategy, and that their digest is Discourse's."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import EmbeddingProfile, PostId
from service.errors import Misconfigured
from service.inference.embedding import EmbedderOptions, counted
from service.inference.tokens import sendable
from service.ingest.ports import TopicPost
from service.ingest.text import PassageText, digest, embedded_text, passage_texts, whole_digest
from tests.fakes.embedder import HashEmbedder

POST = TopicPost(PostId(1), "Sowing peas", "Vegetables", ("peas", "spring"), "Sow in March.\n\nKeep moist.")


def test_discourse_layout() -> None:
    assert embedded_text(POST, 1) == "Sowing peas\n\nVegetables\n\npeas, spring\n\nSow in March.\n\nKeep moist."


def test_title_and_body_is_bounded() -> None:
    assert embedded_text(POST, 100) == "Sowing peas\n\nSow in March.\n\nKeep moist."
    long = TopicPost(PostId(1), "T", "", (), "x" * 5000)
    assert len(embedded_text(long, 100)) == len("T\n\n") + 1500


def test_an_unknown_strategy_says_so() -> None:
    with pytest.raises(Misconfigured, match="strategy 7"):
        embedded_text(POST, 7)


SPLIT = EmbeddingProfile("toy", 101, 1, dimensions=8, window_tokens=60, passage_tokens=40, overlap_tokens=8)
E5 = EmbedderOptions("query: ", "passage: ")


class Estimating(HashEmbedder):
    """Counts as adapters of servers do, and cuts nothing."""

    def truncate(self, text: str) -> str:
        return sendable(text)

    def tokens(self, text: str) -> float:
        return counted(text, E5)


@pytest.mark.parametrize("strategy", [1, 100])
def test_other_strategies_have_one_text_that_the_window_may_cut(strategy: int) -> None:
    embedder = HashEmbedder(replace(SPLIT, strategy=strategy))
    assert passage_texts(POST, embedder) == [PassageText(embedded_text(POST, strategy), cut=False)]
    [cut] = passage_texts(replace(POST, body="x" * 900), embedder)
    assert cut == PassageText(embedded_text(replace(POST, body="x" * 900), strategy)[:200], cut=True)


def test_a_short_post_is_one_passage_and_a_long_one_several_under_its_title() -> None:
    embedder = Estimating(SPLIT)
    assert passage_texts(POST, embedder) == [PassageText("Sowing peas\n\nSow in March.\n\nKeep moist.", cut=False)]
    lines = "\n\n".join(f"Line {n} of a long story about peas, soil and rain." for n in range(9))
    texts = passage_texts(replace(POST, body=lines), embedder)
    assert len(texts) > 3
    assert all(one.text.startswith("Sowing peas\n\n") and not one.cut for one in texts)
    assert whole_digest(texts[:1]) == digest(texts[0].text) != whole_digest(texts)


def test_a_post_without_words_is_its_title() -> None:
    assert passage_texts(replace(POST, body=" \n"), Estimating(SPLIT)) == [PassageText("Sowing peas\n\n", cut=False)]


def test_a_title_leaves_half_of_the_window_to_the_body_and_its_cut_is_told() -> None:
    texts = passage_texts(replace(POST, title="word " * 200), Estimating(SPLIT))
    assert [one.cut for one in texts] == [True]
    assert texts[0].text.endswith("Keep moist.")
    assert counted(texts[0].text, E5) <= SPLIT.window_tokens


@given(title=st.text(max_size=80), body=st.text(max_size=800))
def test_every_passage_fits_the_window(title: str, body: str) -> None:
    embedder = Estimating(SPLIT)
    for one in passage_texts(replace(POST, title=title, body=body), embedder):
        assert embedder.tokens(one.text) <= SPLIT.window_tokens + 1e-6


def test_the_digest_is_sha1_of_utf8() -> None:
    assert digest("été").hex() == "64d0cbc5f02c3904ee4f439ca476480b67b5e3e1"
    assert digest("abc").hex() == "a9993e364706816aba3e25717850c26c9cd0d89d"
