"""Try it: asked in the page, answered by a worker, seen by whoever asked, limited, and gone after a day."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from service.domain import Candidate, EvaluationRun, Mode, PostId, RunKind, Source, TopicId, Trace, Zone
from service.store.corpus import CorpusStore
from service.store.evaluations import EvaluationStore
from service.store.members import Account, MemberStore
from service.store.pool import Pool
from service.store.trials import PER_HOUR, Asked, TrialResult, TrialStore
from service.store.withdrawn import sweep
from service.wiring.configuration import configuration
from tests.integration.answers_kit import open_places
from tests.integration.store_data import NOON, indexed, later, post, rows
from tests.moderators import ADMIN, Pages, open_pages, visible

QUESTION = "Why do <b>tomatoes</b> crack?"
FOUND = Candidate(
    PostId(101),
    TopicId(10),
    2,
    "Cracked <i>tomatoes</i>",
    "cracked",
    "Too much water.",
    "ines",
    NOON,
    cosine=0.81,
    logit=2.5,
)
SOURCE = Source(1, FOUND.post_id, FOUND.topic_id, 2, FOUND.title, FOUND.slug, FOUND.body, "ines", NOON, 0.81, 2.5)
TRACE = Trace(
    asked=QUESTION,
    queries=["why do tomatoes crack", QUESTION],
    lang="en",
    mode=Mode.RERANKED,
    zone=Zone.NORMAL,
    candidates=[FOUND, replace(FOUND, post_id=PostId(102), post_number=3, logit=-5.0)],
    sources=[SOURCE],
    evidence="[[1]] Too much water.",
    draft="Water less [[1]].",
    drafted_by="a model",
    checks=["passed"],
    timings_ms={"retrieve": 20.0, "rerank": 60.0, "generate": 120.0},
)
RESULT = TrialResult("answered", "Water <less>.", (1,), gate_on=False, declined="generalist:homework-en", trace=TRACE)


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


async def ask(pages: Pages, question: str = QUESTION, lang: str = "") -> int:
    sent = await pages.post("/try", {"question": question, "lang": lang})
    assert sent.status_code == 303, sent.text
    return int(sent.headers["location"].removeprefix("/moderation/try/"))


async def test_a_question_waits_for_a_worker_and_its_page_looks_again(pages: Pages, pool: Pool) -> None:
    trial_id = await ask(pages, lang="fr")
    jobs = await rows(pool, "SELECT queue_name, task_name, priority, args FROM procrastinate_jobs")
    assert jobs == [("answer", "try_question", 50, {"trial_id": trial_id})]
    waiting = await pages.client.get(f"/try/{trial_id}")
    assert waiting.headers["refresh"] == "2"
    assert "waits for a worker." in waiting.text
    assert "Why do &lt;b&gt;tomatoes" in waiting.text
    assert await TrialStore(pool).begin(trial_id) == Asked(QUESTION, "fr")
    assert "is being answered." in await pages.text(f"/try/{trial_id}")
    pages.clock.tick(15 * 60)
    lost = await pages.client.get(f"/try/{trial_id}")
    assert "refresh" not in lost.headers
    assert "No worker has answered it." in lost.text


async def test_every_step_of_the_answer_is_shown(pages: Pages, pool: Pool) -> None:
    trial_id = await ask(pages)
    await TrialStore(pool).done(trial_id, RESULT, now=pages.clock())
    answer = await pages.client.get(f"/try/{trial_id}")
    assert "refresh" not in answer.headers
    shown = visible(answer.text)
    for words in (
        "Result answered",
        "declined by generalist:homework-en the gate is off, so that this does not count",
        "Searched for why do tomatoes crack",
        "Search reranked Zone normal",
        "What would be posted Water &lt;less&gt;.",
        "0.810",
        "2.50",
        "−5.00",
        "[[1]] Too much water.",
        "Water less [[1]].",
        "By a model",
        "Check passed",
        "200 ms in all",
    ):
        assert words in shown, words
    assert "Cracked &lt;i&gt;tomatoes" in answer.text
    assert 'href="https://forum.example/t/cracked/10/2"' in answer.text
    assert '<rect class="stage-5" x="400.0" y="0" width="600.0"' in answer.text
    assert "Ce qui serait publié" in await pages.text(f"/try/{trial_id}", lang="fr")


async def tried(pages: Pages, pool: Pool, result: TrialResult) -> str:
    trial_id = await ask(pages)
    await TrialStore(pool).done(trial_id, result, now=pages.clock())
    return f"/try/{trial_id}"


async def test_a_moderators_verdict_is_a_test_of_the_configuration(pages: Pages, pool: Pool) -> None:
    signature = configuration(pages.desk.settings)
    path = await tried(pages, pool, replace(RESULT, signature=signature.sha256))
    assert "Sign it off" in await pages.text(path)
    for verdict in ("failed", "passed"):
        sent = await pages.post(path, {"verdict": verdict, "why": " it <is> right "})
        assert (sent.status_code, sent.headers["location"]) == (303, "/moderation/flags?done=1")
        latest = await EvaluationStore(pool).latest_run(signature.sha256)
        assert latest is not None
        assert latest.run == EvaluationRun(signature, RunKind.SIGNED_OFF, verdict == "passed", "mia", "it <is> right")
    assert "signed off" in visible(await pages.text("/"))


@pytest.mark.parametrize(
    "changes",
    [{"signature": ""}, {"result": "abstained"}, {"trace": replace(TRACE, mode=Mode.RERANKER_DOWN)}],
    ids=["of an earlier version", "abstained", "a part was down"],
)
async def test_only_a_whole_answer_tests_anything(pages: Pages, pool: Pool, changes: dict[str, Any]) -> None:
    path = await tried(pages, pool, replace(RESULT, **{"signature": "0" * 64, **changes}))
    assert "Sign it off" not in await pages.text(path)
    assert (await pages.post(path, {"verdict": "passed", "why": "it is right"})).status_code == 409


async def test_no_verdict_on_what_is_not_in_use_or_without_a_reason(pages: Pages, pool: Pool) -> None:
    path = await tried(pages, pool, replace(RESULT, signature="0" * 64))
    sent = await pages.post(path, {"verdict": "passed", "why": "it is right"})
    assert sent.status_code == 409 and "the configuration has changed" in sent.text
    for verdict, why in (("passed", " "), ("passed", "x" * 501), ("fine", "it is right"), ("", "it is right")):
        assert (await pages.post(path, {"verdict": verdict, "why": why})).status_code == 422
    await pages.sign_in(ADMIN)
    assert (await pages.post(path, {"verdict": "passed", "why": "not mine"})).status_code == 404
    assert await rows(pool, "SELECT FROM evaluation_runs") == []


async def test_a_failure_says_why(pages: Pages, pool: Pool) -> None:
    trial_id = await ask(pages)
    await TrialStore(pool).failed(trial_id, "the index <is> empty", now=pages.clock())
    shown = await pages.text(f"/try/{trial_id}")
    assert "could not be answered" in shown
    assert "the index &lt;is&gt; empty" in shown
    # What ended stays so, whoever comes late.
    await TrialStore(pool).done(trial_id, RESULT, now=pages.clock())
    assert await TrialStore(pool).begin(trial_id) is None
    assert "could not be answered" in await pages.text(f"/try/{trial_id}")


@pytest.mark.parametrize("how", ["removed", "opted out", "found late"])
async def test_what_a_post_said_goes_with_it(pages: Pages, pool: Pool, how: str) -> None:
    corpus, store, found = CorpusStore(pool), TrialStore(pool), post(1, post_number=2)
    await open_places(pool)
    await corpus.put_posts([indexed(found, FOUND.body)])
    trial_id = await ask(pages)
    if how != "found late":
        await store.done(trial_id, RESULT, now=pages.clock())
    if how == "opted out":
        await MemberStore(pool).opt_out([Account(found.user_id, "ines")], by="Zoé", reason="he asked", now=NOON)
    else:
        await corpus.remove_post(found.id, updated_at=later(9))
    if how == "found late":
        await store.done(trial_id, RESULT, now=pages.clock())
        await sweep(pool)
    shown = await pages.text(f"/try/{trial_id}")
    assert "a post that it had found is gone: ask again" in shown
    assert "could not be answered" in await pages.text("/try")
    for words in (FOUND.body, FOUND.title, RESULT.markdown):
        assert await rows(pool, "SELECT FROM trials AS one WHERE position(%s IN one::text) > 0", words) == []


async def test_only_who_asked_sees_it(pages: Pages) -> None:
    trial_id = await ask(pages)
    await pages.sign_in(ADMIN)
    assert (await pages.client.get(f"/try/{trial_id}")).status_code == 404
    assert "None in the last day." in await pages.text("/try")
    for path in ("/try/0", f"/try/{2**70}", "/try/-1"):
        assert (await pages.client.get(path)).status_code == 404


async def test_one_at_a_time_and_so_many_an_hour(pages: Pages, pool: Pool) -> None:
    store = TrialStore(pool)
    first = await ask(pages)
    busy = await pages.post("/try", {"question": "And now?"})
    assert (busy.status_code, "still being answered" in busy.text, "And now?" in busy.text) == (429, True, True)
    await pages.sign_in(ADMIN)
    await ask(pages)
    await pages.sign_in()
    await store.done(first, RESULT, now=pages.clock())
    for _ in range(PER_HOUR - 1):
        await store.failed(await ask(pages), "x", now=pages.clock())
    many = await pages.post("/try", {"question": "And now?"})
    assert (many.status_code, f"{PER_HOUR} questions an hour at most" in many.text) == (429, True)
    pages.clock.tick(3600)
    await ask(pages)
    assert len(await rows(pool, "SELECT 1 FROM procrastinate_jobs")) == PER_HOUR + 2


async def test_a_lost_one_holds_up_no_other(pages: Pages) -> None:
    await ask(pages)
    pages.clock.tick(15 * 60)
    await ask(pages)
    assert "No worker has answered it." in await pages.text("/try")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"question": "  "}, "a question has 1 to 1500 characters"),
        ({"question": "x" * 1501}, "a question has 1 to 1500 characters"),
        ({"question": "Why?", "lang": "xx"}, "the language is none of"),
    ],
)
async def test_what_is_no_question_is_refused(pages: Pages, pool: Pool, fields: dict[str, str], says: str) -> None:
    answer = await pages.post("/try", fields)
    assert answer.status_code == 422
    assert says in answer.text
    assert await rows(pool, "SELECT 1 FROM trials") == []


async def test_trials_are_gone_after_a_day(pages: Pages, pool: Pool) -> None:
    trial_id = await ask(pages, "Why \x00?")
    pages.clock.tick(24 * 3600)
    await pages.sign_in()
    assert (await pages.client.get(f"/try/{trial_id}")).status_code == 404
    store = TrialStore(pool)
    assert await store.expire(now=pages.clock() - timedelta(seconds=1)) == 0
    assert await store.expire(now=pages.clock()) == 1
