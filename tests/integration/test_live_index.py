"""Changes of a forum, one at a time: told in any order, told by nobody, or while the forum is down."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from service.discourse.listings import PostPage, TopicPage
from service.domain import Category, PostId, TopicId
from service.errors import Misconfigured, Transient
from service.ingest import index
from service.ingest.compare import Drift
from service.ingest.mend import Reconciler
from service.ingest.reconcile import reconcile_all, reconcile_round
from service.ingest.reconcile_ports import Walk
from service.simulator.forum import Author
from service.simulator.moderation import move_posts, set_restricted
from service.store.pool import Pool
from tests.e2e.live_checks import check_agreement, found
from tests.e2e.live_kit import Life, life
from tests.integration.store_data import rows

TOPIC, OTHER = 10, 12
REPLY = 2


@pytest.fixture
async def at(pool: Pool, tmp_path: Path) -> AsyncIterator[Life]:
    """The tiny forum, indexed."""
    async with life(pool, tmp_path, seed=1) as running:
        await running.reconcile(whole=True)
        running.sent.waiting.clear()
        yield running


class Down:
    """A forum that doesn't answer."""

    def __getattr__(self, name: str) -> object:
        async def fails(*_: object) -> None:
            raise Transient("the forum is down")

        return fails


async def topic_rows(pool: Pool, topic_id: int) -> list[tuple[str, bool]]:
    return [(title, deleted) for title, deleted in await rows(
        pool, "SELECT title, deleted FROM topics WHERE topic_id = %s", topic_id
    )]  # fmt: skip


def boss(at: Life) -> Author:
    return Author(at.forum.members[1], at.people.clock())


@pytest.mark.parametrize("how", ["deleted", "unlisted", "recategorised", "message", "category"])
async def test_what_a_signed_body_says_to_be_private_is_hidden_though_the_forum_is_down(at: Life, how: str) -> None:
    forum, now = at.forum, at.people.clock()
    assert REPLY in await found(at.pool)
    topic = forum.topics[TOPIC]
    match how:
        case "deleted":
            forum.delete_post(boss(at), forum.stream(TOPIC)[0].id)
        case "unlisted":
            forum.update_topic(replace(topic, visible=False), now=now)
        case "recategorised":
            forum.update_topic(replace(topic, category_id=2), now=now)
        case "message":
            forum.update_topic(replace(topic, category_id=None, archetype="private_message"), now=now)
        case "category":
            set_restricted(forum, topic.category_id or 0, value=True)
    at.indexer = replace(at.indexer, forum=Down())  # type: ignore[arg-type]  # any call of it fails
    await at.webhooks.drain()
    await at.deliver(patiently=True)
    assert not {REPLY, 1} & (await found(at.pool)).keys()


async def test_an_old_closing_of_a_category_costs_no_text(at: Life) -> None:
    before = await rows(at.pool, "SELECT post_id, body, read_at FROM posts WHERE topic_id = 10 ORDER BY 1")
    set_restricted(at.forum, 1, value=True)
    set_restricted(at.forum, 1, value=False)
    await at.webhooks.drain()
    del at.sent.waiting[1]  # that it opened again is lost: when it is told to be closed, it is open
    await at.deliver()
    assert await rows(at.pool, "SELECT post_id, body, read_at FROM posts WHERE topic_id = 10 ORDER BY 1") == before
    await check_agreement(at)


async def test_a_reading_that_was_under_way_while_a_category_closed_does_not_open_it(at: Life) -> None:
    """The forum is slow: the reconciler's reading comes in after the event, and the event's own not at all yet."""
    listed = await at.reconciler.forum.public_categories()
    set_restricted(at.forum, 1, value=True)
    await at.webhooks.drain()

    class Slow:
        async def public_categories(self) -> list[Category]:
            at.indexer = replace(at.indexer, forum=Down())  # type: ignore[arg-type]  # any call of it fails
            await at.deliver(patiently=True)
            return listed

    slow = replace(at.reconciler.indexer, forum=Slow())  # type: ignore[arg-type]  # no other call is made
    await index.refresh_categories(slow)
    assert not {post for post, (_, category) in (await found(at.pool)).items() if category == 1}


async def test_a_deletion_that_comes_after_the_recovery_takes_nothing(at: Life) -> None:
    at.forum.delete_post(boss(at), REPLY)
    await at.webhooks.drain()
    late = list(at.sent.waiting)
    at.sent.waiting.clear()
    at.forum.recover_post(REPLY, now=at.people.clock())
    await at.webhooks.drain()
    await at.deliver()
    at.sent.waiting.extend(late)
    await at.deliver()
    await check_agreement(at)
    assert REPLY in await found(at.pool)


async def test_an_edit_that_comes_after_a_silent_removal_brings_nothing_back(at: Life) -> None:
    at.people.clock.tick(60)
    at.forum.edit_post(REPLY, raw="A newer text of it.", now=at.people.clock())
    await at.webhooks.drain()
    at.forum.hide_post(REPLY, hidden=True, now=at.people.clock())
    await index.refresh_post(PostId(REPLY), at.indexer)
    await at.deliver()
    await check_agreement(at)
    assert REPLY not in await found(at.pool)


async def test_posts_that_moved_are_found_where_they_went_by_reading_where_they_were(at: Life) -> None:
    along = [post.id for post in at.forum.stream(TOPIC) if post.number > 1]
    move_posts(at.forum, along, OTHER, now=at.people.clock())
    await index.refresh_topic(TopicId(TOPIC), at.indexer)
    await check_agreement(at)
    assert (await found(at.pool))[REPLY][0] == OTHER


async def test_a_snapshot_that_disagrees_with_its_topic_has_the_topic_read(at: Life) -> None:
    topic = at.forum.update_topic(replace(at.forum.topics[TOPIC], title="Another title of it"), now=at.people.clock())
    await at.webhooks.drain()
    at.sent.waiting.clear()  # topic_edited is lost
    at.people.clock.tick(60)
    at.forum.edit_post(REPLY, raw="A newer text of it.", now=at.people.clock())
    await at.webhooks.drain()
    await at.deliver()
    assert await topic_rows(at.pool, TOPIC) == [(topic.title, False)]
    await check_agreement(at)


async def test_a_reading_that_breaks_off_is_taken_up_again(at: Life) -> None:
    """The topic's new state is stored, its posts are not yet: the next try must not believe that nothing changed."""
    at.forum.update_topic(replace(at.forum.topics[TOPIC], title="Another title of it"), now=at.people.clock())
    broken = replace(at.indexer, embedder=Down())  # type: ignore[arg-type]  # any call of it fails

    async def fails(*_: object, **__: object) -> int:
        raise Transient("the database is gone")

    corpus = at.indexer.corpus
    put_posts, corpus.put_posts = corpus.put_posts, fails  # type: ignore[method-assign]
    with pytest.raises(Transient):
        await index.refresh_topic(TopicId(TOPIC), broken)
    corpus.put_posts = put_posts  # type: ignore[method-assign]
    await index.refresh_topic(TopicId(TOPIC), at.indexer)
    await check_agreement(at)


class Lists:
    """The reconciler's forum with lists of the test's own; readings go to the true one."""

    def __init__(self, true: object, **lists: object) -> None:
        self._true = true
        self._lists = lists

    def __getattr__(self, name: str) -> object:
        if name not in self._lists:
            return getattr(self._true, name)

        async def given(*_: object) -> object:
            value = self._lists[name]
            if isinstance(value, Exception):
                raise value
            return value

        return given


def with_lists(at: Life, **lists: object) -> Reconciler:
    return replace(at.reconciler, forum=Lists(at.reconciler.forum, **lists))  # type: ignore[arg-type]  # as above


async def test_lists_that_lie_cost_no_post(at: Life) -> None:
    nothing = {
        "post_page": PostPage([], [], None, None),
        "active_topics": TopicPage([], [], more=False),
        "created_topics": TopicPage([], [], more=False),
    }
    report = await reconcile_all(with_lists(at, **nothing), now=at.people.clock(), progress=lambda *_: None)
    assert report is not None
    assert report.found[Drift.POST_GONE] > 10
    assert report.mended[Drift.POST_GONE] == 0  # nothing was wrong, so nothing could be mended
    await check_agreement(at)


async def test_the_bots_key_is_not_needed_to_compare(at: Life) -> None:
    at.forum.hide_post(REPLY, hidden=True, now=at.people.clock())
    refused = with_lists(at, notices=Misconfigured("the forum refuses forum.api_key"))
    report = await reconcile_round(refused, steps=1, now=at.people.clock())
    assert report is not None and report.mended == {Drift.POST_GONE: 1}
    await check_agreement(at)


async def test_one_reconciler_at_a_time(at: Life) -> None:
    async with at.reconciler.state.alone() as ours:
        assert ours
        assert await reconcile_round(at.reconciler, steps=1, now=at.people.clock()) is None
        assert await reconcile_all(at.reconciler, now=at.people.clock(), progress=lambda *_: None) is None
    assert await reconcile_round(at.reconciler, steps=1, now=at.people.clock()) is not None


async def test_the_walk_goes_round(at: Life) -> None:
    state, highest = at.reconciler.state, max(at.forum.posts)
    places = []
    for _ in range(5):
        await reconcile_round(at.reconciler, steps=1, now=at.people.clock())
        places.append(await state.position(Walk.POSTS))
    assert places == [highest - 50, highest - 100, 0, highest - 50, highest - 100]


async def test_a_category_that_opens_is_filled_and_one_that_closed_unheard_is_emptied(at: Life) -> None:
    set_restricted(at.forum, 1, value=True)
    at.sent.waiting.clear()
    await at.reconcile(whole=False)
    assert not {post for post, (_, category) in (await found(at.pool)).items() if category == 1}
    secret = at.forum.create_topic(
        boss(at), title="Begun while it was closed", category_id=1, raw="Nobody knows of it."
    )
    set_restricted(at.forum, 1, value=False)
    await at.webhooks.drain()
    at.sent.waiting.clear()
    for _ in range(20):
        await at.reconcile(whole=False)
    await check_agreement(at)
    assert secret.id in await found(at.pool)


async def test_a_missed_mention_is_asked_once(at: Life) -> None:
    post = at.forum.create_post(
        Author(at.forum.members[2], at.people.clock()), topic_id=TOPIC, raw="@ariane how do I bleed a radiator?"
    )
    await at.webhooks.drain()
    at.sent.waiting.clear()
    await at.reconcile(whole=False)
    assert await waiting(at) == []  # its webhook may still be under way
    at.people.clock.tick(600)
    for _ in range(2):
        await at.reconcile(whole=False)
    assert await waiting(at) == [("answer_post", f"answer:{post.id}")]
    [(state, cooked)] = await rows(at.pool, "SELECT state ->> 'id', cooked FROM inbox WHERE event = 'mention_missed'")
    assert (int(state), cooked) == (post.id, None)


@pytest.mark.parametrize("heard", ["webhook", "ledger", "trace", "old", "gone"])
async def test_a_mention_that_was_heard_of_or_is_past_is_not_asked_again(at: Life, heard: str) -> None:
    post = at.forum.create_post(
        Author(at.forum.members[2], at.people.clock()), topic_id=TOPIC, raw="@ariane how do I bleed a radiator?"
    )
    await at.webhooks.drain()
    if heard == "webhook":
        await at.deliver()
        await rows(at.pool, "DELETE FROM procrastinate_jobs RETURNING id")
    at.sent.waiting.clear()
    match heard:
        case "ledger":
            await rows(
                at.pool,
                "INSERT INTO answers (post_id, topic_id, post_number, claimed_at) VALUES (%s, 10, 9, now())"
                " RETURNING post_id",
                post.id,
            )
        case "trace":
            await rows(
                at.pool,
                "INSERT INTO traces (post_id, topic_id, recorded_at, outcome, trace) VALUES (%s, 10, now(), 'skipped',"
                " '{}') RETURNING trace_id",
                post.id,
            )
        case "gone":
            at.forum.delete_post(boss(at), post.id)
    await at.webhooks.drain()
    at.sent.waiting.clear()
    at.people.clock.tick(timedelta(days=3).total_seconds() if heard == "old" else 600)
    await at.reconcile(whole=False)
    assert await waiting(at) == []


async def waiting(at: Life) -> list[tuple[str, str]]:
    return [(task, lock) for task, lock in await rows(
        at.pool, "SELECT task_name, lock FROM procrastinate_jobs WHERE task_name = 'answer_post'"
    )]  # fmt: skip
