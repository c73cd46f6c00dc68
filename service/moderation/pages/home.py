"""The first page: whether Ariane works, and what it did today."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.answer.activation import held, told
from service.answer.ports import AnsweringMode
from service.moderation.access import Moderator
from service.moderation.desk import Here
from service.moderation.layout import page, words_of
from service.moderation.plots import shares
from service.moderation.questions import SHADOWED, outcome_series
from service.moderation.readiness import readiness
from service.settings import WorkerSettings
from service.store.corpus import CorpusStore
from service.store.evaluations import EvaluationStore
from service.store.figures import FigureStore
from service.store.flags import FlagStore
from service.store.health import HealthStore
from service.store.parts import PartStore

router = APIRouter()


@router.get("/")
async def home(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    words, now = words_of(request, here.settings.forum.language), here.clock()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    figures, health = FigureStore(here.pool, admin=me.person.admin), HealthStore(here.pool)
    census = await CorpusStore(here.pool).census(here.models.embedder())
    parts = await PartStore(here.pool).latest(within_seconds=known_seconds(here.settings.worker))
    found = await figures.outcomes(midnight)
    series = outcome_series(words, found, [f"{midnight:%Y-%m-%d}"])
    flags, activated = await FlagStore(here.pool).read(), await here.switches.activation()
    tests = await EvaluationStore(here.pool).runs(1)
    answering_on = flags.answering is AnsweringMode.ON
    return page(
        request,
        "home.html",
        title="home.title",
        cells=readiness(parts, census, here.settings.models),
        forum_reads=parts["forum"].works if "forum" in parts else None,
        beat_seconds=await health.last_beat_seconds(),
        waiting_seconds=await health.oldest_waiting_seconds(),
        failed_jobs=sum((await health.failed_jobs()).values()),
        newest_delivery=await health.newest_delivery(),
        flags=flags,
        ungated=answering_on and not flags.input_gate,
        held_back=answering_on and held(activated, here.settings.activation.on_change),
        census=census,
        embedded=census.indexed - census.left_to_embed - census.unembeddable,
        asked=sum(one.count for one in found),
        shadowed=sum(one.count for one in found if one.word == SHADOWED),
        series=series,
        today=shares(series),
        reconciled=await figures.reconciled(),
        reconciles=here.settings.reconcile.requests_per_minute > 0,
        test=tests[0] if tests else None,
        in_use=bool(tests and activated.own and activated.own.id == tests[0].id),
        activation=activated,
        told=told(activated),
    )


def known_seconds(settings: WorkerSettings) -> float:
    """For how long what a worker said of its parts counts: two of its rounds may be missed."""
    return max(settings.stalled_after_seconds, 3 * settings.sweep_seconds)
