"""Members: those who are not to be quoted leave the index at once, and come back when they opt in."""

import asyncio
from dataclasses import replace

import pytest

from service.answer.ports import FixedReply
from service.domain import Posted, PostId, Result, Source, Trace, UserId
from service.errors import Rejected
from service.ingest.eligibility import IndexRules
from service.store.alerts import AlertStore
from service.store.corpus import CorpusStore
from service.store.ledger import LedgerStore
from service.store.members import Account, MemberStore
from service.store.pool import Pool
from service.store.traces import TraceStore
from service.store.withdrawn import sweep
from service.wiring.members import accounts_named, rules_now
from tests.integration.store_data import NOON, POST, PUBLIC, TOPIC, frequencies_are_exact, indexed, later, post, rows

INES = Account(UserId(7), "ines")
ASKED_BY_INES = post(5)
BY_PAUL = post(2, user_id=UserId(8), username="paul")
RULES = IndexRules(frozenset(), index_banners=False)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(POST, "red words"), indexed(BY_PAUL, "blue words"), indexed(ASKED_BY_INES, "asks")])
    return store


async def opt_out(pool: Pool, *accounts: Account) -> int:
    return await MemberStore(pool).opt_out(accounts or [INES], by="Zoé", reason="he asked", now=NOON)


async def opt_in(pool: Pool, *accounts: Account) -> int:
    return await MemberStore(pool).opt_in(accounts or [INES], by="Zoé", reason="he asked", now=later(1))


async def answered(pool: Pool, asking: PostId, *, cited: PostId) -> None:
    """An answer to that post, which cites the other one."""
    ledger = LedgerStore(pool)
    await ledger.claim(replace(POST, id=asking), now=NOON)
    source = Source(1, cited, TOPIC.id, 1, "Title", "slug", "red words", "ines", NOON, None, None)
    trace = Trace(asked="why red?", queries=["red"], sources=(source,), draft="red words")
    await ledger.fix_reply(asking, FixedReply("It is red.", Result.ANSWERED, (cited,)), trace)
    await ledger.finish(asking, Posted(Result.ANSWERED, PostId(900)), None, reply_post_number=9, now=NOON)


async def refusals(pool: Pool) -> dict[int, str | None]:
    return dict(await rows(pool, "SELECT post_id, refusal FROM posts"))


async def test_his_posts_leave_the_index_at_once_and_what_cites_them_is_flagged(
    pool: Pool, corpus: CorpusStore
) -> None:
    await answered(pool, BY_PAUL.id, cited=POST.id)
    assert await opt_out(pool) == 2
    assert await refusals(pool) == {POST.id: "opted_out", BY_PAUL.id: None, ASKED_BY_INES.id: "opted_out"}
    assert await rows(pool, "SELECT post_id FROM public_posts") == [(BY_PAUL.id,)]
    assert {row[0] for row in await rows(pool, "SELECT post_id FROM postings")} == {BY_PAUL.id}
    assert await frequencies_are_exact(pool)
    [alert] = await AlertStore(pool).latest(5)
    assert (alert.source_post_id, alert.kind) == (POST.id, "opted_out")
    stored = await TraceStore(pool).latest(BY_PAUL.id)
    assert stored is not None
    assert (stored.trace.sources[0].excerpt, stored.trace.draft, stored.trace.asked) == ("", "", "why red?")


async def test_what_he_asked_keeps_its_answer(pool: Pool, corpus: CorpusStore) -> None:
    await answered(pool, ASKED_BY_INES.id, cited=BY_PAUL.id)
    await opt_out(pool)
    await corpus.put_posts([indexed(ASKED_BY_INES, "asks")], read_at=await corpus.now())
    await rows(pool, "UPDATE answers SET finished_at = now() RETURNING 1")
    await sweep(pool)
    assert await rows(pool, "SELECT raw FROM answers") == [("It is red.",)]
    stored = await TraceStore(pool).latest(ASKED_BY_INES.id)
    assert stored is not None and (stored.trace.asked, stored.trace.draft) == ("why red?", "red words")


async def test_what_he_asked_goes_with_its_topic(pool: Pool, corpus: CorpusStore) -> None:
    await answered(pool, ASKED_BY_INES.id, cited=BY_PAUL.id)
    await opt_out(pool)
    await corpus.remove_topic(TOPIC.id)
    assert await rows(pool, "SELECT raw FROM answers") == [("",)]


@pytest.mark.parametrize("account", [INES, Account(UserId(7), None), Account(None, "ines")])
async def test_nothing_of_his_is_put_again_whoever_decided_before(
    pool: Pool, corpus: CorpusStore, account: Account
) -> None:
    await opt_out(pool, account)
    await corpus.put_posts([indexed(post(3), "red")], read_at=await corpus.now())
    assert (await refusals(pool))[103] == "opted_out"


async def test_a_post_put_while_he_opts_out_goes_too(pool: Pool, corpus: CorpusStore) -> None:
    puts = [corpus.put_posts([indexed(post(number), f"word{number}")]) for number in range(10, 30)]
    await asyncio.gather(*puts[:10], opt_out(pool), *puts[10:])
    assert await rows(pool, "SELECT post_id FROM public_posts WHERE username = 'ines'") == []


async def test_opting_in_lets_a_reading_bring_them_back(pool: Pool, corpus: CorpusStore) -> None:
    await opt_out(pool)
    rules = await rules_now(RULES, pool)
    assert rules.opted_out == {UserId(7), "ines"}
    assert await opt_in(pool) == 1
    assert await opt_in(pool) == 0
    assert await rules_now(RULES, pool) == RULES
    await corpus.put_posts([indexed(POST, "red words")], read_at=await corpus.now())
    assert (await refusals(pool))[POST.id] is None


async def test_every_decision_is_kept_once(pool: Pool, corpus: CorpusStore) -> None:
    await opt_out(pool)
    assert await opt_out(pool) == 0
    await opt_in(pool)
    changes = await rows(pool, "SELECT kind, user_id, username, by, reason FROM member_changes ORDER BY change_id")
    assert changes == [(kind, 7, "ines", "Zoé", "he asked") for kind in ("opted_out", "opted_in")]


KNOWN = [
    INES,
    Account(UserId(7), "inès_old"),
    Account(UserId(8), "paul"),
    Account(UserId(9), "Paul"),
    Account(None, "77"),
]


@pytest.mark.parametrize(
    ("who", "found"),
    [
        ("INES", [INES, Account(UserId(7), "inès_old")]),
        ("@ines", [INES, Account(UserId(7), "inès_old")]),
        ("7", [INES, Account(UserId(7), "inès_old")]),
        ("77", [Account(UserId(77), None)]),
        ("@77", [Account(None, "77")]),
        ("nobody", [Account(None, "nobody")]),
    ],
)
def test_a_name_or_an_id_means_every_name_of_the_account(who: str, found: list[Account]) -> None:
    assert accounts_named(who, KNOWN) == found


@pytest.mark.parametrize("who", ["paul", "", "@", "9" * 30])
def test_what_names_nobody_for_sure_is_refused(who: str) -> None:
    with pytest.raises(Rejected):
        accounts_named(who, KNOWN)
