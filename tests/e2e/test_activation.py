"""A change of what was tested, as the forum sees it: answers stop coming until somebody has tested and decided."""

from dataclasses import replace
from pathlib import Path

from service.domain import EvaluationRun, Mode, RunKind
from service.settings import Settings
from service.store.evaluations import EvaluationStore
from service.store.flags import FlagStore
from service.wiring.activation import switch_on
from service.wiring.configuration import configuration
from service.wiring.services import open_services
from tests.e2e.loop import QUESTION, Loop, whole_loop


async def outcome(loop: Loop, words: str) -> tuple[str, int]:
    """What became of a question, and how many replies it has."""
    asked = await loop.say(f"{QUESTION} {words}")
    await loop.drain()
    trace = await loop.trace(asked["id"])
    assert trace is not None
    return trace.outcome, len(loop.replies(asked["post_number"]))


async def test_a_worker_with_changed_settings_posts_nothing_until_they_are_tested_and_switched_on(
    database_url: str, tmp_path: Path
) -> None:
    async with whole_loop(database_url, tmp_path) as loop:
        assert await outcome(loop, "First.") == ("posted", 1)
        changed = loop.settings.model_copy(
            update={"retrieval": loop.settings.retrieval.model_copy(update={"candidates": 10})}
        )
        async with open_services(changed, "test") as services:
            later = replace(loop, settings=changed, services=services)
            assert await outcome(later, "Second.") == ("shadowed", 0)
            await EvaluationStore(services.pool).record_run(passed(changed))
            assert await outcome(later, "Third.") == ("shadowed", 0)
            await switch_on(services.pool, changed, by="ines", reason="the figures are good")
            assert await outcome(later, "Fourth.") == ("posted", 1)
        assert await outcome(loop, "Fifth.") == ("shadowed", 0)  # a worker that was left with the old settings


async def test_with_the_pipeline_off_the_legacy_path_answers_under_a_tested_configuration(
    database_url: str, tmp_path: Path
) -> None:
    async with whole_loop(database_url, tmp_path) as loop:
        flags, runs = FlagStore(loop.services.pool), EvaluationStore(loop.services.pool)
        await flags.set("posts_pipeline", "off", by="ines", reason="something is wrong with it")
        asked = await loop.say(QUESTION)
        await loop.drain()
        stored = await loop.trace(asked["id"])
        assert stored is not None
        assert stored.outcome == "posted"
        assert (stored.trace.mode, stored.trace.notes) == (Mode.LEGACY, ["posts_pipeline_off"])
        assert [source.topic_id for source in stored.trace.sources][:1] == [10]
        await runs.record_run(replace(passed(loop.settings), passed=False))
        assert await outcome(loop, "Again.") == ("shadowed", 0)


def passed(settings: Settings) -> EvaluationRun:
    return EvaluationRun(configuration(settings), RunKind.SIGNED_OFF, True, by="ines", reason="20 questions tried")
