"""The first page: what works and what doesn't, today's questions, the index, the last test."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from service.answer.ports import DeedKind
from service.domain import EvaluationRun, Posted, PostId, Result, RunKind, Shadowed, Skipped, SkipReason, TopicId
from service.ingest.ports import Census
from service.moderation.pages.home import known_seconds
from service.moderation.readiness import Readiness, readiness
from service.store.corpus import CorpusStore
from service.store.deeds import DeedStore, NewDeed, ask
from service.store.evaluations import EvaluationStore
from service.store.figures import FigureStore
from service.store.flags import FlagStore
from service.store.parts import PartStore
from service.store.pool import Pool, transaction
from service.wiring.configuration import configuration
from service.wiring.parts import stored_parts
from tests.integration.answers_kit import open_places
from tests.integration.page_data import happened
from tests.integration.store_data import POST, PRIVATE, PUBLIC, TOPIC, indexed, rows
from tests.moderators import ADMIN, SETTINGS, Pages, open_pages, visible

EMPTY = Census(topics=0, posts=0, indexed=0, refused={}, left_to_embed=0)
WORKING: dict[str, bool | None] = {"embedder": True, "reranker": True, "model": None, "forum": True}


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


async def test_a_new_installation_says_what_is_missing(pages: Pages) -> None:
    shown = visible(await pages.text("/"))
    assert "Forum search does not work The index is empty" in shown
    assert "Library not installed" in shown
    assert "Ranking does not work No worker tells of itself" in shown
    assert "Generation does not work No worker tells of itself" in shown
    assert "Last sign of a worker none" in shown
    assert "0 mentions since midnight" in shown
    assert "No configuration was tested yet." in shown
    assert "Bibliothèque pas installée" in visible(await pages.text("/", lang="fr"))


async def test_what_the_workers_tell_of_their_parts_is_shown(pages: Pages, pool: Pool) -> None:
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    await corpus.put_posts([indexed(POST)])
    await stored_parts(pool, "one", {part: partial(WORKING.get, part) for part in WORKING})()
    shown = visible(await pages.text("/"))
    assert "Forum search with less It works; the newest posts are still to be embedded." in shown
    assert "Ranking works The program&#39;s own reranker" in shown
    assert "Generation works No language model is set up" in shown
    assert "The forum answers its reads yes" in shown
    assert "0.0 % Topics 1 Posts in the index 1 Waiting for their vector 1" in shown
    await PartStore(pool).put("two", WORKING | {"embedder": False, "reranker": False})
    shown = visible(await pages.text("/"))
    assert "Forum search with less The embedder does not answer" in shown
    assert "Ranking with less The reranker does not answer" in shown


async def test_a_silent_worker_is_no_news(pages: Pages, pool: Pool) -> None:
    await PartStore(pool).put("one", WORKING)
    within = known_seconds(SETTINGS.worker)
    assert (await PartStore(pool).latest(within_seconds=within))["forum"].works is True
    await rows(pool, "UPDATE part_states SET seen_at = now() - make_interval(secs => %s) RETURNING 1", within + 1)
    assert await PartStore(pool).latest(within_seconds=within) == {}
    assert "The forum answers its reads not known yet" in visible(await pages.text("/"))
    await rows(pool, "UPDATE part_states SET seen_at = now() - interval '1 day' RETURNING 1")
    await PartStore(pool).put("two", {})
    assert await rows(pool, "SELECT worker FROM part_states") == []


@pytest.mark.parametrize(
    ("works", "wanted"),
    [(None, Readiness.UNKNOWN), (True, Readiness.READY), (False, Readiness.DEGRADED)],
)
async def test_a_language_model_counts_by_what_is_known_of_it(
    pool: Pool, works: bool | None, wanted: Readiness
) -> None:
    await PartStore(pool).put("one", {"model": works})
    parts = await PartStore(pool).latest(within_seconds=60)
    answerer = SETTINGS.models.answerer.model_copy(update={"kind": "ollama"})
    cells = readiness(parts, EMPTY, SETTINGS.models.model_copy(update={"answerer": answerer}))
    assert cells[3].readiness is wanted


async def test_todays_questions_are_drawn_by_what_became_of_them(pages: Pages, pool: Pool) -> None:
    now = pages.clock()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    await open_places(pool)
    await happened(pool, 1, Posted(Result.ANSWERED, PostId(900)), midnight)
    await happened(pool, 2, Shadowed(Result.ANSWERED), midnight)
    await happened(pool, 3, Posted(Result.GATED, PostId(901)), now)
    await happened(pool, 4, Skipped(SkipReason.MEMBER_LIMIT), now)
    await happened(pool, 5, Skipped(SkipReason.THANKS), midnight - timedelta(seconds=1))
    await happened(pool, 6, Posted(Result.ANSWERED, PostId(902)), now, archetype="private_message")
    await happened(pool, 8, Skipped(SkipReason.THANKS), now, topic_id=TopicId(20), category_id=PRIVATE.id)
    # One that had to wait, and was answered then, is one question.
    await happened(pool, 7, Skipped(SkipReason.HOURLY_LIMIT), midnight)
    await happened(pool, 7, Posted(Result.ABSTAINED, PostId(903)), now)
    html = await pages.text("/")
    shown = visible(html)
    assert "5 mentions since midnight (UTC). 1 of them was answered in shadow." in shown
    assert "answered: 2 the forum has no answer: 1 declined by the gate: 1 no answer: 1" in shown
    widths = [
        float(width)
        for width in re.findall(r'<rect class="fill-\w+" x="[\d.]+" y="0" width="([\d.]+)" height="22', html)
    ]
    assert len(widths) == 4
    assert sum(widths) == pytest.approx(440)
    await pages.sign_in(ADMIN)
    assert "7 mentions since midnight" in visible(await pages.text("/"))


async def test_an_answer_that_a_moderator_posted_no_longer_counts_as_shadowed(pages: Pages, pool: Pool) -> None:
    now, store = pages.clock(), DeedStore(pool)
    await open_places(pool)
    asked = await happened(pool, 1, Shadowed(Result.ANSWERED), now)
    declined = await happened(pool, 2, Shadowed(Result.GATED), now)
    assert "2 of them were answered in shadow." in visible(await pages.text("/"))
    for at, post in enumerate((asked, declined)):
        async with transaction(pool) as conn:
            deed_id = await ask(conn, NewDeed(post.id, DeedKind.POST, "it is right", "mia", None), now=now)
        deed = await store.waiting(deed_id or 0)
        assert deed is not None
        await store.posted(deed, Posted(Result.ANSWERED, PostId(900 + at)), 2 + at, now=now)
    shown = visible(await pages.text("/"))
    assert "2 mentions since midnight (UTC)." in shown
    assert "in shadow" not in shown[shown.index("Today") :]
    assert [one.outcome for one in await FigureStore(pool, admin=False).declines(9)] == ["posted"]


async def test_a_test_that_was_passed_over_does_not_count_as_passed(pages: Pages, pool: Pool) -> None:
    signature = configuration(SETTINGS)
    run = EvaluationRun(signature, RunKind.OVERRIDE, True, by="ines", reason="no time")
    await EvaluationStore(pool).record_run(run)
    await FlagStore(pool).set("posts_pipeline", "on", by="ines", reason="no time", signature=signature.sha256)
    for path in ("/", "/flags"):
        shown = visible(await pages.text(path))
        assert "What is in use was switched on without a test (override)." in shown
        assert "what was tested" not in shown
        french = visible(await pages.text(path, lang="fr"))
        assert "Ce qui est en service a été allumé sans test (passage en force)." in french
        assert "a été testé" not in french
    assert "Verdict not tested (override)" in visible(await pages.text("/"))
    assert "Verdict non testé (passage en force)" in visible(await pages.text("/", lang="fr"))


async def test_answering_without_the_gate_is_warned_about(pages: Pages, pool: Pool) -> None:
    warning = "Answers are posted while the input gate is off"
    assert warning not in await pages.text("/")
    await FlagStore(pool).set("answering", "on", by="x", reason="x")
    assert warning in await pages.text("/")
    await FlagStore(pool).set("input_gate", "on", by="x", reason="x")
    assert warning not in await pages.text("/")


async def test_the_last_test_is_shown_and_whether_it_is_of_what_is_in_use(pages: Pages, pool: Pool) -> None:
    signature = configuration(SETTINGS)
    runs = EvaluationStore(pool)
    await runs.record_run(EvaluationRun(signature, RunKind.SIGNED_OFF, True, by="ines", reason="<fine>"))
    html = await pages.text("/")
    assert signature.sha256[:16] in html
    assert "&lt;fine&gt;" in html
    assert "in use Verdict passed" in visible(html)
    await runs.record_run(EvaluationRun(replace(signature, sha256="0" * 64), RunKind.SIGNED_OFF, False, "ines", "no"))
    assert "not what is in use Verdict failed" in visible(await pages.text("/"))


async def test_how_far_the_reconciler_has_come_is_shown(pages: Pages, pool: Pool) -> None:
    assert "Compared with the forum not yet" in visible(await pages.text("/"))
    await rows(pool, "INSERT INTO reconciliation VALUES ('posts', 70, '2026-01-02T12:00Z') RETURNING 1")
    await CorpusStore(pool).put_categories([PUBLIC])
    await CorpusStore(pool).put_topics([TOPIC])
    await CorpusStore(pool).put_posts([indexed(POST)])
    shown = visible(await pages.text("/"))
    assert "last on 2026-01-02 12:00 UTC. The walk over all posts is at post 70, on its way down from 100." in shown
