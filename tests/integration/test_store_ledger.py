"""The ledger: one claim a post, one text that counts, one end; and traces without what they must not hold."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from service.answer.ports import Claim, FixedReply, RecentAnswers
from service.domain import (
    Candidate,
    Duplicate,
    Mode,
    Outcome,
    Posted,
    PostId,
    Result,
    Shadowed,
    Skipped,
    SkipReason,
    Trace,
    UserId,
    Zone,
)
from service.settings import RetentionSettings
from service.store.ledger import TRACED_BODY_CHARS, LedgerStore, outcome_words
from service.store.pool import Pool
from tests.integration.store_data import NOON, POST, TOPIC, later, post, rows

REPLY = FixedReply("Water them *evenly*. \N{TOMATO}", Result.ANSWERED, (PostId(4), PostId(2)))


@pytest.fixture
def ledger(pool: Pool) -> LedgerStore:
    return LedgerStore(pool)


async def test_one_of_many_claims_is_fresh(ledger: LedgerStore) -> None:
    claims = await asyncio.gather(*(ledger.claim(POST, now=NOON) for _ in range(6)))
    assert sorted(claim.fresh for claim in claims) == [False] * 5 + [True]
    assert not any(claim.finished or claim.reply for claim in claims)


async def test_the_first_reply_counts(ledger: LedgerStore) -> None:
    await ledger.claim(POST, now=NOON)
    others = [replace(REPLY, raw=f"other {n}", cited=()) for n in range(4)]
    results = await asyncio.gather(*(ledger.fix_reply(POST.id, reply, Trace()) for reply in others))
    assert len(set(results)) == 1
    assert results[0] in others
    assert await ledger.claim(POST, now=NOON) == Claim(POST.id, fresh=False, finished=False, reply=results[0])


async def test_the_reply_comes_back_byte_for_byte(ledger: LedgerStore) -> None:
    await ledger.claim(POST, now=NOON)
    assert await ledger.fix_reply(POST.id, REPLY, Trace()) == REPLY
    assert (await ledger.claim(POST, now=NOON)).reply == REPLY


async def test_a_reply_needs_a_claim(ledger: LedgerStore) -> None:
    with pytest.raises(LookupError):
        await ledger.fix_reply(POST.id, REPLY, Trace())


async def test_the_trace_of_the_reply_counts_for_a_later_attempt(ledger: LedgerStore, pool: Pool) -> None:
    await ledger.claim(POST, now=NOON)
    await ledger.fix_reply(POST.id, REPLY, Trace(zone=Zone.WEAK, mode=Mode.RERANKED, queries=["cracks"]))
    await ledger.finish(POST.id, Posted(Result.ANSWERED, PostId(55)), None, reply_post_number=9, now=later(1))
    await ledger.finish(POST.id, Skipped(SkipReason.GIVEN_UP), Trace(), now=later(2))
    assert await rows(pool, "SELECT outcome, reason, zone, mode, trace -> 'queries', recorded_at FROM traces") == [
        ("posted", "answered", "weak", "reranked", ["cracks"], later(1))
    ]
    assert await rows(pool, "SELECT outcome, reply_post_id, reply_post_number, trace FROM answers") == [
        ("posted", 55, 9, None)
    ]
    assert (await ledger.claim(POST, now=NOON)).finished
    assert await ledger.is_own_reply(TOPIC.id, 9)
    assert not await ledger.is_own_reply(TOPIC.id, 1)


async def test_a_trace_holds_numpy_numbers_and_cut_texts(ledger: LedgerStore, pool: Pool) -> None:
    candidate = Candidate(
        PostId(1), TOPIC.id, 1, "t\x00", "t", "x" * 5000, "ines", NOON, cosine=float(np.float32(0.5)),
        logit=np.float32("nan"),  # type: ignore[arg-type]  # a model's number, as it would slip through
    )  # fmt: skip
    await ledger.claim(POST, now=NOON)
    await ledger.finish(POST.id, Shadowed(Result.ANSWERED), Trace(candidates=[candidate]), now=NOON)
    [(stored,)] = await rows(pool, "SELECT trace -> 'candidates' -> 0 FROM traces")
    assert len(stored["body"]) == TRACED_BODY_CHARS
    assert (stored["cosine"], stored["logit"], stored["title"]) == (0.5, None, "t\N{REPLACEMENT CHARACTER}")
    assert len(candidate.body) == 5000


async def test_release_gives_back_only_what_has_no_text(ledger: LedgerStore) -> None:
    await ledger.claim(POST, now=NOON)
    await ledger.release(POST.id)
    assert (await ledger.claim(POST, now=NOON)).fresh
    await ledger.fix_reply(POST.id, REPLY, Trace())
    await ledger.release(POST.id)
    assert not (await ledger.claim(POST, now=NOON)).fresh


async def test_recent_counts_answers_not_skips(ledger: LedgerStore) -> None:
    ends: list[Outcome | None] = [
        None, Posted(Result.ANSWERED, PostId(1)), Shadowed(Result.ABSTAINED),
        Skipped(SkipReason.TOO_OLD), Duplicate(),
    ]  # fmt: skip
    for number, end in enumerate(ends, start=1):
        asking = post(number, user_id=UserId(number % 2))
        await ledger.claim(asking, now=later(number))
        if end is not None:
            await ledger.finish(asking.id, end, Trace(), now=later(number))
    everything = await ledger.recent(user_id=UserId(1), topic_id=TOPIC.id, since=NOON)
    assert everything == RecentAnswers(by_member=2, in_topic=3, overall=3)
    assert (await ledger.recent(user_id=None, topic_id=TOPIC.id, since=later(2))) == RecentAnswers(0, 2, 2)


async def test_help_is_given_once_a_topic_unless_the_forum_refused_it(ledger: LedgerStore) -> None:
    helped = FixedReply("Ask me.", Result.HELPED)
    await ledger.claim(POST, now=NOON)
    assert not await ledger.help_given(TOPIC.id)
    await ledger.fix_reply(POST.id, helped, Trace())
    assert await ledger.help_given(TOPIC.id)
    await ledger.finish(POST.id, Skipped(SkipReason.FORUM_REFUSED), None, now=NOON)
    assert not await ledger.help_given(TOPIC.id)


async def test_a_skip_keeps_its_reason_and_no_text_and_traces_expire(ledger: LedgerStore, pool: Pool) -> None:
    await ledger.record_skip(POST, SkipReason.MENTION_IN_CODE, now=NOON)
    assert await rows(pool, "SELECT post_id, topic_id, outcome, reason, trace FROM traces") == [
        (POST.id, TOPIC.id, "skipped", "mention_in_code", {})
    ]
    retention = RetentionSettings(trace_days=90)
    assert await ledger.expire(retention, now=NOON + timedelta(days=89)) == 0
    assert await ledger.expire(retention, now=NOON + timedelta(days=91)) == 1


async def test_the_text_of_a_finished_answer_expires_and_its_claim_does_not(ledger: LedgerStore, pool: Pool) -> None:
    await ledger.claim(POST, now=NOON)
    await ledger.fix_reply(POST.id, REPLY, Trace())
    retention = RetentionSettings(trace_days=90)
    await ledger.expire(retention, now=NOON + timedelta(days=91))
    assert (await ledger.claim(POST, now=NOON)).reply == REPLY  # not posted yet: these bytes still count
    await ledger.finish(POST.id, Posted(REPLY.result, PostId(900)), None, now=NOON)
    await ledger.expire(retention, now=NOON + timedelta(days=91))
    assert await rows(pool, "SELECT raw, outcome, reply_post_id FROM answers") == [("", "posted", 900)]
    assert (await ledger.claim(POST, now=NOON)).finished


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Posted(Result.ANSWERED, None, enqueued=True), ("posted", "answered")),
        (Shadowed(Result.GATED), ("shadowed", "gated")),
        (Skipped(SkipReason.WHISPER), ("skipped", "whisper")),
        (Duplicate(), ("duplicate", None)),
    ],
)
def test_outcomes_have_words(outcome: Outcome, words: tuple[str, str | None]) -> None:
    assert outcome_words(outcome) == words
