"""Activation on a real database: what is recorded, what switches the pipeline on, and what becomes of an old one."""

import asyncio
import shutil
from pathlib import Path
from typing import cast

import pytest

from service.answer.activation import State
from service.answer.ports import AnsweringMode
from service.doctor.activation import activation as check
from service.doctor.check import Status
from service.doctor.patient import Patient, utc_now
from service.domain import EvaluationRun, RunKind
from service.errors import Rejected
from service.ingest.share import Unshared, embed_part
from service.jobs import Work
from service.settings import Settings
from service.store.corpus import CorpusStore
from service.store.evaluations import EvaluationStore
from service.store.flags import FlagStore
from service.store.migrate import migrate, migrations_folder
from service.store.pool import Pool, open_pool
from service.telemetry import ACTIVATION
from service.wiring.activation import activated_flags, covered_percent, present_activation, switch_on
from service.wiring.configuration import configuration, embedding_profile
from service.wiring.models import UnprovedModels
from service.worker import run_worker
from tests.fakes.answering import FakeReranker
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import PUBLIC, TOPIC, indexed, post, rows

SETTINGS = Settings()
EMBEDDER = HashEmbedder(embedding_profile(SETTINGS.models))
CHANGED = Settings.model_validate({"retrieval": {"candidates": 30}})
KEPT = Settings.model_validate({"retrieval": {"candidates": 30}, "activation": {"on_change": "keep"}})
NO_WORK = cast("Work", None)
"""No job comes."""


def run_under(settings: Settings, *, passed: bool = True, kind: RunKind = RunKind.EVAL) -> EvaluationRun:
    return EvaluationRun(
        configuration(settings),
        kind,
        passed,
        by="ines",
        reason="topic Hit@5 0.84",
        dataset="garden",
        dataset_sha256="ab" * 32,
        limits={"questions topic Hit@5": ">= 0.8"},
        figures={"questions topic Hit@5": 0.84},
    )


@pytest.fixture
async def runs(pool: Pool) -> EvaluationStore:
    """With a forum of 20 posts, all with a vector."""
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    await corpus.put_posts([indexed(post(n), f"body {n}") for n in range(1, 21)])
    assert await embed_part(corpus, EMBEDDER, Unshared()) == 20
    return EvaluationStore(pool)


async def turn_on(pool: Pool, settings: Settings = SETTINGS, *, override: bool = False) -> None:
    await switch_on(pool, settings, by="noor", reason="good figures", override=override)


async def in_force(pool: Pool, settings: Settings) -> AnsweringMode:
    return (await activated_flags(pool, settings).read()).answering


def migrations_before(number: str, folder: Path) -> Path:
    """The schema of an earlier version, as its migrations."""
    for file in migrations_folder().glob("*.sql"):
        if file.name < number:
            shutil.copy(file, folder)
    return folder


async def test_runs_come_back_as_they_were_recorded(runs: EvaluationStore) -> None:
    first = await runs.record_run(run_under(SETTINGS))
    second = await runs.record_run(run_under(SETTINGS, passed=False, kind=RunKind.SIGNED_OFF))
    third = await runs.record_run(run_under(CHANGED))
    assert [one.id for one in await runs.runs(2)] == [third, second]
    assert (await runs.runs(9))[2].run == run_under(SETTINGS)
    latest = await runs.latest_run(configuration(SETTINGS).sha256)
    assert latest is not None
    assert (latest.id, latest.run.passed, latest.run.kind) == (second, False, RunKind.SIGNED_OFF)
    assert (await runs.latest_passed()) == (await runs.runs(1))[0]
    assert await runs.latest_run("0" * 64) is None
    assert first < second < third


async def test_the_pipeline_goes_on_under_a_passed_run_only(runs: EvaluationStore, pool: Pool) -> None:
    with pytest.raises(Rejected, match="no passed test: record a passed run"):
        await turn_on(pool)
    await runs.record_run(run_under(CHANGED))
    with pytest.raises(Rejected, match=r"changed since the last one: retrieval\.candidates 30 -> 25"):
        await turn_on(pool)
    await runs.record_run(run_under(SETTINGS, passed=False))
    with pytest.raises(Rejected, match=r"the last test of this configuration failed \(evaluated on garden by ines"):
        await turn_on(pool)
    assert not (await FlagStore(pool).read()).posts_pipeline
    assert await FlagStore(pool).changes(1) == []
    await runs.record_run(run_under(SETTINGS))
    await turn_on(pool)
    assert (await FlagStore(pool).read()).signature == configuration(SETTINGS).sha256
    assert (await present_activation(pool, SETTINGS)).state is State.ACTIVE
    (change,) = await FlagStore(pool).changes(9)
    assert (change.changed_by, change.reason) == ("noor", "good figures")
    kept = await rows(pool, "SELECT signature FROM flag_changes")
    assert kept == [(configuration(SETTINGS).sha256,)]


async def test_the_pipeline_goes_on_over_a_covered_index_only(runs: EvaluationStore, pool: Pool) -> None:
    await runs.record_run(run_under(SETTINGS))
    corpus = CorpusStore(pool)
    await corpus.put_posts([indexed(post(21), "body 21")])
    assert await covered_percent(pool, EMBEDDER.profile) == pytest.approx(2000 / 21)
    await turn_on(pool)  # 95.2 %
    await FlagStore(pool).set("posts_pipeline", "off", by="noor", reason="")
    await corpus.put_posts([indexed(post(22), "body 22")])
    with pytest.raises(Rejected, match=r"90\.9 % of the posts .* is 95: run `ariane backfill`") as refused:
        await turn_on(pool)
    assert "no passed test" not in str(refused.value)
    await embed_part(corpus, EMBEDDER, Unshared())
    await turn_on(pool)


async def test_an_empty_index_is_not_covered(pool: Pool) -> None:
    await EvaluationStore(pool).record_run(run_under(SETTINGS))
    with pytest.raises(Rejected, match=r"0\.0 % of the posts"):
        await turn_on(pool)


async def test_an_override_needs_nothing_and_is_kept_with_who_and_why(pool: Pool) -> None:
    await turn_on(pool, override=True)
    (kept,) = await EvaluationStore(pool).runs(9)
    assert (kept.run.kind, kept.run.by, kept.run.reason) == (RunKind.OVERRIDE, "noor", "good figures")
    assert kept.run.figures == {"covered_percent": 0.0}
    await FlagStore(pool).set("answering", "on", by="noor", reason="")
    assert await in_force(pool, SETTINGS) is AnsweringMode.ON


async def test_a_change_drops_to_shadow_until_it_is_tested_and_decided(runs: EvaluationStore, pool: Pool) -> None:
    await runs.record_run(run_under(SETTINGS))
    await turn_on(pool)
    await FlagStore(pool).set("answering", "on", by="noor", reason="")
    assert await in_force(pool, SETTINGS) is AnsweringMode.ON
    assert await in_force(pool, CHANGED) is AnsweringMode.SHADOW
    assert await in_force(pool, KEPT) is AnsweringMode.ON
    await runs.record_run(run_under(CHANGED))
    assert await in_force(pool, CHANGED) is AnsweringMode.SHADOW  # tested, and nobody has decided
    await turn_on(pool, CHANGED)
    assert await in_force(pool, CHANGED) is AnsweringMode.ON
    assert await in_force(pool, SETTINGS) is AnsweringMode.SHADOW  # a worker that was left with the old settings
    await runs.record_run(run_under(CHANGED, passed=False, kind=RunKind.SIGNED_OFF))
    assert await in_force(pool, CHANGED) is AnsweringMode.SHADOW
    assert await in_force(pool, KEPT) is AnsweringMode.SHADOW  # kept is what is untested, not what failed


async def test_a_pipeline_that_was_on_before_tests_were_recorded_answers_in_shadow(
    empty_database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await migrate(empty_database_url, folder=migrations_before("0005", tmp_path))
    async with open_pool(empty_database_url) as pool:
        for name in ("answering", "posts_pipeline"):
            await rows(pool, "INSERT INTO flags (name, value, changed_by) VALUES (%s, 'on', 'ines') RETURNING 1", name)
    await migrate(empty_database_url)
    async with open_pool(empty_database_url) as pool:
        for settings in (SETTINGS, KEPT):
            flags = await activated_flags(pool, settings).read()
            assert (flags.answering, flags.posts_pipeline, flags.signature) == (AnsweringMode.SHADOW, True, "")
            assert (await present_activation(pool, settings)).state is State.UNKNOWN
        said = capsys.readouterr()
        assert "under no tested configuration" in said.out + said.err
        await turn_on(pool, override=True)
        assert await in_force(pool, SETTINGS) is AnsweringMode.ON


@pytest.mark.parametrize(
    ("settings", "answering", "status", "said"),
    [
        (SETTINGS, "on", Status.OK, "evaluated on garden by ines"),
        (CHANGED, "on", Status.FAIL, "retrieval.candidates 25 -> 30"),
        (CHANGED, "shadow", Status.WARN, "nothing would be posted"),
        (KEPT, "on", Status.WARN, "answers go on (activation.on_change)"),
    ],
)
async def test_the_doctor_says_what_is_held_back_and_how_to_mend_it(
    runs: EvaluationStore, pool: Pool, settings: Settings, answering: str, status: Status, said: str
) -> None:
    patient = Patient(settings, pool, UnprovedModels(EMBEDDER, FakeReranker()), utc_now)
    made = await check(patient)
    assert (made.status, made.detail) == (Status.WARN, "this configuration was never tested; nothing would be posted")
    await runs.record_run(run_under(SETTINGS))
    await turn_on(pool)
    await FlagStore(pool).set("answering", answering, by="noor", reason="")
    made = await check(patient)
    assert made.status is status
    assert said in made.detail
    assert ("ariane flags set posts_pipeline on" in made.mend) == (status is not Status.OK)


async def test_a_worker_notices_a_change_though_nobody_asks(runs: EvaluationStore, pool: Pool) -> None:
    await runs.record_run(run_under(SETTINGS))
    await turn_on(pool)
    settings = Settings.model_validate({"worker": {"metrics_port": 0, "sweep_seconds": 0.1}})
    stop = asyncio.Event()
    watched = activated_flags(pool, SETTINGS)
    worker = asyncio.create_task(run_worker(settings, pool, NO_WORK, stop=stop, watch=[watched.read]))
    try:
        await until_shown(State.ACTIVE)
        await runs.record_run(run_under(SETTINGS, passed=False, kind=RunKind.SIGNED_OFF))
        await until_shown(State.FAILED)
    finally:
        stop.set()
        await worker


async def until_shown(state: State) -> None:
    async with asyncio.timeout(20):
        while not ACTIVATION.labels(state)._value.get():
            await asyncio.sleep(0.05)
