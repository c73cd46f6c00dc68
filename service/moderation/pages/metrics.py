"""The plots that people look at, drawn from the traces: questions, zones, times, scores, modes and fallbacks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.domain import Mode, Zone
from service.moderation.access import Moderator
from service.moderation.charts import STAGES
from service.moderation.desk import Here
from service.moderation.layout import page, words_of
from service.moderation.plots import FILLS, Plot, Series, histogram, rows, stacked
from service.moderation.questions import outcome_series
from service.moderation.wording import Words
from service.store.figures import MAX_TRACES, DayCount, FigureStore, StageTimes

DAYS = 30
RECENT_DAYS = 7
"""Of the plots whose traces have to be unpacked."""
NAMED_DAY = 7
LOGITS = tuple(range(-12, 13))
"""Edges of the histogram's columns; what lies beyond counts in the outermost."""
_ZONE_FILLS = {Zone.NORMAL: "good", Zone.WEAK: "warn", Zone.ABSTAIN: "bad"}
_MODE_FILLS = {Mode.RERANKED: "good", Mode.RERANKER_DOWN: "warn", Mode.KEYWORD: "cool", Mode.LEGACY: "edge"}
router = APIRouter(prefix="/metrics")


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot, its series for the legend, and the same numbers as a table: its heads and lines."""

    key: str
    plot: Plot
    series: Sequence[Series]
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]

    @property
    def empty(self) -> bool:
        return not self.plot.bars


@router.get("")
async def metrics(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    words, now = words_of(request, here.settings.forum.language), here.clock()
    figures, days = FigureStore(here.pool, admin=me.person.admin), last_days(now)
    since = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)
    recent = now - timedelta(days=RECENT_DAYS)
    zones, modes = await figures.zones(since), await figures.modes(since)
    profile = here.models.reranker()
    return page(
        request,
        "metrics.html",
        title="metrics.title",
        recent_days=RECENT_DAYS,
        most=MAX_TRACES,
        figures=[
            _daily(words, "outcomes", days, outcome_series(words, await figures.outcomes(since), days)),
            _daily(words, "zones", days, _series(words, "metrics.zone", zones, days, _ZONE_FILLS)),
            _times(words, await figures.times(recent)),
            _logits(words, await figures.top_logits(recent), (profile.weak, profile.normal)),
            _daily(words, "modes", days, _series(words, "metrics.mode", modes, days, _MODE_FILLS)),
            _daily(words, "fallbacks", days, _fallbacks(words, await figures.fallbacks(since), days)),
        ],
    )


def last_days(now: datetime) -> list[str]:
    """The last DAYS days in UTC, today last, as "2026-11-30"."""
    return [f"{now - timedelta(days=ago):%Y-%m-%d}" for ago in range(DAYS - 1, -1, -1)]


def _series(
    words: Words, key: str, found: Iterable[DayCount], days: Sequence[str], fills: "dict[Zone, str] | dict[Mode, str]"
) -> list[Series]:
    counts = _counted(found)
    return [
        Series(words.known(key, word), fill, [counts[word.value, day] for day in days]) for word, fill in fills.items()
    ]


def _fallbacks(words: Words, found: Sequence[DayCount], days: Sequence[str]) -> list[Series]:
    counts = _counted(found)
    notes = sorted({one.word for one in found})
    return [
        Series(words.known("metrics.note", note), FILLS[at % len(FILLS)], [counts[note, day] for day in days])
        for at, note in enumerate(notes)
    ]


def _counted(found: Iterable[DayCount]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        counts[one.word, one.day] += one.count
    return counts


def _daily(words: Words, key: str, days: Sequence[str], series: Sequence[Series]) -> Figure:
    return Figure(
        key,
        stacked([day[5:] for day in days], series, every=NAMED_DAY),
        series,
        [words("metrics.day"), *(one.name for one in series)],
        [[day, *(words.number(one.values[at]) for one in series)] for at, day in enumerate(days)],
    )


def _times(words: Words, found: Sequence[StageTimes]) -> Figure:
    place = {stage: at for at, stage in enumerate(STAGES)}
    ordered = sorted(found, key=lambda one: (place.get(one.stage, len(place)), one.stage))
    names = [words.known("answers.stage", one.stage) for one in ordered]
    series = [
        Series(words("metrics.p95"), "warn", [one.p95_ms for one in ordered]),
        Series(words("metrics.p50"), "accent", [one.p50_ms for one in ordered]),
    ]
    return Figure(
        "times",
        rows(names, series, unit="ms"),
        series,
        [words("metrics.stage"), words("metrics.p50_ms"), words("metrics.p95_ms"), words("metrics.questions")],
        [
            [name, words.number(one.p50_ms, 1), words.number(one.p95_ms, 1), words.number(one.questions)]
            for name, one in zip(names, ordered, strict=True)
        ],
    )


def _logits(words: Words, found: Sequence[float], borders: tuple[float, float]) -> Figure:
    columns = len(LOGITS) - 1
    places = Counter(min(columns - 1, max(0, int(top - LOGITS[0]))) for top in found)
    counts = [places[at] for at in range(columns)]
    weak, normal = borders
    named = [(weak, words("metrics.zone_weak")), (normal, words("metrics.zone_normal"))]
    return Figure(
        "logits",
        histogram(LOGITS, counts, borders=named, name=words("metrics.questions")),
        [],
        [words("metrics.logit"), words("metrics.questions")],
        [
            [f"{words.number(LOGITS[at])} – {words.number(LOGITS[at + 1])}", words.number(count)]
            for at, count in enumerate(counts)
            if count
        ],
    )
