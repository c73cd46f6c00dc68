"""The answers' pages: what is listed and shown to whom, and what becomes of a moderator's decisions."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest

from service.answer.unanswered import group_unanswered
from service.domain import CategoryId, PostId, Result, Shadowed, Skipped, SkipReason, TopicId
from service.moderation.labels import golden_of
from service.store.checked_questions import CheckedQuestionStore
from service.store.corpus import CorpusStore
from service.store.deeds import DeedStore
from service.store.ledger import LedgerStore
from service.store.pool import Pool
from service.store.signals import Signal, SignalStore
from service.store.unanswered import UnansweredStore
from tests.fakes.answering import FakeEmbedder
from tests.integration.answers_kit import POSTED, RAW, answered, open_places, trace
from tests.integration.store_data import NOON, PRIVATE, TOPIC, indexed, later, post, rows
from tests.moderators import ADMIN, Pages, open_pages, visible


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    await open_places(pool)
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


async def deeds(pool: Pool) -> list[tuple[object, ...]]:
    return await rows(pool, "SELECT post_id, kind, reason, by, by_user_id, outcome FROM answer_deeds ORDER BY deed_id")


async def jobs(pool: Pool) -> list[tuple[object, ...]]:
    return await rows(pool, "SELECT task_name, lock FROM procrastinate_jobs ORDER BY id")


async def test_an_answer_is_shown_with_all_that_led_to_it(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    html = await pages.text("/answers/140")
    text = visible(html)
    for shown in (
        "in shadow answered",
        "why do my &lt;b&gt;tomatoes&lt;/b&gt; crack?",
        "why do tomatoes crack",
        "Water them evenly [[1]].",
        "They crack.",
        "--- abc source 1 Unevenly watered.",
        "failed says what its sources don&#39;t , repeats itself",
        "passed",
        "1,500 ms in all",
        "search 20.0 ms",
        "cited",
    ):
        assert shown in text
    assert "<b>tomatoes" not in html
    assert 'href="https://forum.example/t/tomatoes/10/40"' in html
    assert 'href="https://forum.example/t/tomatoes/10/3"' in html
    assert '<rect class="stage-0" x="0" y="2" width="800.0" height="8"/>' in html  # the cosine 0.8
    assert '<rect class="stage-0" x="250.0" y="2" width="250.0" height="8"/>' in html  # the logit -1.25 of 2.5 at most
    assert '<rect class="stage-5" x="13.3" y="0" width="986.7" height="24"/>' in html  # 1,480 of 1,500 ms
    assert "à blanc" in visible(await pages.text("/answers/140", lang="fr"))


async def test_what_is_missing_breaks_no_page(pages: Pages, pool: Pool) -> None:
    await LedgerStore(pool).record_skip(post(41), SkipReason.THANKS, now=NOON)
    assert "skipped thanks" in visible(await pages.text("/answers/141"))


async def test_the_list_is_filtered(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    await answered(pool, post(41), what=POSTED, of=trace("how deep do roots go? 100%"), at=later(60 * 30))
    await LedgerStore(pool).record_skip(post(42), SkipReason.THANKS, now=NOON)

    async def listed(query: str) -> set[str]:
        html = await pages.text(f"/answers{query}")
        return {number for number in ("140", "141", "142") if f'/moderation/answers/{number}"' in html}

    assert await listed("") == {"140", "141"}
    assert await listed("?outcome=posted") == {"141"}
    assert await listed("?outcome=skipped") == {"142"}
    assert await listed("?outcome=skipped&result=thanks") == {"142"}
    assert await listed("?zone=weak") == set()
    assert await listed("?zone=normal&category=1") == {"140", "141"}
    assert await listed("?category=7") == set()
    assert await listed("?day=2026-01-03") == {"141"}
    assert await listed("?text=tomatoes</b>%20crack") == {"140"}
    assert await listed("?text=100%25") == {"141"}
    assert await listed("?text=10_%25") == set()  # no wildcard but a letter
    assert await listed("?outcome=%00&zone=x&category=x&day=x&page=x") == {"140", "141"}
    assert await listed("?page=2") == set()


async def test_shadow_counts_what_would_have_been(pages: Pages, pool: Pool) -> None:
    now = pages.clock()
    await answered(pool, at=now)
    await answered(pool, post(41), at=now)
    await answered(pool, post(42), what=POSTED, at=now - timedelta(days=31))
    assert "in shadow answered normal 2" in visible(await pages.text("/answers"))
    assert "posted answered normal" not in visible((await pages.text("/answers")).split('id="counts"')[1])


async def test_what_a_moderator_cant_see_on_the_forum_he_cant_see_here(pages: Pages, pool: Pool) -> None:
    await answered(pool, post(41, topic_id=TopicId(20), category_id=PRIVATE.id))
    await answered(pool, post(42, archetype="private_message"))
    await answered(pool, post(43, topic_id=TopicId(99), category_id=CategoryId(99)))  # nobody knows the place
    await answered(pool)
    for number in (141, 142, 143):
        assert (await pages.client.get(f"/answers/{number}")).status_code == 404
        assert (await pages.post(f"/answers/{number}/wrong", {"why": "no"})).status_code == 404
        assert f"/answers/{number}" not in await pages.text("/answers")
    assert await deeds(pool) == []
    assert ">Staff<" not in await pages.text("/answers")
    await pages.sign_in(ADMIN)
    assert ">Staff<" in await pages.text("/answers")
    for number in (140, 141, 142, 143):
        assert f"/answers/{number}" in await pages.text("/answers")
        assert "why do tomatoes crack" in await pages.text(f"/answers/{number}")


async def test_a_topic_that_became_a_private_message_is_closed_from_then_on(pages: Pages, pool: Pool) -> None:
    await answered(pool, what=Shadowed(Result.ABSTAINED))
    await group_unanswered(UnansweredStore(pool, since=NOON), FakeEmbedder())
    assert "/answers/140" in await pages.text("/unanswered")
    await CorpusStore(pool).put_topics([replace(TOPIC, archetype="private_message", category_id=None)])
    for page in ("/answers", "/unanswered"):
        assert "/answers/140" not in await pages.text(page)
    assert (await pages.client.get("/answers/140")).status_code == 404
    await pages.sign_in(ADMIN)
    for page in ("/answers", "/unanswered"):
        assert "/answers/140" in await pages.text(page)


@pytest.mark.parametrize("number", ["0", "1", "99999999999999999999", "-1", "x"])
async def test_an_answer_that_is_not_there(pages: Pages, number: str) -> None:
    assert (await pages.client.get(f"/answers/{number}")).status_code in (404, 422)


async def test_post_it_is_asked_of_the_worker_once(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    first = await pages.post("/answers/140/post", {"why": ""})
    again = await pages.post("/answers/140/post", {"why": ""})
    assert (first.status_code, first.headers["location"]) == (303, "/moderation/answers/140?done=post")
    assert again.headers["location"] == "/moderation/answers/140?done=again"
    assert await deeds(pool) == [(140, "post", "", "mia", 6, None)]
    assert await jobs(pool) == [("carry_out", "deeds:140")]
    html = await pages.text("/answers/140?done=post")
    assert "It will be posted in a moment." in html
    assert 'action="/moderation/answers/140/post"' not in html


async def test_a_deed_that_no_job_is_left_for_may_be_asked_again(pages: Pages, pool: Pool) -> None:
    """Its worker was killed at every try, so that nobody closed it."""
    await answered(pool)
    await pages.post("/answers/140/post", {})
    for status, outcome in (("todo", None), ("doing", None), ("failed", "given_up")):
        await rows(pool, f"UPDATE procrastinate_jobs SET status = '{status}' RETURNING 1")
        await DeedStore(pool).expire(before=NOON)
        assert [deed[-1] for deed in await deeds(pool)] == [outcome]
    assert "given up after several tries" in visible(await pages.text("/answers/140"))
    assert (await pages.post("/answers/140/post", {})).headers["location"].endswith("?done=post")


async def test_an_address_puts_no_words_into_a_page(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    html = await pages.text("/answers/140?done=Your+session+is+over,+sign+in+at+evil.example")
    assert "evil.example" not in visible(html)
    assert 'role="status"' not in html


async def test_a_deed_that_failed_may_be_asked_again(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    await pages.post("/answers/140/post", {})
    async with pool.connection() as conn:
        await conn.execute("UPDATE answer_deeds SET outcome = 'source_gone', done_at = now()")
    assert "a source is gone" in visible(await pages.text("/answers/140"))
    assert (await pages.post("/answers/140/post", {})).headers["location"].endswith("?done=post")


@pytest.mark.parametrize(
    ("asked", "fields", "status", "says"),
    [
        ("post", {}, 409, "only an answer in shadow"),
        ("hide", {"why": " "}, 422, "a reason is kept"),
        ("wrong", {"why": "x" * 501}, 422, "a reason is kept"),
        ("edit", {"why": "x", "raw": "short"}, 422, "20 to 32,000"),
        ("test-question", {"why": "x", "question": " ", "slice": "paraphrase"}, 422, "1 to 1,500"),
        ("test-question", {"why": "x", "question": "q", "slice": "a"}, 422, "one of paraphrase"),
        ("test-question", {"why": "x", "question": "q", "slice": "paraphrase"}, 422, "nothing does"),
        ("test-question", {"why": "x", "question": "q", "slice": "offtopic", "golden-10-3": "2"}, 422, "nothing does"),
        ("test-question", {"why": "x", "question": "q", "slice": "typo", "other": "x"}, 422, "no link to a post"),
        ("test-question", {"why": "x", "question": "q", "slice": "typo", "other": "t/" * 9_000}, 422, "8,000"),
    ],
)
async def test_what_cant_be_is_refused_and_says_why(
    pages: Pages, pool: Pool, asked: str, fields: dict[str, str], status: int, says: str
) -> None:
    await answered(pool, what=POSTED)
    answer = await pages.post(f"/answers/140/{asked}", fields)
    assert answer.status_code == status
    assert says in answer.text
    assert await deeds(pool) == []
    assert await jobs(pool) == []


async def test_no_other_decision(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    assert (await pages.post("/answers/140/burn", {"why": "x"})).status_code == 404


async def test_hide_and_correct_are_asked_of_the_worker(pages: Pages, pool: Pool) -> None:
    await answered(pool, what=POSTED)
    assert RAW.split(",")[0] in await pages.text("/answers/140")
    await pages.post(
        "/answers/140/edit", {"raw": "A better text than before.\r\nTwo lines.", "why": "a source is gone"}
    )
    await pages.post("/answers/140/hide", {"why": "no use"})
    assert await deeds(pool) == [
        (140, "edit", "a source is gone", "mia", 6, None),
        (140, "hide", "no use", "mia", 6, None),
    ]
    assert await rows(pool, "SELECT raw FROM answer_deeds WHERE kind = 'edit'") == [
        ("A better text than before.\nTwo lines.",)
    ]


async def test_nothing_corrects_what_is_hidden(pages: Pages, pool: Pool) -> None:
    """Else one moderator would bring back what another took away at the same time."""
    await answered(pool, what=POSTED)
    store, edit = DeedStore(pool), {"raw": "A better text than before.", "why": "clearer"}
    assert await store.answered(PostId(140)) is not None
    await pages.post("/answers/140/hide", {"why": "no use"})
    for asked in ("edit", "read"):
        refused = await pages.post(f"/answers/140/{asked}", edit)
        assert (refused.status_code, "our post was hidden" in refused.text) == (409, True)
    assert await store.answered(PostId(140)) is not None  # until it was carried out
    (hide,) = await store.of(PostId(140))
    await store.hidden(hide, now=NOON)
    assert await store.answered(PostId(140)) is None


async def test_what_our_post_says_is_brought_where_its_text_was_let_go(pages: Pages, pool: Pool) -> None:
    await answered(pool, what=POSTED)
    assert "Bring what it says now" not in await pages.text("/answers/140")
    await rows(pool, "UPDATE answers SET raw = '' RETURNING 1")
    assert "Bring what it says now" in await pages.text("/answers/140")
    first, again = [await pages.post("/answers/140/read", {}) for _ in range(2)]
    assert [one.headers["location"].partition("done=")[2] for one in (first, again)] == ["read", "again"]
    assert await jobs(pool) == [("carry_out", "deeds:140")]
    assert "Bring what it says now" not in await pages.text("/answers/140")
    store = DeedStore(pool)
    (read,) = await store.of(PostId(140))
    await store.read(read, "\n<i>Water</i> them evenly.", now=NOON)
    assert "read" not in visible(await pages.text("/answers?outcome=posted")).partition("Feedback")[2].split()
    assert 'rows="8">\n\n&lt;i&gt;Water&lt;/i&gt; them evenly.</textarea>' in await pages.text("/answers/140")
    sent = await pages.post("/answers/140/edit", {"raw": "What I just wrote of it.", "why": " "})
    assert (sent.status_code, "What I just wrote of it.</textarea>" in sent.text) == (422, True)
    await rows(pool, "UPDATE answer_deeds SET asked_at = now() - interval '25 hours' RETURNING 1")
    await store.expire(before=NOON)
    assert "<i>Water" not in unescape(await pages.text("/answers/140"))
    assert (await pages.post("/answers/140/read", {})).headers["location"].endswith("done=read")


@pytest.mark.parametrize("end", ["edit", "hide", "question gone"])
async def test_what_our_post_said_is_kept_no_longer_than_it_is_used(pages: Pages, pool: Pool, end: str) -> None:
    question, store = await answered(pool, what=POSTED), DeedStore(pool)
    await CorpusStore(pool).put_posts([indexed(question)])
    await pages.post("/answers/140/read", {})
    await pages.post("/answers/140/edit", {"raw": "A better text than before.", "why": "clearer"})
    await pages.post("/answers/140/hide", {"why": "no use"})
    read, edit, hide = await store.of(question.id)
    await store.read(read, "It is hollyhock that we said.", now=NOON)
    if end == "edit":
        await store.edited(edit, "A better text than before.", now=NOON)
    elif end == "hide":
        await store.hidden(hide, now=NOON)
    else:
        await CorpusStore(pool).remove_post(question.id, updated_at=later(9))
    assert await rows(pool, "SELECT FROM answer_deeds WHERE kind = 'read' AND raw IS NOT NULL") == []


async def test_why_it_was_wrong_is_kept(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    clicks = [pages.post("/answers/140/wrong", {"why": "it is about <potatoes>"}) for _ in range(3)]
    ends = [click.headers["location"].partition("done=")[2] for click in await asyncio.gather(*clicks)]
    assert sorted(ends) == ["again", "again", "wrong"]
    assert await deeds(pool) == [(140, "wrong", "it is about <potatoes>", "mia", 6, "done")]
    assert "it is about &lt;potatoes&gt;" in await pages.text("/answers/140")
    assert "wrong" in visible(await pages.text("/answers"))


async def test_a_correction_becomes_a_test_question(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    sent = {
        "question": "why do\ttomatoes crack",
        "slice": "paraphrase",
        "golden-10-3": "2",
        "golden-10-5": "2",
        "other": "https://forum.example/t/roots/12/1?u=mia\n\n",
        "why": "it missed the second one",
    }
    await pages.post("/answers/140/test-question", sent)
    (one,) = await CheckedQuestionStore(pool).all()
    assert (one.post_id, one.slice, one.lang, one.question) == (140, "paraphrase", "en", "why do tomatoes crack")
    assert one.golden == [(10, [3, 5]), (12, [1])]
    assert one.note == "it missed the second one"
    await pages.post("/answers/140/test-question", {"question": "q", "slice": "offtopic", "why": "no tomatoes here"})
    (one,) = await CheckedQuestionStore(pool).all()
    assert (one.slice, one.golden) == ("offtopic", [])
    assert [deed[1] for deed in await deeds(pool)] == ["test_question", "test_question"]


async def test_signals_are_shown_on_their_answer(pages: Pages, pool: Pool) -> None:
    await answered(pool, what=POSTED)
    signals = SignalStore(pool)
    await signals.happened(Signal.LIKED, PostId(150))
    await signals.happened(Signal.LIKED, PostId(150))
    await signals.happened(Signal.LIKED, PostId(151))  # not ours
    assert "liked × 1" in visible(await pages.text("/answers/140"))
    assert "liked" in visible(await pages.text("/answers"))


async def test_an_answer_posted_before_a_later_skip_is_the_one_shown(pages: Pages, pool: Pool) -> None:
    await answered(pool)
    await LedgerStore(pool).record_skip(post(40), SkipReason.POST_HIDDEN, now=later(9))
    assert "in shadow answered" in visible(await pages.text("/answers/140"))


async def test_a_text_that_was_not_posted_is_shown_with_why(pages: Pages, pool: Pool) -> None:
    await answered(pool, what=Skipped(SkipReason.SOURCE_GONE))
    text = visible(await pages.text("/answers/140"))
    assert "skipped a source is gone" in text
    assert "Water them evenly" in text


def test_links_and_boxes_are_read() -> None:
    assert golden_of({"golden-3-4": "2", "golden-3-2": "2", "other": "/t/x/3/9"}) == ((3, (2, 4, 9)),)
