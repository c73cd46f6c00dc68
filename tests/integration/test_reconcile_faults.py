"""A round of reconciling meets what can't be read: that is left out, and all the rest is compared and mended."""

from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from service.discourse.listings import PostPage
from service.domain import EmbeddingProfile, PostId
from service.errors import ArianeError, Busy, Misconfigured, Transient
from service.ingest.mend import MAX_FAILURES, Reconciler
from service.ingest.reconcile import FRESH_WINDOWS, MAX_CAUGHT_UP, reconcile_all, reconcile_round
from service.ingest.reconcile_ports import Walk
from service.simulator.forum import Author
from service.store.pool import Pool
from tests.e2e.live_checks import check_agreement, found
from tests.e2e.live_kit import Life, life
from tests.integration.store_data import rows

TOPIC, OTHER = 10, 12
REPLY = 2
ERRORS = [Transient("the forum answered 500"), Misconfigured("answered 301, elsewhere")]


@pytest.fixture
async def at(pool: Pool, tmp_path: Path) -> AsyncIterator[Life]:
    """The tiny forum, indexed."""
    async with life(pool, tmp_path, seed=1) as running:
        await running.reconcile(whole=True)
        running.sent.waiting.clear()
        yield running


class Failing:
    """The reconciler's forum, some calls of which fail: all those of a name, or those about some ids."""

    def __init__(self, true: object, error: ArianeError, **fails: Collection[int] | None) -> None:
        self._true = true
        self._error = error
        self._fails = fails
        self.failures = 0

    def __getattr__(self, name: str) -> object:
        true = getattr(self._true, name)
        if name not in self._fails:
            return true

        async def call(*arguments: int) -> object:
            numbers = self._fails[name]
            if numbers is None or set(arguments) & set(numbers):
                self.failures += 1
                raise self._error
            return await true(*arguments)

        return call


def failing(at: Life, error: ArianeError, **fails: Collection[int] | None) -> tuple[Reconciler, Failing]:
    forum = Failing(at.reconciler.forum, error, **fails)
    indexer = replace(at.reconciler.indexer, forum=forum)  # type: ignore[arg-type]  # it passes every other call on
    return replace(at.reconciler, forum=forum, indexer=indexer), forum  # type: ignore[arg-type]  # the same


async def round_of(at: Life, reconciler: Reconciler, *, steps: int = 1) -> None:
    assert await reconcile_round(reconciler, steps=steps, now=at.people.clock()) is not None


@pytest.mark.parametrize("error", ERRORS, ids=["transient", "misconfigured"])
async def test_a_topic_that_can_not_be_read_holds_up_no_other(at: Life, error: ArianeError) -> None:
    boss = Author(at.forum.members[1], at.people.clock())
    for topic_id in (TOPIC, OTHER):
        at.forum.update_topic(replace(at.forum.topics[topic_id], title=f"Retitled {topic_id}"), now=at.people.clock())
    new = at.forum.create_topic(boss, title="One that nobody told us of", category_id=1, raw="And what it says.")
    at.forum.hide_post(REPLY, hidden=True, now=at.people.clock())
    reconciler, forum = failing(at, error, public_thread={OTHER})
    before = await at.reconciler.state.position(Walk.POSTS)
    await round_of(at, reconciler)
    assert forum.failures
    assert REPLY not in await found(at.pool)
    assert new.id in await found(at.pool)
    assert await rows(at.pool, "SELECT title FROM topics WHERE topic_id = %s", TOPIC) == [(f"Retitled {TOPIC}",)]
    assert await at.reconciler.state.position(Walk.POSTS) != before
    await round_of(at, at.reconciler)
    await check_agreement(at)


async def test_a_topic_that_can_not_be_read_is_tried_once_by_a_walk_over_everything(at: Life) -> None:
    await rows(at.pool, "UPDATE topics SET title = '' WHERE topic_id IN (10, 12) RETURNING topic_id")
    reconciler, _ = failing(at, ERRORS[0], public_thread={OTHER})
    report = await reconcile_all(reconciler, now=at.people.clock(), progress=lambda *_: None)
    assert report is not None and report.unread
    assert await rows(at.pool, "SELECT title <> '' FROM topics WHERE topic_id = 10") == [(True,)]
    await at.reconcile(whole=True)
    await check_agreement(at)


@pytest.mark.parametrize("name", ["post_page", "active_topics", "created_topics"])
async def test_a_list_that_can_not_be_read_holds_up_no_other(at: Life, name: str) -> None:
    at.forum.update_topic(replace(at.forum.topics[TOPIC], title="Retitled, unheard"), now=at.people.clock())
    at.forum.hide_post(REPLY, hidden=True, now=at.people.clock())
    reconciler, forum = failing(at, ERRORS[0], **{name: None})
    for _ in range(8):
        await round_of(at, reconciler, steps=4)
    assert forum.failures
    if name == "post_page":
        assert await rows(at.pool, "SELECT title FROM topics WHERE topic_id = 10") == [("Retitled, unheard",)]
    else:
        assert REPLY not in await found(at.pool)


@pytest.mark.parametrize(
    "error", [Busy("60 a minute", retry_after_seconds=50), *ERRORS], ids=lambda one: type(one).__name__
)
async def test_notifications_that_can_not_be_read_hold_up_nothing(at: Life, error: ArianeError) -> None:
    at.forum.hide_post(REPLY, hidden=True, now=at.people.clock())
    reconciler, forum = failing(at, error, notices=None)
    await round_of(at, reconciler)
    assert forum.failures == 1
    assert REPLY not in await found(at.pool)


async def test_a_mention_that_can_not_be_read_is_tried_for_a_while_and_then_left(at: Life) -> None:
    asked = [
        at.forum.create_post(
            Author(at.forum.members[2], at.people.clock()), topic_id=TOPIC, raw=f"@ariane how do I bleed radiator {n}?"
        )
        for n in (1, 2)
    ]
    await at.webhooks.drain()
    at.sent.waiting.clear()
    reconciler, forum = failing(at, ERRORS[0], public_post={asked[0].id})
    at.people.clock.tick(300)
    await round_of(at, reconciler)
    assert forum.failures and await waiting(at) == set()
    await round_of(at, reconciler)
    assert await waiting(at) == set()
    at.people.clock.tick(3600)
    await round_of(at, reconciler)
    assert await waiting(at) == {f"answer:{asked[1].id}"}


async def test_a_forum_that_is_down_ends_the_round(at: Life) -> None:
    reconciler, forum = failing(
        at, ERRORS[0], post_page=None, active_topics=None, created_topics=None, public_thread=None
    )
    with pytest.raises(Transient):
        await reconcile_round(reconciler, steps=1000, now=at.people.clock())
    assert forum.failures == MAX_FAILURES


async def test_a_forum_that_asks_to_wait_ends_the_round(at: Life) -> None:
    reconciler, forum = failing(at, Busy("200 a minute", retry_after_seconds=300), post_page=None)
    with pytest.raises(Transient):
        await reconcile_round(reconciler, steps=1000, now=at.people.clock())
    assert forum.failures == 1


async def waiting(at: Life) -> set[str]:
    return {lock for (lock,) in await rows(
        at.pool, "SELECT lock FROM procrastinate_jobs WHERE task_name = 'answer_post'"
    )}  # fmt: skip


class Far:
    """The reconciler's forum, which is said to have many more posts than it has; `asked` are the windows read."""

    def __init__(self, true: object, newest: PostPage) -> None:
        self._true = true
        self._newest = newest
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._true, name)

    async def post_page(self, before: PostId | None) -> PostPage:
        if before is None:
            return self._newest
        self.asked.append(before)
        return PostPage([], [], None, None) if before > 1000 else await self._true.post_page(before)  # type: ignore[attr-defined]  # a RecentReader


def far_off(at: Life, *, lowest: int, highest: int) -> tuple[Reconciler, Far]:
    forum = Far(at.reconciler.forum, PostPage([], [], PostId(lowest), PostId(highest)))
    return replace(at.reconciler, forum=forum), forum  # type: ignore[arg-type]  # it passes every other call on


async def test_what_came_in_a_long_outage_is_caught_up_with_in_several_rounds(at: Life) -> None:
    """Else mentions, categories and all the rest wait until the last window of it was read."""
    newest = 50 * (MAX_CAUGHT_UP + 100)
    await at.reconciler.state.move(Walk.NEWEST_POSTS, 500)
    reconciler, forum = far_off(at, lowest=newest - 49, highest=newest)
    for _ in range(60):
        asked = len(forum.asked)
        await round_of(at, reconciler, steps=4)
        assert len(forum.asked) - asked <= FRESH_WINDOWS + MAX_CAUGHT_UP + 4
        if forum.asked[-1] <= 500:
            break
    read = set(forum.asked)
    assert {before for before in range(newest - 50, 500, -50) if before not in read} == set()


@pytest.mark.parametrize(("lowest", "highest"), [(1, 130), (1, 2**62), (130, 130)])
async def test_whatever_ids_the_newest_page_names_no_more_than_some_windows_are_compared_at_once(
    at: Life, monkeypatch: pytest.MonkeyPatch, lowest: int, highest: int
) -> None:
    compared: list[int] = []
    posts = type(at.reconciler.state).posts

    async def seen(self: object, profile: EmbeddingProfile, above: PostId, upto: PostId, also: list[PostId]) -> object:
        compared.append(upto - above)
        return await posts(self, profile, above, upto, also)  # type: ignore[arg-type]  # the store itself

    monkeypatch.setattr(type(at.reconciler.state), "posts", seen)
    reconciler, forum = far_off(at, lowest=lowest, highest=highest)
    await round_of(at, reconciler)
    assert compared and max(compared) <= (FRESH_WINDOWS + 1) * 50
    assert len(forum.asked) <= FRESH_WINDOWS + MAX_CAUGHT_UP + 1
