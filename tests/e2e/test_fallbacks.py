"""The fallback table held to its word: a real question under every fault of every server, over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from service.domain import Mode, Zone
from service.fallbacks import FALLBACKS
from service.fallbacks.row import Fallback, Fault, Part
from service.settings.models import WhenDown
from service.simulator.model import Post
from tests.conftest import new_database
from tests.e2e.fallback_kit import SLACK_SECONDS, Log, gave_up, grown, part_up, unhandled, values
from tests.e2e.model_loop import BREAKER_OPEN_SECONDS, REFUSALS, ModelLoop, drips, hangs, model_loop, until
from tests.fakes.forum import GARBAGE, truncates
from tests.fakes.model_server import hangs_up

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(60)]

OFF_TOPIC = "@ariane which wine suits oysters?"
SERVER_PARTS = (Part.EMBEDDER, Part.RERANKER, Part.MODEL, Part.FORUM)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    request: pytest.FixtureRequest, server_url: str, template_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ModelLoop]:
    """The loop with this kind of embedder (and way to go without the model); every test leaves it healthy."""
    embedder, _, when_down = request.param.partition(", ")
    folder = tmp_path_factory.mktemp("loop")
    with new_database(server_url) as url:
        answerer = {"when_down": when_down or WhenDown.EXTRACTIVE}
        async with model_loop(url, folder, embedder=embedder, answerer=answerer) as it:
            yield it


async def break_down(it: ModelLoop, row: Fallback, embedder: str) -> None:
    """Let the part fail as the row says, until `mend`."""
    if row.fault is Fault.REFUSES:
        await it.doors[row.part].shut()
        return
    words = {"embedder": embedder, "reranker": "tei", "model": "ollama", "forum": "forum"}[row.part]
    always = {
        Fault.HANGS: hangs,
        Fault.TOO_MANY: REFUSALS[words](429),
        Fault.ERROR: REFUSALS[words](500),
        Fault.GARBAGE: GARBAGE,
        Fault.DRIPS: drips,
        Fault.DIES: hangs_up,
    }[row.fault]
    if row.part is Part.FORUM:
        it.forum.dies = row.fault is Fault.DIES
        it.forum.always = None if it.forum.dies else always
        return
    server = it.servers[row.part]
    if row.fault is Fault.DIES:  # in the middle of a right answer
        server.faults.append(truncates)
    server.always = always


async def mend(it: ModelLoop, row: Fallback) -> None:
    if row.fault is Fault.REFUSES:
        await it.doors[row.part].open()
    it.forum.always, it.forum.dies, it.forum.dead = None, False, False
    for server in it.servers.values():
        server.always = None
        server.faults.clear()


async def check_healthy(it: ModelLoop, *posts: Post) -> None:
    """Every part is at work again: nothing of the fault is left in the next answer, and each post has its one reply."""
    await it.idle()
    await asyncio.sleep(BREAKER_OPEN_SECONDS)
    post = it.ask()
    await it.answered(post)
    trace = await it.trace(post)
    assert (trace.mode, trace.zone, trace.notes) == (Mode.RERANKED, Zone.NORMAL, [])
    assert trace.drafted_by == it.loop.settings.models.answerer.model
    await it.idle()
    await until(lambda: all(part_up(part) == 1 for part in Part), seconds=5)
    assert it.answers(*posts, post) == [1] * (len(posts) + 1)
    assert max(it.answers(*it.asked)) == 1


def rows(*parts: Part, when_down: WhenDown = WhenDown.EXTRACTIVE) -> pytest.MarkDecorator:
    chosen = [row for row in FALLBACKS if row.part in parts and row.when_down in (None, when_down)]
    return pytest.mark.parametrize("row", chosen, ids=[f"{row.part} {row.fault}" for row in chosen])


@pytest.mark.parametrize("running", ["ollama"], indirect=True)
@rows(*SERVER_PARTS)
async def test_a_question_while_a_server_fails(running: ModelLoop, row: Fallback, log: Log) -> None:
    await ask_under(running, row, log)


@pytest.mark.parametrize("running", ["tei"], indirect=True)
@rows(Part.EMBEDDER)
async def test_a_question_while_the_other_embedder_fails(running: ModelLoop, row: Fallback, log: Log) -> None:
    await ask_under(running, row, log)


@pytest.mark.parametrize("running", ["ollama, sources"], indirect=True)
@rows(Part.MODEL, when_down=WhenDown.SOURCES)
async def test_a_question_while_the_model_fails_and_the_sources_speak(
    running: ModelLoop, row: Fallback, log: Log
) -> None:
    await ask_under(running, row, log)


async def asked_under(it: ModelLoop, row: Fallback) -> tuple[Post, float]:
    """A question under the fault, and how long its reply took; from the fault's end where there is none before."""
    before, took = values(row.counted), None
    try:
        await break_down(it, row, it.loop.settings.models.embedder.kind)
        post = it.ask()
        if row.part is Part.FORUM:
            await grown([one for one in row.counted if "outcomes" not in one.name], before)
            assert it.answers(post) == [1 if row.fault is Fault.DIES else 0]
        else:
            took = await it.answered(post)
        await until(lambda: part_up(row.part) == row.up, seconds=5)
    finally:
        await mend(it, row)
    return post, await it.answered(post) if took is None else took


async def ask_under(it: ModelLoop, row: Fallback, log: Log) -> None:
    if part_up(row.part) != 1:  # the table tells of a part that worked: a model is first proved by a question
        await it.answered(it.ask())
        await until(lambda: part_up(row.part) == 1, seconds=5)
    failed = gave_up()
    before = values(row.counted)
    with unhandled():
        post, took = await asked_under(it, row)
        assert took <= row.within.seconds(it.loop.settings) + SLACK_SECONDS
        await grown(row.counted, before)
        await check_healthy(it, post)
    trace = await it.trace(post)
    assert trace.mode is row.mode
    assert trace.zone is row.best_zone
    assert trace.notes == list(row.notes)
    without = {WhenDown.EXTRACTIVE: "extractive, the model was down", WhenDown.SOURCES: ""}
    assert trace.drafted_by == (without[row.when_down] if row.when_down else it.loop.settings.models.answerer.model)
    assert log.failed() or "`job_failed`" not in row.recorded
    assert log.foreign() == []
    assert gave_up() == failed


@pytest.mark.parametrize("running", ["ollama"], indirect=True)
async def test_without_the_reranker_what_the_forum_does_not_know_stays_unanswered(running: ModelLoop) -> None:
    row = next(row for row in FALLBACKS if row.part is Part.RERANKER)
    await break_down(running, row, "ollama")
    post = running.ask(OFF_TOPIC)
    await running.answered(post)
    trace = await running.trace(post)
    assert (trace.mode, trace.zone, trace.drafted_by) == (Mode.RERANKER_DOWN, Zone.ABSTAIN, "")
    await mend(running, row)
    await check_healthy(running, post)


@pytest.mark.parametrize("running", ["ollama"], indirect=True)
async def test_without_embedder_and_reranker_nothing_is_answered(running: ModelLoop) -> None:
    lost = [next(row for row in FALLBACKS if row.part is part) for part in (Part.EMBEDDER, Part.RERANKER)]
    for row in lost:
        await break_down(running, row, "ollama")
    post = running.ask()
    await running.answered(post)
    trace = await running.trace(post)
    assert (trace.mode, trace.zone) == (Mode.RERANKER_DOWN, Zone.ABSTAIN)
    assert trace.notes == [note for row in lost for note in row.notes]
    for row in lost:
        await mend(running, row)
    await check_healthy(running, post)
