"""Which jobs an event makes, in which order they run, and when a failed one is tried again."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.events import (
    CategoryEvent,
    CategoryEventName,
    PostEvent,
    PostEventName,
    Stored,
    TopicEvent,
    TopicEventName,
)
from service.domain import Category, CategoryId, Post, PostId, TopicId, UserId
from service.errors import Misconfigured, Rejected, Transient, Unsure
from service.jobs import NewJob, TaskName, waiting
from service.jobs.tasks import build_queue
from service.retry import MAX_RETRY_AFTER_SECONDS, RetryPolicy
from service.settings import WorkerSettings
from service.webhook.categories import cached
from service.webhook.receive import Place, addresses_bot, jobs_for, place_of

POST = Post(
    id=PostId(7),
    topic_id=TopicId(3),
    post_number=2,
    post_type=1,
    user_id=UserId(5),
    username="lea",
    cooked="<p>Hello</p>",
    created_at=datetime(2024, 1, 1, tzinfo=UTC),
    updated_at=datetime(2024, 1, 1, tzinfo=UTC),
    archetype="regular",
    category_id=CategoryId(1),
)
CATEGORIES = {
    CategoryId(1): Category(CategoryId(1), "Open", "open", None, False),
    CategoryId(2): Category(CategoryId(2), "Staff", "staff", None, True),
}
MENTION = '<p><a class="mention" href="/u/ariane">@ariane</a> why?</p>'

ANSWER = NewJob(TaskName.ANSWER_POST, "answer:7")
INDEX = NewJob(TaskName.INDEX_POST, "index:3")
REMOVE = NewJob(TaskName.REMOVE_POST)
HIDE_TOPIC = NewJob(TaskName.HIDE_TOPIC, None, {"topic_id": 3})
REFRESH = NewJob(TaskName.REFRESH_TOPIC, "index:3", {"topic_id": 3})


def event(name: PostEventName = PostEventName.CREATED, **changes: object) -> PostEvent:
    return PostEvent(name, replace(POST, **changes))  # type: ignore[arg-type]  # a table's keywords


@pytest.mark.parametrize(
    ("stored", "place", "addressed", "jobs"),
    [
        (event(), Place.PUBLIC, False, (ANSWER, INDEX)),
        (event(PostEventName.EDITED), Place.PUBLIC, False, (ANSWER, INDEX)),
        (event(), Place.UNKNOWN, True, (ANSWER, INDEX)),
        (event(), Place.UNKNOWN, False, (INDEX,)),
        (event(hidden=True), Place.PUBLIC, False, (REMOVE,)),
        (event(hidden=True), Place.PUBLIC, True, (REMOVE, ANSWER)),
        (event(), Place.PRIVATE, False, (REMOVE,)),
        (event(), Place.PRIVATE, True, (REMOVE, ANSWER)),
        (event(PostEventName.RECOVERED), Place.PRIVATE, False, (REMOVE,)),
        (event(deleted=True), Place.PUBLIC, False, (REMOVE,)),
        (event(user_deleted=True), Place.PUBLIC, False, (REMOVE,)),
        (event(PostEventName.DESTROYED, deleted=True), Place.PUBLIC, False, (REMOVE,)),
        (
            event(PostEventName.RECOVERED),
            Place.PUBLIC,
            False,
            (NewJob(TaskName.REFRESH_POST, "index:3", {"post_id": 7}),),
        ),
        (event(PostEventName.RECOVERED, post_number=1), Place.PUBLIC, False, (REFRESH,)),
        (TopicEvent(TopicEventName.EDITED, TopicId(3)), Place.PUBLIC, False, (REFRESH,)),
        (TopicEvent(TopicEventName.DESTROYED, TopicId(3), private=True), Place.PUBLIC, False, (HIDE_TOPIC, REFRESH)),
        (TopicEvent(TopicEventName.EDITED, TopicId(3)), Place.PRIVATE, False, (HIDE_TOPIC, REFRESH)),
        (TopicEvent(TopicEventName.EDITED, TopicId(3)), Place.UNKNOWN, False, (HIDE_TOPIC, REFRESH)),
        (
            CategoryEvent(CategoryEventName.UPDATED, CategoryId(1)),
            Place.PUBLIC,
            False,
            (NewJob(TaskName.REFRESH_CATEGORIES, "categories"),),
        ),
    ],
)
def test_an_event_makes_its_jobs(stored: Stored, place: Place, addressed: bool, jobs: tuple[NewJob, ...]) -> None:
    assert jobs_for(stored, place=place, addressed=addressed) == jobs


def test_only_tasks_that_read_the_inbox_keep_a_text_waiting() -> None:
    assert waiting((ANSWER, INDEX)) == ("answer_post", "index_post")
    assert waiting((REFRESH,)) == ()


def test_removals_never_wait_for_a_lock() -> None:
    assert REMOVE.lock is None


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, Place.PUBLIC),
        ({"category_id": 2}, Place.PRIVATE),
        ({"category_id": 99}, Place.UNKNOWN),
        ({"category_id": None}, Place.PRIVATE),
        ({"archetype": "private_message"}, Place.PRIVATE),
        ({"archetype": None}, Place.UNKNOWN),
        ({"post_type": 4}, Place.PRIVATE),
    ],
)
def test_the_place_of_a_post(changes: dict[str, object], place: Place) -> None:
    assert place_of(event(**changes).post, CATEGORIES) is place  # type: ignore[arg-type]  # a table's keywords


@pytest.mark.parametrize(
    ("changes", "addressed"),
    [
        ({}, False),
        ({"cooked": MENTION}, True),
        ({"cooked": f'<aside class="quote"><blockquote>{MENTION}</blockquote></aside>'}, False),
        ({"reply_to_username": "Ariane"}, True),
        ({"reply_to_username": "lea"}, False),
        ({"reply_to_username": "lea", "reply_to_post_number": 1}, False),
        ({"reply_to_post_number": 1}, True),
    ],
)
def test_who_means_the_bot(changes: dict[str, object], addressed: bool) -> None:
    assert addresses_bot(event(**changes).post, "ariane") is addressed  # type: ignore[arg-type]  # a table's keywords


SETTINGS = WorkerSettings(max_attempts=8, retry_base_seconds=2, retry_max_seconds=600)


def policy(random: float = 1.0) -> RetryPolicy:
    return RetryPolicy(SETTINGS, lambda: random)


@pytest.mark.parametrize(
    ("exception", "attempts", "seconds"),
    [
        (Transient("busy"), 0, 2),
        (Transient("busy"), 1, 4),
        (Transient("busy"), 6, 128),
        (Transient("busy"), 7, None),
        (Unsure("lost"), 0, 2),
        (Misconfigured("key"), 0, 16),
        (ZeroDivisionError(), 1, 32),
        (ZeroDivisionError(), 6, 600),
        (ZeroDivisionError(), 7, None),
        (Rejected("no"), 0, None),
        (asyncio.CancelledError(), 7, 0),
    ],
)
def test_waits_double_up_to_the_cap(exception: BaseException, attempts: int, seconds: float | None) -> None:
    assert policy().wait_seconds(exception, attempts) == seconds


def test_a_servers_own_wish_is_honoured_within_reason() -> None:
    assert policy(0.0).wait_seconds(Transient("429", retry_after_seconds=90), 0) == 90
    assert policy(0.0).wait_seconds(Transient("429", retry_after_seconds=1e12), 0) == MAX_RETRY_AFTER_SECONDS


@given(st.floats(0, 1), st.integers(0, 10**6), st.floats(-1e9, 1e9))
def test_no_wait_is_negative_or_endless(random: float, attempts: int, wished: float) -> None:
    patient = RetryPolicy(SETTINGS.model_copy(update={"max_attempts": 10**7}), lambda: random)
    wait = patient.wait_seconds(Transient("busy", retry_after_seconds=wished), attempts)
    assert wait is not None
    assert 1 <= wait <= 1.1 * MAX_RETRY_AFTER_SECONDS


def test_jitter_spreads_the_waits() -> None:
    assert policy(0.0).wait_seconds(Transient("busy"), 3) == 8
    assert policy(1.0).wait_seconds(Transient("busy"), 3) == 16


def test_every_task_is_there_and_periodic_ones_have_their_place() -> None:
    app = build_queue(policy(), finished_jobs_hours=1)
    assert set(TaskName) <= set(app.tasks)
    periodic = {name: entry.configure_kwargs for (name, _), entry in app.periodic_registry.periodic_tasks.items()}
    assert set(periodic) == {
        TaskName.REFRESH_CATEGORIES,
        TaskName.EMBED_PENDING,
        TaskName.EXPIRE,
        TaskName.GROUP_UNANSWERED,
        TaskName.RECONCILE,
    }
    assert all(options["queue"] != "default" for options in periodic.values())
    # A retry would run into a queueing lock.
    assert all(app.tasks[name].retry_strategy is None for name, options in periodic.items() if options["queueing_lock"])


async def test_categories_are_asked_for_once_in_a_while() -> None:
    asked, now = [0], [0.0]

    async def read() -> dict[CategoryId, Category]:
        asked[0] += 1
        return CATEGORIES

    categories = cached(read, seconds=1.0, clock=lambda: now[0])
    for now[0] in (0.0, 0.5, 0.9, 1.1, 1.2):
        assert await categories() == CATEGORIES
    assert asked == [2]
