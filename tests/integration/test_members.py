"""Members: who is not to be quoted leaves the index at once; what is kept of one is handed out, and erased."""

import asyncio
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from service.__main__ import ariane
from service.answer.ports import FixedReply
from service.domain import Post, Posted, PostId, Result, Source, Trace, UserId
from service.errors import Rejected
from service.ingest.eligibility import IndexRules
from service.store.alerts import AlertStore
from service.store.corpus import CorpusStore
from service.store.inbox import InboxStore, NewDelivery
from service.store.ledger import LedgerStore
from service.store.members import Account, MemberStore, note_departure
from service.store.personal import PERSONAL, erase, export
from service.store.pool import Pool, transaction
from service.store.traces import TraceStore
from service.store.withdrawn import sweep
from service.wiring.members import accounts_named, accounts_of, erase_departed, rules_now
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


async def answered(pool: Pool, asking: Post, *, cited: PostId) -> None:
    """An answer to that post, which cites the other one."""
    ledger = LedgerStore(pool)
    await ledger.claim(asking, now=NOON)
    source = Source(1, cited, TOPIC.id, 1, "Title", "slug", "red words", "ines", NOON, None, None)
    trace = Trace(asked="why red?", queries=["red"], sources=(source,), draft="red words")
    await ledger.fix_reply(asking.id, FixedReply("It is red.", Result.ANSWERED, (cited,)), trace)
    await ledger.finish(asking.id, Posted(Result.ANSWERED, PostId(900)), None, reply_post_number=9, now=NOON)


async def refusals(pool: Pool) -> dict[int, str | None]:
    return dict(await rows(pool, "SELECT post_id, refusal FROM posts"))


async def test_his_posts_leave_the_index_at_once_and_what_cites_them_is_flagged(
    pool: Pool, corpus: CorpusStore
) -> None:
    await answered(pool, BY_PAUL, cited=POST.id)
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
    await answered(pool, ASKED_BY_INES, cited=BY_PAUL.id)
    await opt_out(pool)
    await corpus.put_posts([indexed(ASKED_BY_INES, "asks")], read_at=await corpus.now())
    await rows(pool, "UPDATE answers SET finished_at = now() RETURNING 1")
    await sweep(pool)
    assert await rows(pool, "SELECT raw FROM answers") == [("It is red.",)]
    stored = await TraceStore(pool).latest(ASKED_BY_INES.id)
    assert stored is not None and (stored.trace.asked, stored.trace.draft) == ("why red?", "red words")


async def test_what_he_asked_goes_with_its_topic(pool: Pool, corpus: CorpusStore) -> None:
    await answered(pool, ASKED_BY_INES, cited=BY_PAUL.id)
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


# erasing and handing out

NAME = "ines"
TELLING = "column_name ~ '(^|_)(user|username|by)(_|$)' AND column_name NOT LIKE '%%_at'"


async def everywhere(pool: Pool, word: str) -> set[str]:
    """The tables of ours that hold this word."""
    tables = await rows(pool, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    ours = sorted(name for (name,) in tables if not name.startswith(("procrastinate", "_yoyo", "yoyo")))
    return {name for name in ours if await rows(pool, f"SELECT FROM {name} AS one WHERE one::text ~* %s", word)}


async def lives(pool: Pool) -> None:
    """Ines asked, thanked, moderated and tried things out."""
    await answered(pool, ASKED_BY_INES, cited=BY_PAUL.id)
    inbox = InboxStore(pool)
    for key, one in ((b"1", ASKED_BY_INES), (b"2", replace(BY_PAUL, reply_to_username="ines"))):
        delivery = NewDelivery(key, "https://f.example", "post_created", "1", (), one)
        await inbox.receive(delivery, lambda *_: asyncio.sleep(0))
    for statement in (
        "INSERT INTO answer_signals (post_id, kind, about_post_id, by_user_id) VALUES (9, 'liked', 900, 7)",
        "INSERT INTO unanswered (post_id, asked_at, reason, lang, question) VALUES (105, now(), 'weak', 'en', 'ines?')",
        "INSERT INTO trials (asked_by, question, lang, asked_at) VALUES ('ines', 'q', 'en', now())",
        "INSERT INTO moderator_sessions"
        " (session_sha256, username, user_id, admin, moderator, groups, began_at, seen_at)"
        " VALUES ('x', 'ines', 7, false, true, '{}', now(), now())",
        "INSERT INTO flag_changes (name, new_value, changed_by, changed_by_user_id, reason)"
        " VALUES ('answering', 'on', 'ines', 7, 'why')",
        "INSERT INTO answer_deeds (post_id, kind, reason, by, by_user_id, asked_at)"
        " VALUES (1, 'wrong', 'r', 'ines', 7, now())",
    ):
        await rows(pool, f"{statement} RETURNING 1")
    await opt_out(pool)


async def erase_ines(pool: Pool, *, gone: bool) -> int:
    return await erase(pool, [INES], pseudonym="member-1", gone=gone, by="Zoé", reason="asked", now=later(2))


async def test_nothing_is_left_of_an_erased_member_but_a_pseudonym(pool: Pool, corpus: CorpusStore) -> None:
    await lives(pool)
    held = {"posts", "inbox", "unanswered", "trials", "moderator_sessions", "flag_changes", "answer_deeds", "traces"}
    assert await everywhere(pool, NAME) == held | {"opt_outs", "member_changes"}
    assert await erase_ines(pool, gone=True) == 2
    assert await everywhere(pool, NAME) == set()
    assert await everywhere(pool, "why red") == set()
    assert await export(pool, [INES]) == {}
    assert await rows(pool, "SELECT changed_by, changed_by_user_id FROM flag_changes") == [("member-1", None)]
    assert await rows(pool, "SELECT outcome, user_id, raw FROM answers") == [("posted", None, "")]
    assert await rows(pool, "SELECT post_id FROM traces") == []
    last = await rows(pool, "SELECT kind, username, by FROM member_changes ORDER BY change_id DESC LIMIT 1")
    assert last == [("erased", "member-1", "Zoé")]
    assert await refusals(pool) == {POST.id: "deleted", BY_PAUL.id: None, ASKED_BY_INES.id: "deleted"}


async def test_others_keep_what_is_theirs(pool: Pool, corpus: CorpusStore) -> None:
    await lives(pool)
    await answered(pool, BY_PAUL, cited=POST.id)
    await erase_ines(pool, gone=True)
    assert await everywhere(pool, NAME) == set()
    assert await rows(pool, "SELECT post_id FROM public_posts") == [(BY_PAUL.id,)]
    assert await rows(pool, "SELECT post_id FROM traces") == [(BY_PAUL.id,)]
    assert await rows(pool, "SELECT state ->> 'username' FROM inbox WHERE state IS NOT NULL") == [("paul",)]


async def test_who_only_moderated_is_known_by_his_decisions(pool: Pool, corpus: CorpusStore) -> None:
    for statement in (
        "INSERT INTO flag_changes (name, new_value, changed_by, changed_by_user_id, reason)"
        " VALUES ('answering', 'on', 'mia', 6, 'why')",
        "INSERT INTO flags (name, value, changed_by) VALUES ('answering', 'on', 'mia')",
        "INSERT INTO gate_rule_changes (rule_id, changed_by, changed_by_user_id, reason)"
        " VALUES ('r', 'Mia_old', 6, 'why')",
        "INSERT INTO moderator_sessions"
        " (session_sha256, username, user_id, admin, moderator, groups, began_at, seen_at)"
        " VALUES ('x', 'mia', 6, false, true, '{}', now(), now())",
    ):
        await rows(pool, f"{statement} RETURNING 1")
    mia = {Account(UserId(6), "mia"), Account(UserId(6), "Mia_old")}
    assert [set(await accounts_of(who, pool)) for who in ("6", "@MIA", "mia_old")] == [mia] * 3
    await erase(pool, list(mia), pseudonym="member-2", gone=False, by="Zoé", reason="asked", now=later(2))
    assert await everywhere(pool, "mia") == set()
    assert await rows(pool, "SELECT changed_by FROM flags") == [("member-2",)]


async def test_a_name_that_another_account_had_before_erases_nothing_of_that_one(
    pool: Pool, corpus: CorpusStore
) -> None:
    await lives(pool)
    await erase(pool, [Account(UserId(9), NAME)], pseudonym="m", gone=True, by="Zoé", reason="asked", now=later(2))
    assert await rows(pool, "SELECT post_id FROM posts WHERE username = 'ines' ORDER BY 1") == [(100,), (105,)]
    assert (await refusals(pool))[POST.id] == "opted_out"
    assert await rows(pool, "SELECT changed_by, changed_by_user_id FROM flag_changes") == [("ines", 7)]
    assert await rows(pool, "SELECT username FROM moderator_sessions") == [("ines",)]
    assert await rows(pool, "SELECT state ->> 'username' FROM inbox ORDER BY inbox_id") == [("ines",), ("paul",)]
    assert len((await export(pool, [INES]))["opt_outs"]) == 1


async def test_the_opt_out_of_a_living_account_stays(pool: Pool, corpus: CorpusStore) -> None:
    await lives(pool)
    await erase_ines(pool, gone=False)
    assert await everywhere(pool, NAME) == {"opt_outs"}


async def test_all_that_is_kept_is_handed_out(pool: Pool, corpus: CorpusStore) -> None:
    await lives(pool)
    kept = await export(pool, [INES])
    assert kept.keys() >= await everywhere(pool, NAME)
    assert [row["post_id"] for row in kept["traces"]] == [ASKED_BY_INES.id]
    assert [row["post_id"] for row in kept["answers"]] == [ASKED_BY_INES.id]
    assert kept["answer_signals"][0]["kind"] == "liked"


async def test_what_others_were_shown_of_him_is_handed_out_without_their_questions(
    pool: Pool, corpus: CorpusStore
) -> None:
    await answered(pool, BY_PAUL, cited=POST.id)
    found = {"username": NAME, "post_id": POST.id, "excerpt": "red words", "title": "", "slug": "", "body": ""}
    trial = {"result": "answered", "trace": {"asked": "a secret", "sources": [found]}}
    await rows(
        pool,
        "INSERT INTO trials (asked_by, question, lang, asked_at, state, ended_at, result)"
        " VALUES ('mia', 'a secret', 'en', now(), 'done', now(), %s) RETURNING 1",
        json.dumps(trial),
    )
    kept = await export(pool, [INES])
    assert [(set(one), one["found"]["excerpt"]) for one in kept["found"]] == [
        ({"trace_id", "found"}, "red words"),
        ({"trial_id", "found"}, "red words"),
    ]
    assert "why red?" not in json.dumps(kept) and "a secret" not in json.dumps(kept)
    await erase_ines(pool, gone=True)
    assert await export(pool, [INES]) == {}


async def test_every_column_that_names_a_member_is_in_the_list(pool: Pool) -> None:
    of_tables = "table_name IN (SELECT tablename FROM pg_tables WHERE schemaname = 'public')"
    query = (
        f"SELECT table_name::text, column_name::text FROM information_schema.columns WHERE {TELLING} AND {of_tables}"
    )
    found = {row for row in await rows(pool, query) if not row[0].startswith(("procrastinate", "_yoyo", "yoyo"))}
    assert found == {(one.table, one.column) for one in PERSONAL if not one.of_post}


@pytest.mark.parametrize(("groups", "erased"), [(frozenset(), True), (frozenset({"trust_level_0"}), False)])
async def test_a_destroyed_account_is_erased_once_the_forum_says_so(
    pool: Pool, corpus: CorpusStore, groups: frozenset[str], erased: bool
) -> None:
    await lives(pool)
    asked: list[str] = []

    async def groups_of(username: str) -> frozenset[str]:
        asked.append(username)
        return groups

    async with transaction(pool) as conn:
        await note_departure(conn, UserId(7), "ines")
    store = MemberStore(pool)
    assert await store.left_behind() == []
    await rows(pool, "UPDATE departures SET noticed_at = noticed_at - interval '61 minutes' RETURNING user_id")
    assert await store.left_behind() == [7]
    assert await erase_departed(UserId(7), pool, groups_of, now=later(2)) is erased
    assert await store.left_behind() == []
    assert await erase_departed(UserId(7), pool, groups_of, now=later(3)) is False
    assert asked == ["ines"]
    assert (await everywhere(pool, NAME) == set()) is erased


async def test_nobody_is_erased_whom_no_delivery_named(pool: Pool, corpus: CorpusStore) -> None:
    async def groups_of(username: str) -> frozenset[str]:
        raise AssertionError(username)

    assert await erase_departed(UserId(7), pool, groups_of, now=later(2)) is False


def test_commands_hand_out_and_erase(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARIANE_DATABASE__URL", database_url)
    run = CliRunner().invoke
    assert run(ariane, ["members", "opt-out", "ines", "--why", "he asked"]).exit_code == 0
    assert "ines" in run(ariane, ["members", "list"]).stdout
    assert list(json.loads(run(ariane, ["export", "--user", "ines"]).stdout)) == ["opt_outs", "member_changes"]
    assert isinstance(run(ariane, ["erase", "--user", "ines"]).exception, Rejected)
    assert run(ariane, ["erase", "--user", "ines", "--yes"]).exit_code == 0
    assert list(json.loads(run(ariane, ["export", "--user", "ines"]).stdout)) == ["opt_outs"]
