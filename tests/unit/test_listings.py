"""Pages of a forum's lists, and the budget they are read within: one bad entry sinks none, no window is overrun."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.budget import Budget
from service.discourse.listings import latest_active, post_page_from_json, topic_page_from_json
from service.errors import Rejected
from tests.unit.test_archive import post_json, topic_json

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["id", "topic_id", "post_number", "highest_post_number", "title", "visible", "tags"])


def topics(*entries: object, **rest: object) -> dict[str, Any]:
    return {"topic_list": {"topics": list(entries)} | rest}


def test_a_bad_post_costs_its_page_nothing_else() -> None:
    page = post_page_from_json({"latest_posts": [post_json(3), post_json(2, post_number="two"), 17, post_json(1)]})
    assert [post.post_number for post in page.posts] == [3, 1]
    assert [str(fault) for fault in page.faults] == [
        "post.post_number: expected a whole number from 1 to 2147483647",
        "post: expected an object",
    ]
    assert (page.lowest, page.highest) == (1001, 1003)


def test_the_lowest_id_counts_whether_or_not_its_post_can_be_read() -> None:
    page = post_page_from_json({"latest_posts": [post_json(3), post_json(1, cooked=None)]})
    assert (page.lowest, len(page.posts)) == (1001, 1)


@pytest.mark.parametrize("number", [-1, 0, 2**63, 10**30])
def test_a_number_that_no_database_holds_is_no_id_and_no_count(number: int) -> None:
    page = post_page_from_json({"latest_posts": [post_json(3), post_json(2, id=number)]})
    assert (page.lowest, page.highest, len(page.faults)) == (1003, 1003, 1)
    listed = topic_page_from_json(topics(topic_json(highest_post_number=number)))
    assert [one.last_number for one in listed.topics] == [1]


def test_a_page_may_be_empty() -> None:
    page = post_page_from_json({"latest_posts": []})
    assert (page.posts, page.lowest, page.highest) == ([], None, None)


def test_a_list_gives_topics_with_the_number_of_their_last_post() -> None:
    page = topic_page_from_json(
        topics(topic_json(highest_post_number=9), {"id": 8}, topic_json(id=9), more_topics_url="/latest?page=1")
    )
    assert [(one.topic.id, one.last_number) for one in page.topics] == [(7, 9), (9, 1)]
    assert (len(page.faults), page.more) == (1, True)
    assert not topic_page_from_json(topics(topic_json())).more


def test_the_topic_that_was_active_last_is_found_below_a_pinned_one() -> None:
    pinned = {"id": 1, "bumped_at": "2020-01-01T00:00:00.000Z"}
    assert latest_active(topics(pinned, {"id": 2, "bumped_at": "2026-01-01T00:00:00.000Z"})) == 2
    assert latest_active(topics()) is None


@pytest.mark.parametrize("value", [None, [], {}, {"latest_posts": None}, {"latest_posts": {}}, {"topic_list": []}])
def test_what_is_no_list_is_refused_whole(value: object) -> None:
    for read in (post_page_from_json, topic_page_from_json):
        with pytest.raises(Rejected):
            read(value)


@given(st.lists(ANYTHING | st.dictionaries(KEYS, ANYTHING), max_size=4))
def test_any_entries_make_a_page(entries: list[object]) -> None:
    posts, listed = post_page_from_json({"latest_posts": entries}), topic_page_from_json(topics(*entries))
    assert len(posts.posts) + len(posts.faults) == len(entries)
    assert len(listed.topics) + len(listed.faults) == len(entries)
    assert all(0 < one < 2**63 for one in (posts.lowest, posts.highest) if one is not None)
    assert all(0 < one.last_number < 2**31 for one in listed.topics)


class Time:
    """A clock that only sleep moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@given(st.lists(st.floats(0, 5) | st.none(), min_size=5, max_size=60))
async def test_requests_are_spread_so_that_no_window_of_the_forum_is_overrun(work: list[float | None]) -> None:
    time, sent = Time(), []
    budget = Budget(200, clock=time, sleep=time.sleep)
    for seconds in work:
        await budget.turn()
        sent.append(time.now)
        if seconds is None:
            budget.postpone(30)
        else:
            time.now += seconds
    assert all(later - earlier > 0.299 for earlier, later in pairwise(sent))
    waits = [later - earlier for (earlier, later), done in zip(pairwise(sent), work, strict=False) if done is None]
    assert all(wait > 29.99 for wait in waits)


async def test_time_that_was_not_used_is_not_saved_up() -> None:
    time = Time()
    budget = Budget(60, clock=time, sleep=time.sleep)
    time.now += 600
    await budget.turn()
    await budget.turn()
    assert time.now == 701
