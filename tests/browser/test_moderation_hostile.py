"""Whatever members and moderators wrote: the pages show it as text, hold it on a telephone, and lead nowhere else."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import Page

from service.answer.ports import DeedKind
from service.answer.unanswered import group_unanswered
from service.domain import Category, CategoryId, Posted, PostId, Result, Shadowed, Topic, TopicId
from service.store.alerts import MOVED, flag_citing
from service.store.corpus import CorpusStore
from service.store.deeds import DeedStore, NewDeed
from service.store.flags import FlagStore
from service.store.gate_rules import GateRuleStore
from service.store.pool import Connection, Pool, transaction
from service.store.signals import Signal, SignalStore
from service.store.trials import Asked, TrialResult, TrialStore
from service.store.unanswered import UnansweredStore
from tests.browser.conftest import open_page
from tests.browser.test_moderation import DESK, PHONE, Place, findings, fits, pages_of, sign_in
from tests.e2e.loop import whole_loop
from tests.fakes.answering import FakeEmbedder
from tests.integration.answers_kit import answered, trace
from tests.integration.store_data import NOON, indexed, later, post
from tests.integration.test_moderation_gate import greedy

BAD = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "' onmouseover='document.title=1' \" autofocus onfocus=\"document.title='owned'\" "
    f"javascript:alert(1) {{{{ 7 * 7 }}}} {{x}} %(s)s </textarea></title></svg>\u202e {'x' * 400}"
)
NAME = BAD[:60]


@pytest.fixture
async def place(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async with whole_loop(database_url, tmp_path, answering="off") as loop, pages_of(loop) as root:
        yield Place(loop, root)


async def nothing(conn: Connection, number: int) -> None:
    """No job follows."""


async def bad_things(pool: Pool) -> list[str]:
    """Something hostile in every field that a page shows; the paths that show it, beside the navigation's."""
    corpus, now = CorpusStore(pool), datetime.now(UTC)
    slug = "\"'><b>x?/../..//elsewhere.example/"
    await corpus.put_categories([Category(CategoryId(1), BAD, "garden", None, read_restricted=False)])
    await corpus.put_topics([Topic(TopicId(10), BAD, slug, CategoryId(1), "regular")])
    await corpus.put_posts([indexed(post(3, username=NAME), BAD)])
    of = trace(
        BAD, queries=[BAD, BAD], evidence=BAD, draft=BAD, drafted_by=BAD, first_draft=BAD, checks=[f"failed: {BAD}"]
    )
    of = replace(
        of,
        candidates=[replace(one, title=BAD, slug=slug, body=BAD, username=NAME) for one in of.candidates],
        sources=[replace(one, title=BAD, slug=slug, excerpt=BAD) for one in of.sources],
        notes=[BAD, "gate:generalist:<b>", "embedder_down"],
        removed={BAD: 3},
        timings_ms={**of.timings_ms, BAD: 30.0},
    )
    await answered(pool, post(40), of=of, raw=BAD, at=now)
    await answered(pool, post(41), what=Posted(Result.ANSWERED, PostId(150)), of=of, raw=BAD, at=now)
    await answered(pool, post(42), what=Shadowed(Result.ABSTAINED), of=of, raw=BAD, at=now)
    await answered(pool, post(43), what=Posted(Result.GATED, PostId(151)), of=of, raw=BAD, at=now)
    await SignalStore(pool).happened(Signal.LIKED, PostId(150))
    async with transaction(pool) as conn:
        await flag_citing(conn, [PostId(103)], kind=MOVED)
    for kind in (DeedKind.WRONG, DeedKind.READ):
        await DeedStore(pool).ask(NewDeed(PostId(141), kind, BAD, NAME, None), nothing, now=now)
    await group_unanswered(UnansweredStore(pool, since=NOON), FakeEmbedder())
    for name, value in (("category:1", "off"), (f"group:{'g' * 100}:per_hour", "7")):
        await FlagStore(pool).set(name, value, by=NAME, reason=BAD)
    for rule in (greedy(), greedy() | {"positives": [BAD] * 3, "lookalikes": [f"{BAD} {n}" for n in range(3)]}):
        await GateRuleStore(pool).put(f"{NAME}{len(str(rule))}", json.dumps(rule), by=NAME, user_id=None, reason=BAD)
    trials = TrialStore(pool)
    trial_id = await trials.ask(Asked(BAD, ""), by="boss", now=now, follow=nothing)
    await trials.done(
        trial_id,
        TrialResult("answered", BAD, (1,), gate_on=False, declined=f"generalist:{'x' * 60}", trace=of),
        now=later(1),
    )
    return ["/answers/140", "/answers/141", "/answers/142?done=<b>", f"/try/{trial_id}", "/answers?text=%22%3E<b>"]


async def strangers(page: Page, place: Place) -> list[str]:
    """The page's links that lead neither to the forum nor to another of the pages."""
    homes = (f"{place.root}/", f"{place.root}?", place.loop.room.forum.base_url)
    found: list[str] = await page.evaluate("Array.from(document.links, one => one.href)")
    assert found
    return [one for one in found if not one.startswith(homes)]


@pytest.mark.heavy
@pytest.mark.parametrize("width", [PHONE, DESK])
async def test_what_was_written_is_text_and_nothing_else(place: Place, width: int) -> None:
    paths = await bad_things(place.loop.services.pool)
    complaints: list[str] = []
    async with open_page(width, complaints) as page:
        await sign_in(page, place.root, "boss")
        for path in ("/", "/answers", "/unanswered", "/try", "/gate", "/flags", "/metrics", *paths):
            await page.goto(f"{place.root}{path}")
            await page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            assert await fits(page), path
            assert await page.title() != "owned", path
            assert await page.locator("main script, main img, main iframe, main [onmouseover]").count() == 0, path
            assert await strangers(page, place) == [], path
            assert width == DESK or await findings(page) == [], path  # it looks at what is there, not at how wide
    assert complaints == []
