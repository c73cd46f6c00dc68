"""What goes with a withdrawn post: its words in deliveries, replies and traces; and the moderators hear of it."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from service.answer.ports import FixedReply
from service.domain import (
    Candidate,
    CategoryId,
    Post,
    Posted,
    PostId,
    Result,
    Shadowed,
    Source,
    TopicId,
    Trace,
)
from service.ingest.ports import Refusal
from service.store.alerts import AlertStore
from service.store.corpus import CorpusStore
from service.store.inbox import InboxStore, NewDelivery
from service.store.ledger import LedgerStore
from service.store.pool import Pool
from service.store.traces import TraceStore
from service.store.withdrawn import sweep
from tests.integration.store_data import NOON, POST, PRIVATE, PUBLIC, TOPIC, indexed, later, post, rows

ASKING = post(50, id=PostId(500))
SECRET_WORD = "zqquince"


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC, PRIVATE])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(POST, f"{SECRET_WORD} red"), indexed(post(2), "blue"), indexed(ASKING, "asks")])
    return store


def source(n: int, one: Post, excerpt: str) -> Source:
    return Source(
        n, one.id, one.topic_id, one.post_number, f"Title {n}", f"slug-{n}", excerpt, "ines", NOON, None, None
    )


def candidate(one: Post, body: str) -> Candidate:
    return Candidate(one.id, one.topic_id, one.post_number, "Title", "slug", body, "ines", NOON)


def trace_of(*sources: Source, candidates: tuple[Candidate, ...] = ()) -> Trace:
    draft = f"Says {SECRET_WORD}."
    return Trace(queries=["why do they crack?"], candidates=candidates, sources=sources, draft=draft, first_draft=draft)


async def answered(pool: Pool, trace: Trace, *, cited: tuple[PostId, ...], asking: Post = ASKING) -> None:
    """An answer that was posted as post 900."""
    ledger = LedgerStore(pool)
    await ledger.claim(asking, now=NOON)
    await ledger.fix_reply(asking.id, FixedReply(f"As {SECRET_WORD}", Result.ANSWERED, cited), trace)
    await ledger.finish(asking.id, Posted(Result.ANSWERED, PostId(900)), None, reply_post_number=9, now=NOON)


async def kept(pool: Pool, word: str = SECRET_WORD) -> set[str]:
    """Which tables beside the index hold the word."""
    found = await rows(
        pool,
        "SELECT 'inbox' FROM inbox WHERE inbox::text LIKE %s UNION SELECT 'answers' FROM answers"
        " WHERE answers::text LIKE %s UNION SELECT 'traces' FROM traces WHERE traces::text LIKE %s",
        *[f"%{word}%"] * 3,
    )
    return {name for (name,) in found}


Withdraw = Callable[[CorpusStore], Awaitable[Any]]
WAYS: dict[str, tuple[Withdraw, str]] = {
    "removed": (lambda corpus: corpus.remove_post(POST.id, updated_at=later(1)), "deleted"),
    "withdrawn": (lambda corpus: _withdraw(corpus), "deleted"),
    "hidden": (lambda corpus: corpus.put_posts([indexed(POST, refusal=Refusal.HIDDEN)]), "hidden"),
    "topic": (lambda corpus: corpus.remove_topic(TOPIC.id), "topic_deleted"),
    "category": (lambda corpus: _close(corpus), "category_private"),
}


async def _withdraw(corpus: CorpusStore) -> None:
    await corpus.withdraw_posts([POST.id], read_at=await corpus.now())


async def _close(corpus: CorpusStore) -> None:
    await corpus.close_category(CategoryId(TOPIC.category_id or 0))
    await corpus.withdraw_private()


@pytest.mark.parametrize("way", WAYS)
async def test_a_withdrawn_source_leaves_replies_and_traces_and_its_citing_answer_is_flagged(
    corpus: CorpusStore, pool: Pool, way: str
) -> None:
    trace = trace_of(
        source(1, POST, f"{SECRET_WORD} red"), source(2, post(2), "blue"), candidates=(candidate(POST, SECRET_WORD),)
    )
    await answered(pool, trace, cited=(POST.id,))
    assert await kept(pool) == {"answers", "traces"}
    withdraw, kind = WAYS[way]
    await withdraw(corpus)
    assert await kept(pool) == set()
    stored = await TraceStore(pool).latest(ASKING.id)
    assert stored is not None
    assert (stored.trace.draft, stored.trace.first_draft) == ("", "")
    first, second = stored.trace.sources
    assert (first.excerpt, first.title, first.slug, first.post_id) == ("", "", "", POST.id)
    if way not in ("topic", "category"):  # there the other source and the question go too
        assert (second.excerpt, stored.trace.queries) == ("blue", ["why do they crack?"])
    [alert] = [one for one in await AlertStore(pool).latest(10) if one.source_post_id == POST.id]
    assert (alert.answer_post_id, alert.kind, alert.reply_post_id, alert.reply_post_number) == (500, kind, 900, 9)


async def test_a_withdrawn_question_takes_its_queries_and_reply_along(corpus: CorpusStore, pool: Pool) -> None:
    await answered(pool, trace_of(source(1, post(2), "blue")), cited=(post(2).id,))
    await corpus.remove_post(ASKING.id, updated_at=later(1))
    assert await kept(pool) == set()
    stored = await TraceStore(pool).latest(ASKING.id)
    assert stored is not None and stored.trace.queries == []
    assert stored.trace.sources[0].excerpt == "blue"
    assert await AlertStore(pool).latest(10) == []


async def test_a_candidate_that_was_no_source_leaves_the_draft_alone(corpus: CorpusStore, pool: Pool) -> None:
    trace = trace_of(source(1, post(2), "blue"), candidates=(candidate(POST, "unique"), candidate(post(2), "blue")))
    await answered(pool, trace, cited=(post(2).id,))
    await corpus.remove_post(POST.id, updated_at=later(1))
    assert await kept(pool, "unique") == set()
    assert await kept(pool) == {"answers", "traces"}


async def test_an_answer_that_was_only_shadowed_is_no_alert(corpus: CorpusStore, pool: Pool) -> None:
    ledger = LedgerStore(pool)
    await ledger.claim(ASKING, now=NOON)
    await ledger.fix_reply(ASKING.id, FixedReply("x", Result.ANSWERED, (POST.id,)), Trace())
    await ledger.finish(ASKING.id, Shadowed(Result.ANSWERED), None, now=NOON)
    await corpus.remove_post(POST.id, updated_at=later(1))
    assert await AlertStore(pool).latest(10) == []


async def test_what_was_written_while_its_source_went_is_swept(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.remove_post(POST.id, updated_at=later(1))
    ledger, now = LedgerStore(pool), await corpus.now()
    await ledger.claim(ASKING, now=now)
    trace = trace_of(source(1, POST, SECRET_WORD))
    await ledger.fix_reply(ASKING.id, FixedReply(SECRET_WORD, Result.ANSWERED, (POST.id,)), trace)
    await ledger.finish(ASKING.id, Posted(Result.ANSWERED, PostId(900)), None, reply_post_number=9, now=now)
    assert await kept(pool) == {"answers", "traces"}
    assert await sweep(pool) == 1
    assert await kept(pool) == set()
    assert [one.source_post_id for one in await AlertStore(pool).latest(10)] == [POST.id]
    assert await sweep(pool) == 1  # it stays gone; nothing more is done
    assert len(await AlertStore(pool).latest(10)) == 1


async def test_a_delivery_that_waits_loses_its_text(corpus: CorpusStore, pool: Pool) -> None:
    one = replace(POST, cooked=f"<p>{SECRET_WORD}</p>", updated_at=later(1))
    delivery = NewDelivery(b"key", "forum", "post_edited", "1", ("index_post",), one)

    async def no_jobs(*_: object) -> None:
        return None

    inbox_id = await InboxStore(pool).receive(delivery, no_jobs)
    assert inbox_id is not None and await kept(pool) == {"inbox"}
    await corpus.remove_topic(TOPIC.id)
    assert await kept(pool) == set()
    waiting = await InboxStore(pool).delivery(inbox_id)
    assert waiting is not None and not waiting.has_text


async def test_a_moved_source_is_flagged_since_its_link_leads_elsewhere(corpus: CorpusStore, pool: Pool) -> None:
    await answered(pool, trace_of(source(1, POST, SECRET_WORD)), cited=(POST.id,))
    await corpus.put_topics([replace(TOPIC, id=TopicId(11))])
    moved = replace(POST, topic_id=TopicId(11), post_number=4)
    await corpus.put_posts([indexed(moved, "red")], read_at=await corpus.now())
    [alert] = await AlertStore(pool).latest(10)
    assert (alert.kind, alert.source_post_id) == ("moved", POST.id)


async def test_an_alert_is_seen_once_and_ends_when_its_source_is_back(corpus: CorpusStore, pool: Pool) -> None:
    alerts = AlertStore(pool)
    await answered(pool, trace_of(source(1, POST, SECRET_WORD)), cited=(POST.id, post(2).id))
    for one in (POST, post(2)):
        await corpus.remove_post(one.id, updated_at=later(1))
    assert len(await alerts.latest(10)) == 2
    assert await alerts.mark_seen(ASKING.id, POST.id, by="boss")
    assert not await alerts.mark_seen(ASKING.id, POST.id, by="boss")
    assert [one.source_post_id for one in await alerts.latest(10)] == [post(2).id]
    assert {one.seen_by for one in await alerts.latest(10, seen_too=True)} == {None, "boss"}
    await corpus.put_posts([indexed(post(2), "blue")], read_at=await corpus.now())
    assert await alerts.latest(10) == []
    assert await alerts.drop_restored() == 1
    await corpus.remove_post(post(2).id, updated_at=later(2))
    assert [one.source_post_id for one in await alerts.latest(10)] == [post(2).id]
