"""The embedded text of each strategy, and that its digest is Discourse's."""

import pytest

from service.domain import PostId
from service.errors import Misconfigured
from service.ingest.ports import TopicPost
from service.ingest.text import digest, embedded_text

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


def test_the_digest_is_sha1_of_utf8() -> None:
    assert digest("été").hex() == "64d0cbc5f02c3904ee4f439ca476480b67b5e3e1"
    assert digest("abc").hex() == "a9993e364706816aba3e25717850c26c9cd0d89d"
