"""Compare the index with the forum and mend it: what webhooks lost, and what no webhook tells (docs/adr/0015).

Lists only raise a suspicion, whatever they leave out; what is done is what an event would have done: the topic or the
post is read again as an anonymous reader.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from service.domain import PostId, TopicId
from service.errors import Misconfigured, Transient
from service.ingest.compare import Drift
from service.ingest.index import refresh_categories, refresh_topic
from service.ingest.mend import Reconciler, Report, mend_posts, mend_topics
from service.ingest.reconcile_ports import Walk
from service.telemetry import log

WINDOW = 50
"""Ids of posts that a page surely covers (docs/discourse, section 5)."""
FRESH_WINDOWS = 2
"""Windows of the newest posts that every round looks at: flags hide what was posted lately."""
MAX_CAUGHT_UP = 60
"""Windows below those that a round reads to reach the last one; what an outage left beyond is for the walk."""
MAX_ACTIVE_PAGES = 10
WINDOWS_A_PAGE = 3
"""Steps of the rolling walk over posts for each over topics, of which a page has 30."""
GRACE = timedelta(minutes=2)
"""A mention younger than this may still come by its webhook."""
RETRIED = timedelta(minutes=30)
"""A mention that can't be read is tried again for so long; then it no longer holds up those after it."""

Progress = Callable[[str, int, int], None]


async def reconcile_round(at: Reconciler, *, steps: int, now: datetime, wait_seconds: float = 0.0) -> Report | None:
    """What is newest, and the next `steps` of the walk over everything; None while somebody else reconciles.

    Who does is waited for so long.
    """
    async with at.state.alone(wait_seconds=wait_seconds) as ours:
        if not ours:
            return None
        report = Report()
        await _categories(at, report)
        await _mentions(at, report, now)
        await _newest_posts(at, report)
        await _active_topics(at, report)
        await _walk_on(at, report, steps)
        await _doubtful(at, report, limit=steps)
        if report.found:
            log.info("reconciled", found=dict(report.found), mended=dict(report.mended))
        return report


async def reconcile_all(
    at: Reconciler, *, now: datetime, progress: Progress, wait_seconds: float = 0.0
) -> Report | None:
    """Everything once: each window of posts and each page of topics; None while somebody else reconciles.

    Who does is waited for so long.
    """
    async with at.state.alone(wait_seconds=wait_seconds) as ours:
        if not ours:
            return None
        report = Report()
        await _categories(at, report)
        await _mentions(at, report, now)
        page, more = 0, True
        while more:
            more = await mend_topics(at, report, page, created=True)
            page += 1
        before = max(await _first_window(at, report), await at.state.highest_post())
        first = max(before, 1)
        while before > 0:
            progress("posts", first - before, first)
            await _window(at, report, before)
            before = PostId(before - WINDOW)
        progress("posts", first, first)
        await _doubtful(at, report, limit=None)
        return report


async def _categories(at: Reconciler, report: Report) -> None:
    corpus = at.indexer.corpus
    before = {one.id: one for one in (await corpus.categories()).values() if not one.read_restricted}
    await refresh_categories(at.indexer)
    now = {one.id: one for one in (await corpus.categories()).values() if not one.read_restricted}
    report.add({Drift.CATEGORY: len(set(before.values()) ^ set(now.values()))} if before != now else {}, {})
    if now.keys() - before.keys():  # topics that nobody knows may be in them
        await at.state.move(Walk.TOPICS, 0)


async def _mentions(at: Reconciler, report: Report, now: datetime) -> None:
    """Ask for the answers to mentions and replies whose webhooks were lost; the usual rules decide on each."""
    last = await at.state.position(Walk.NOTICES)
    try:
        notices = await at.forum.notices()
    except (Misconfigured, Transient) as exc:  # the index can be compared without the bot's key, and its requests
        log.warning("notifications_unread", error=str(exc))
        return
    for notice in sorted(notices, key=lambda one: one.id):
        if notice.id <= last:
            continue
        if notice.created_at > now - GRACE:
            break
        if notice.created_at > now - at.max_age and await at.mentions.unheard(notice.post_id):
            asked = await report.tried(_ask(at, notice.post_id))
            if asked:
                report.add({Drift.MENTION: 1}, {})
            if asked is None and notice.created_at > now - RETRIED:
                break
        await at.state.move(Walk.NOTICES, notice.id)


async def _ask(at: Reconciler, post_id: PostId) -> bool:
    post = await at.forum.public_post(post_id)
    return post is not None and await at.mentions.ask(post)


async def _doubtful(at: Reconciler, report: Report, *, limit: int | None) -> None:
    """Read topics again that may have opened with their category, or closed without leaving a trace in the lists."""
    began = await at.indexer.corpus.now()
    tried: set[TopicId] = set()
    while topics := set(await at.state.doubtful_topics(limit or WINDOW, stored_before=began)) - tried:
        tried |= topics
        before = await at.state.topics(topics)
        for topic_id in sorted(topics):
            await report.tried(refresh_topic(topic_id, at.indexer))
        after = await at.state.topics(topics)
        changed = sum(before.get(one) != after.get(one) for one in topics)
        report.add({Drift.TOPIC_CHANGED: changed} if changed else {}, {})
        if limit is not None:
            return


async def _newest_posts(at: Reconciler, report: Report) -> None:
    """From the newest post down to where the last round began, at least some windows and not many more."""
    known = await at.state.position(Walk.NEWEST_POSTS)
    before = top = await _first_window(at, report)
    for _ in range(FRESH_WINDOWS):
        await _window(at, report, before)
        before = PostId(before - WINDOW)
    for _ in range(MAX_CAUGHT_UP):
        if not 0 < known < before:
            break
        await _window(at, report, before)
        before = PostId(before - WINDOW)
    if 0 < known < before:
        await at.state.move(Walk.POSTS, before)
    await at.state.move(Walk.NEWEST_POSTS, top)


async def _active_topics(at: Reconciler, report: Report) -> None:
    """The topics that were active last: as many pages as differ, and one."""
    for page in range(MAX_ACTIVE_PAGES):
        found = report.found.total()
        if not await mend_topics(at, report, page, created=False) or report.found.total() == found:
            return


async def _walk_on(at: Reconciler, report: Report, steps: int) -> None:
    """Some steps of the walk over everything, or as many as bring both its parts to their end."""
    more_posts = more_topics = True
    for step in range(steps):
        topics_turn = step % (WINDOWS_A_PAGE + 1) == WINDOWS_A_PAGE
        if more_topics and (topics_turn or not more_posts):
            more_topics = await _step_topics(at, report)
        elif more_posts:
            more_posts = await _step_posts(at, report)


async def _step_posts(at: Reconciler, report: Report) -> bool:
    before = PostId(await at.state.position(Walk.POSTS) or await at.state.highest_post())
    await _window(at, report, before)
    await at.state.move(Walk.POSTS, max(before - WINDOW, 0))
    return before > WINDOW


async def _step_topics(at: Reconciler, report: Report) -> bool:
    page = await at.state.position(Walk.TOPICS)
    more = await mend_topics(at, report, page, created=True)
    await at.state.move(Walk.TOPICS, page + 1 if more else 0)
    return more


async def _first_window(at: Reconciler, report: Report) -> PostId:
    """Compare the newest posts; the id from which windows go on downwards."""
    page = await report.tried(at.forum.post_page(None))
    highest = await at.state.highest_post()
    if page is None or page.lowest is None or page.highest is None:
        # The newest are all private: some of those below may be new to us.
        return PostId(highest + FRESH_WINDOWS * WINDOW)
    below = max(page.lowest, page.highest - WINDOW + 1) - 1
    await mend_posts(at, report, page, PostId(below), PostId(page.highest + FRESH_WINDOWS * WINDOW))
    return PostId(below)


async def _window(at: Reconciler, report: Report, before: PostId) -> None:
    if before > 0:
        page = await report.tried(at.forum.post_page(before))
        if page is not None:
            await mend_posts(at, report, page, PostId(before - WINDOW), before)
