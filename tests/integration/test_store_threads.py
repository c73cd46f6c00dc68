"""What was said before a question: the last public posts by humans, and our replies since the first of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.answer.ports import FixedReply
from service.domain import Before, Post, Posted, PostId, Result, TopicId, Trace, UserId
from service.ingest.ports import Refusal
from service.settings import RetentionSettings
from service.store.corpus import CorpusStore
from service.store.ledger import LedgerStore
from service.store.pool import Pool
from service.store.threads import ThreadStore
from tests.integration.store_data import NOON, PRIVATE, PUBLIC, TOPIC, indexed, later, post


async def test_the_last_human_posts_and_our_replies_between_them(pool: Pool) -> None:
    corpus, ledger, threads = CorpusStore(pool), LedgerStore(pool), ThreadStore(pool)
    hidden = replace(TOPIC, id=TopicId(12), category_id=PRIVATE.id)
    await corpus.put_categories([PUBLIC, PRIVATE])
    await corpus.put_topics([TOPIC, replace(TOPIC, id=TopicId(11)), hidden])
    await corpus.put_posts(
        [
            indexed(post(1), "first"),
            indexed(post(3, user_id=UserId(8)), "another's"),
            indexed(post(5), "third"),
            indexed(post(2), refusal=Refusal.HIDDEN),
            indexed(post(4), refusal=Refusal.BOT_AUTHOR),
            indexed(post(9), "later"),
            indexed(post(20, post_number=4, topic_id=TopicId(11)), "elsewhere"),
            indexed(post(21, post_number=1, topic_id=hidden.id), "private"),
        ]
    )
    for number, reply_number in ((1, 2), (3, 4), (5, None)):
        await ledger.claim(post(number), now=NOON)
        await ledger.fix_reply(post(number).id, FixedReply(f"reply to {number}", Result.ANSWERED), Trace())
        if reply_number is not None:
            done = Posted(Result.ANSWERED, PostId(900 + number))
            await ledger.finish(post(number).id, done, None, reply_post_number=reply_number, now=NOON)
    asked = post(8)
    turns = (("user", "another's"), ("bot", "reply to 3"), ("user", "third"))
    assert await threads.before(asked, 2) == Before(turns, 3)
    assert await threads.before(asked, 9) == Before((("user", "first"), ("bot", "reply to 1"), *turns), 1)
    assert await threads.before(post(1), 2) == Before()
    assert await threads.before(post(22, post_number=2, topic_id=hidden.id), 2) == Before()


async def replied(pool: Pool) -> Post:
    """A topic whose first post we replied to with its second, post 102; the member's third post, which asks."""
    corpus, ledger = CorpusStore(pool), LedgerStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    await corpus.put_posts([indexed(post(1), "first")])
    await ledger.claim(post(1), now=NOON)
    await ledger.fix_reply(post(1).id, FixedReply("our reply", Result.ANSWERED), Trace())
    done = Posted(Result.ANSWERED, post(2).id)
    await ledger.finish(post(1).id, done, None, reply_post_number=2, now=NOON)
    return post(3)


@pytest.mark.parametrize(
    ("refusal", "seen"), [(Refusal.BOT_AUTHOR, True), (Refusal.HIDDEN, False), (Refusal.USER_DELETED, False)]
)
async def test_a_reply_of_ours_that_nobody_sees_was_not_said(pool: Pool, refusal: Refusal, seen: bool) -> None:
    asked, corpus, threads = await replied(pool), CorpusStore(pool), ThreadStore(pool)
    await corpus.put_posts([indexed(post(2), refusal=refusal)])
    ours = (("bot", "our reply"),) if seen else ()
    assert (await threads.before(asked, 2)).turns == (("user", "first"), *ours)


async def test_a_reply_that_moderators_deleted_was_not_said(pool: Pool) -> None:
    asked, corpus, threads = await replied(pool), CorpusStore(pool), ThreadStore(pool)
    await corpus.put_posts([indexed(post(2), refusal=Refusal.BOT_AUTHOR)])
    await corpus.remove_post(post(2).id, updated_at=later(1))
    assert (await threads.before(asked, 2)).turns == (("user", "first"),)


async def test_a_reply_whose_text_is_no_longer_kept_was_not_said(pool: Pool) -> None:
    asked, threads = await replied(pool), ThreadStore(pool)
    await LedgerStore(pool).expire(RetentionSettings(trace_days=1), now=NOON + timedelta(days=2))
    assert (await threads.before(asked, 2)).turns == (("user", "first"),)
