"""The plots: what they count, and the same numbers as a table."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from service.domain import Candidate, Mode, Posted, PostId, Result, Skipped, SkipReason, TopicId, Trace, Zone
from service.moderation.pages.metrics import last_days
from service.store.figures import FigureStore
from service.store.pool import Pool
from tests.integration.answers_kit import open_places
from tests.integration.page_data import happened
from tests.integration.store_data import NOON, PRIVATE
from tests.moderators import ADMIN, Pages, open_pages, visible


@pytest.fixture
async def pages(pool: Pool) -> AsyncIterator[Pages]:
    await open_places(pool)
    async with open_pages(pool) as opened:
        await opened.sign_in()
        yield opened


def trace(
    logit: float, *, zone: Zone = Zone.NORMAL, mode: Mode = Mode.RERANKED, ms: float = 10, note: str = ""
) -> Trace:
    found = [
        Candidate(PostId(n), TopicId(n), 1, "A title", "a-title", "", "ines", NOON, logit=value)
        for n, value in enumerate((logit - 3, logit, None))
    ]
    times = {"retrieve": ms, "generate": 10 * ms}
    return Trace(zone=zone, mode=mode, candidates=found, timings_ms=times, notes=[note] if note else [])


def figure(html: str, key: str) -> str:
    return html[html.index(f'id="figure-{key}"') :].partition("</section>")[0]


def lines(html: str, key: str) -> dict[str, list[str]]:
    """The lines of a plot's table by their first cell."""
    found = re.findall(r'<th scope="row">([^<]*)</th>((?:<td class="number">[^<]*</td>)*)', figure(html, key))
    return {head: re.findall(r">([^<]*)</td>", cells) for head, cells in found}


async def test_without_questions_there_is_nothing_to_draw(pages: Pages) -> None:
    html = await pages.text("/metrics")
    assert html.count("Nothing to draw yet.") == 6
    assert "<rect" not in html
    assert visible(await pages.text("/metrics", lang="fr")).count("Rien à dessiner encore.") == 6


async def test_questions_are_counted_by_day_and_by_what_became_of_them(pages: Pages, pool: Pool) -> None:
    now = pages.clock()
    await happened(pool, 1, Posted(Result.ANSWERED, PostId(900)), now, trace(2.5, ms=10))
    await happened(pool, 2, Posted(Result.ANSWERED, PostId(901)), now, trace(-1.5, zone=Zone.WEAK, ms=20))
    await happened(pool, 3, Posted(Result.ABSTAINED, PostId(902)), now, trace(-99, zone=Zone.ABSTAIN, ms=30))
    keyword = trace(0, mode=Mode.KEYWORD, zone=Zone.WEAK, note="embedder_down")
    await happened(pool, 4, Posted(Result.ANSWERED, PostId(903)), now - timedelta(days=3), keyword)
    await happened(pool, 5, Skipped(SkipReason.MEMBER_LIMIT), now - timedelta(days=29))
    await happened(pool, 6, Skipped(SkipReason.MEMBER_LIMIT), now - timedelta(days=31))
    await happened(pool, 7, Posted(Result.GATED, PostId(904)), now, Trace(), archetype="private_message")
    staff = {"topic_id": TopicId(20), "category_id": PRIVATE.id}
    await happened(pool, 8, Posted(Result.ANSWERED, PostId(905)), now, trace(9, ms=9_000, note="model_down"), **staff)
    html = await pages.text("/metrics")
    days = last_days(now)
    outcomes = lines(html, "outcomes")
    assert list(outcomes) == days
    assert outcomes[days[-1]] == ["2", "1", "0", "0", "0", "0"]
    assert outcomes[days[-4]] == ["1", "0", "0", "0", "0", "0"]
    assert outcomes[days[0]] == ["0", "0", "0", "0", "0", "1"]
    assert lines(html, "zones")[days[-1]] == ["1", "1", "1"]
    assert lines(html, "modes")[days[-4]] == ["0", "0", "1", "0"]
    assert lines(html, "fallbacks")[days[-4]] == ["1"]
    assert "without the embedder" in figure(html, "fallbacks")
    assert lines(html, "times") == {"search": ["15.0", "28.5", "4"], "draft": ["150.0", "285.0", "4"]}
    assert lines(html, "logits") == {"−12 – −11": ["1"], "−2 – −1": ["1"], "2 – 3": ["1"]}
    await pages.sign_in(ADMIN)
    html = await pages.text("/metrics")
    assert lines(html, "outcomes")[days[-1]] == ["3", "1", "1", "0", "0", "0"]
    assert lines(html, "logits")["9 – 10"] == ["1"]
    assert "without the language model at one step" in figure(html, "fallbacks")


async def test_a_drawing_has_axes_words_and_bars_within_it(pages: Pages, pool: Pool) -> None:
    for number in range(3):
        await happened(pool, number, Posted(Result.ANSWERED, PostId(900 + number)), pages.clock(), trace(2.5))
    html = await pages.text("/metrics")
    drawings = re.findall(
        r'<svg class="plot" viewBox="0 0 ([\d.]+) ([\d.]+)" role="img" aria-label="[^"]+">(.*?)</svg>', html, re.S
    )
    assert len(drawings) == 5
    for width, height, inside in drawings:
        assert "<text" in inside
        bars = re.findall(
            r'<rect class="fill-\w+" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', inside
        )
        assert bars
        assert inside.count("<rect") == len(bars) == inside.count("<title>")
        for x, y, wide, high in bars:
            assert float(x) + float(wide) <= float(width)
            assert float(y) + float(high) <= float(height)
    assert "answered: 3" in figure(html, "outcomes")
    assert figure(html, "logits").count('class="border"') == 2
    assert html.count("The same as a table") == 5


async def test_figures_read_the_newest_traces_only_where_they_unpack_them(pool: Pool) -> None:
    await happened(pool, 1, Posted(Result.ANSWERED, PostId(900)), NOON, trace(2.5))
    await open_places(pool)
    figures = FigureStore(pool, admin=False)
    assert await figures.top_logits(NOON) == [2.5]
    assert await figures.top_logits(NOON + timedelta(seconds=1)) == []
    assert await figures.times(NOON + timedelta(seconds=1)) == []
