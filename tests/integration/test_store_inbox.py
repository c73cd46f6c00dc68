"""The inbox: once a content, atomic with its jobs, and no private text at rest."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain import CategoryId, InboxId
from service.settings import RetentionSettings
from service.store.inbox import InboxStore, NewDelivery
from service.store.pool import Connection, Pool
from service.store.values import storable
from tests.integration.store_data import NOON, POST, PRIVATE, PUBLIC, rows

DELIVERY = NewDelivery(b"k1", "forum", "post_created", "1", ("index_post", "answer_post"), POST)


async def no_job(_conn: Connection, _inbox_id: InboxId) -> None: ...


@pytest.fixture
async def inbox(pool: Pool) -> InboxStore:
    for category in (PUBLIC, PRIVATE):
        async with pool.connection() as conn:
            await conn.execute(
                "INSERT INTO categories VALUES (%s, %s, %s, %s, %s)",
                (category.id, category.name, category.slug, category.parent_id, category.read_restricted),
            )
    return InboxStore(pool)


async def test_a_delivery_comes_back_whole(inbox: InboxStore) -> None:
    inbox_id = await inbox.receive(DELIVERY, no_job)
    assert inbox_id is not None
    delivery = await inbox.delivery(inbox_id)
    assert delivery is not None
    assert (delivery.event, delivery.post, delivery.has_text) == ("post_created", POST, True)
    assert await inbox.delivery(InboxId(inbox_id + 1)) is None


async def test_the_same_content_is_taken_once_even_at_once(inbox: InboxStore) -> None:
    deferred = []

    async def defer(_conn: Connection, inbox_id: InboxId) -> None:
        deferred.append(inbox_id)
        await asyncio.sleep(0.05)

    taken = await asyncio.gather(*(inbox.receive(DELIVERY, defer) for _ in range(5)))
    assert [one for one in taken if one is not None] == deferred
    assert len(deferred) == 1


async def test_a_failing_defer_leaves_no_row_and_the_content_may_come_again(inbox: InboxStore, pool: Pool) -> None:
    async def fail(conn: Connection, _inbox_id: InboxId) -> None:
        await conn.execute("CREATE TABLE deferred_with_it ()")
        raise RuntimeError("queue")

    with pytest.raises(RuntimeError, match="queue"):
        await inbox.receive(DELIVERY, fail)
    assert await rows(pool, "SELECT to_regclass('deferred_with_it'), count(*) FROM inbox") == [(None, 0)]
    assert await inbox.receive(DELIVERY, no_job) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"category_id": PRIVATE.id},
        {"category_id": CategoryId(99)},
        {"category_id": None},
        {"archetype": "private_message"},
        {"archetype": None},
        {"post_type": 4},
        {"hidden": True},
        {"deleted": True},
    ],
)
async def test_private_text_is_never_at_rest(inbox: InboxStore, pool: Pool, change: dict[str, Any]) -> None:
    secret = replace(POST, cooked="<p>xyzzy</p>", topic_title="xyzzy", topic_slug="xyzzy", **change)
    inbox_id = await inbox.receive(replace(DELIVERY, post=secret), no_job)
    assert inbox_id is not None
    assert await rows(pool, "SELECT count(*) FROM inbox WHERE inbox::text LIKE '%%xyzzy%%'") == [(0,)]
    delivery = await inbox.delivery(inbox_id)
    assert delivery is not None
    assert not delivery.has_text
    assert delivery.post == replace(secret, cooked="", topic_title="", topic_slug="")


async def test_text_goes_when_the_last_task_is_done_whatever_the_order(inbox: InboxStore) -> None:
    inbox_id = await inbox.receive(DELIVERY, no_job)
    assert inbox_id is not None
    has_text = []
    for task in ("answer_post", "answer_post", "unknown", "index_post"):
        await inbox.done(inbox_id, task)
        delivery = await inbox.delivery(inbox_id)
        assert delivery is not None
        has_text.append(delivery.has_text)
    assert has_text == [True, True, True, False]


async def test_tasks_done_at_once_leave_no_text(inbox: InboxStore, pool: Pool) -> None:
    tasks = tuple(f"task {n}" for n in range(6))
    for n in range(10):
        inbox_id = await inbox.receive(replace(DELIVERY, content_key=bytes([n]), waiting=tasks), no_job)
        assert inbox_id is not None
        await asyncio.gather(*(inbox.done(inbox_id, task) for task in tasks))
    assert await rows(pool, "SELECT DISTINCT waiting, cooked, topic_title, topic_slug FROM inbox") == [
        ([], None, None, None)
    ]


async def test_text_that_no_task_waits_for_is_not_kept(inbox: InboxStore, pool: Pool) -> None:
    await inbox.receive(replace(DELIVERY, waiting=()), no_job)
    await inbox.receive(replace(DELIVERY, content_key=b"k2", waiting=(), post=None, event="topic_created"), no_job)
    assert await rows(pool, "SELECT cooked, topic_title, topic_slug FROM inbox") == [(None, None, None)] * 2
    assert await rows(pool, "SELECT count(*) FROM inbox WHERE state IS NULL") == [(1,)]


async def test_expiry_drops_texts_then_rows(inbox: InboxStore, pool: Pool) -> None:
    inbox_id = await inbox.receive(DELIVERY, no_job)
    assert inbox_id is not None
    await rows(pool, "UPDATE inbox SET received_at = %s RETURNING 1", NOON)
    retention = RetentionSettings(inbox_body_hours=24, inbox_days=30)
    expired = [await inbox.expire(retention, now=NOON + timedelta(hours=hours)) for hours in (23, 25, 26, 24 * 31)]
    assert [(one.texts, one.rows) for one in expired] == [(0, 0), (1, 0), (0, 0), (0, 1)]
    assert await inbox.delivery(inbox_id) is None


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=())))
async def test_any_text_can_be_stored(inbox: InboxStore, text: str) -> None:
    post = replace(POST, cooked=text, topic_title=text, username=text)
    inbox_id = await inbox.receive(replace(DELIVERY, content_key=uuid4().bytes, event_id=text, post=post), no_job)
    assert inbox_id is not None
    delivery = await inbox.delivery(inbox_id)
    assert delivery is not None
    assert delivery.post.cooked == delivery.post.username == storable(text)
