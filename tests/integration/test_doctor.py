"""The doctor on a real database: each fault provoked, each told with its mend; the command and its status."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo

from service.__main__ import ariane
from service.doctor import clock, database, deliveries, flags, index, proofs, queue
from service.doctor.check import Finding, Status, examine
from service.doctor.checks import CHECKS
from service.doctor.patient import NotExamined, Patient, open_patient, utc_now
from service.domain import EmbeddingProfile, IndexKind
from service.errors import ArianeError, Misconfigured, Transient
from service.ingest.share import Unshared, embed_part
from service.proof import prove
from service.settings import Settings
from service.store.corpus import CorpusStore
from service.store.flags import FlagStore
from service.store.pool import Pool
from service.store.profiles import ProfileStore
from service.store.references import ReferenceStore
from service.wiring.models import UnprovedModels
from tests.fakes.answering import FakeReranker
from tests.fakes.embedder import HashEmbedder
from tests.fakes.model_server import NAN_WORD
from tests.fakes.serving import Stage, refusing_address, served
from tests.integration.store_data import PUBLIC, TOPIC, indexed, post
from tests.simulated import KEY, Clock, simulator, tiny_forum
from tests.switching import switch_on

PROFILE = EmbeddingProfile("toy", 100, 1, dimensions=16, window_tokens=512)
NAME = PROFILE.name
SECRET = "long-enough-secret"


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(PROFILE)


@pytest.fixture
def patient(pool: Pool, embedder: HashEmbedder) -> Patient:
    return Patient(Settings(), pool, UnprovedModels(embedder, FakeReranker()), utc_now)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(post(n), f"body {n}") for n in range(1, 4)])
    return store


async def run(pool: Pool, *statements: str) -> None:
    async with pool.connection() as conn:
        for statement in statements:
            await conn.execute(statement.encode())


def told(made: Finding) -> tuple[Status, str]:
    return made.status, made.detail


async def test_the_database_tells_its_versions(patient: Patient) -> None:
    made = await database.database(patient)
    assert made.status is Status.OK
    assert made.detail.startswith("PostgreSQL 18")
    assert (await database.schema(patient)).status is Status.OK


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM schema_migrations WHERE name LIKE '0004%'", "lacks 0004_references"),
        ("INSERT INTO schema_migrations VALUES ('9999_x.sql', '')", "newer than this program"),
        ("UPDATE schema_migrations SET sha256 = 'x' WHERE name LIKE '0001%'", "was edited after it was applied"),
        ("DROP TABLE schema_migrations", "run `ariane migrate`"),
    ],
)
async def test_another_schema_fails(patient: Patient, pool: Pool, statement: str, said: str) -> None:
    await run(pool, statement)
    with pytest.raises(Misconfigured, match=said):
        await database.schema(patient)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"port": 1}, Transient),
        ({"dbname": "no_such_database"}, Misconfigured),
        ({"host": "192.0.2.1", "connect_timeout": 2}, Transient),
    ],
)
async def test_a_database_that_does_not_open_is_part_of_what_is_found(
    database_url: str, changes: dict[str, Any], error: type[ArianeError]
) -> None:
    settings = Settings.model_validate(
        {"database": {"url": make_conninfo(database_url, **changes), "connect_timeout_seconds": 2}}
    )
    async with open_patient(settings) as opened:
        assert isinstance(opened.database, error)
        with pytest.raises(NotExamined):
            await queue.worker(opened)
        with pytest.raises(error):
            await database.database(opened)


async def test_an_empty_database_says_migrate(empty_database_url: str) -> None:
    async with open_patient(Settings.model_validate({"database": {"url": empty_database_url}})) as opened:
        assert "ariane migrate" in str(opened.database)


async def test_a_worker_is_alive_silent_or_not_there(patient: Patient, pool: Pool) -> None:
    assert told(await queue.worker(patient)) == (Status.FAIL, "no worker is running")
    await run(pool, "INSERT INTO procrastinate_workers DEFAULT VALUES")
    assert (await queue.worker(patient)).status is Status.OK
    await run(pool, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '90 seconds'")
    assert told(await queue.worker(patient)) == (Status.FAIL, "a worker was heard of 90 s ago")


JOB = "INSERT INTO procrastinate_jobs (queue_name, task_name, status, scheduled_at) VALUES ('index', 'index_post', "


async def test_jobs_that_wait_for_long_or_were_given_up(patient: Patient, pool: Pool) -> None:
    assert told(await queue.queue(patient)) == (Status.OK, "no job waits")
    await run(pool, JOB + "'todo', now() + interval '1 hour')")
    assert told(await queue.queue(patient)) == (Status.OK, "no job waits")
    await run(pool, JOB + "'todo', NULL)")
    assert told(await queue.queue(patient)) == (Status.OK, "the oldest job has waited for 0 s")
    await run(pool, "UPDATE procrastinate_events SET at = now() - interval '1200 seconds'")
    assert told(await queue.queue(patient)) == (Status.WARN, "the oldest job has waited for 1200 s")
    assert (await queue.failed_jobs(patient)).status is Status.OK
    await run(pool, JOB + "'failed', NULL)", JOB + "'failed', NULL)")
    assert told(await queue.failed_jobs(patient)) == (Status.WARN, "given up in the last 72 h: 2 index_post")


async def test_the_index_is_empty_waiting_or_complete(patient: Patient, pool: Pool, embedder: HashEmbedder) -> None:
    assert told(await index.index(patient)) == (Status.WARN, "the index is empty")
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    await corpus.put_posts([indexed(post(1), "good"), indexed(post(2), NAN_WORD)])
    assert told(await index.index(patient)) == (Status.WARN, "0 of 2 posts have a vector, 2 wait for one")
    await embed_part(corpus, embedder, Unshared())
    assert told(await index.index(patient)) == (Status.OK, "1 of 2 posts have a vector")
    made = await index.quarantine(patient)
    assert made.status is Status.WARN
    assert "post 102: failed to encode response: NaN" in made.detail
    assert f"ariane profiles activate {NAME}" in made.mend


async def test_the_active_profile_is_the_embedders(
    patient: Patient, pool: Pool, corpus: CorpusStore, embedder: HashEmbedder
) -> None:
    assert told(await index.profile(patient)) == (Status.OK, f"{NAME} has no vector yet")
    await embed_part(corpus, embedder, Unshared())
    assert (await index.profile(patient)).status is Status.OK
    await ProfileStore(pool).activate(NAME)
    assert told(await index.profile(patient)) == (Status.OK, f"{NAME} is active, searched exact")
    hnsw = replace(PROFILE, index_kind=IndexKind.HNSW_HALFVEC)
    await ProfileStore(pool).ensure_profile(hnsw)
    assert told(await index.profile(patient)) == (Status.WARN, f"the hnsw_halfvec index of {NAME} is not built")
    other = replace(patient, models=UnprovedModels(HashEmbedder(replace(PROFILE, version=2)), FakeReranker()))
    made = await index.profile(other)
    assert told(made) == (Status.FAIL, f"{NAME} is active, but the embedder's is toy/100.2")
    assert "ariane profiles activate toy/100.2" in made.mend


async def test_what_is_examined_is_what_answers(
    patient: Patient, pool: Pool, corpus: CorpusStore, embedder: HashEmbedder
) -> None:
    other = HashEmbedder(replace(PROFILE, version=2))
    two = replace(patient, models=UnprovedModels(embedder, FakeReranker(), other=other))
    await embed_part(corpus, other, Unshared())
    assert told(await index.profile(two)) == (Status.OK, f"{NAME} has no vector yet")
    assert (await index.index(two)).status is Status.WARN
    await ProfileStore(pool).activate("toy/100.2")
    assert told(await index.profile(two)) == (Status.OK, "toy/100.2 is active, searched exact")
    assert (await index.index(two)).status is Status.OK
    await prove(other, ReferenceStore(pool))
    assert (await proofs.embedder_proof(two)).status is Status.OK
    other.model = "else"
    assert (await proofs.embedder_proof(two)).status is Status.FAIL


async def test_the_embedders_proof(patient: Patient, pool: Pool, corpus: CorpusStore, embedder: HashEmbedder) -> None:
    assert told(await proofs.embedder_proof(patient)) == (Status.WARN, "no vector is stored yet")
    await prove(embedder, ReferenceStore(pool))
    await embed_part(corpus, embedder, Unshared())
    assert (await proofs.embedder_proof(patient)).status is Status.OK
    embedder.model = "other"
    made = await proofs.embedder_proof(patient)
    assert made.status is Status.FAIL
    assert made.detail.startswith("another model: lowest cosine")
    embedder.down = Transient("silent")
    assert told(await proofs.embedder_proof(patient)) == (Status.FAIL, "silent")
    await run(pool, "DELETE FROM embedding_references", "UPDATE topics SET title = 'New'")
    embedder.down = None
    assert "nothing proves" in (await proofs.embedder_proof(patient)).detail


@pytest.fixture
def base_url(tmp_path: Path) -> Iterator[str]:
    stage = Stage()
    stage.on = simulator(tiny_forum(tmp_path), Clock())
    with served(stage) as url:
        yield url


INBOX = (
    "INSERT INTO inbox (content_key, instance, event, event_id, waiting, received_at)"
    " VALUES ('x', 'f', 'post_created', '1', '{}', %s)"
)


async def test_a_silent_webhook_is_noticed_only_while_the_forum_moves(
    patient: Patient, pool: Pool, base_url: str
) -> None:
    """The tiny forum's newest public post is of 2025-01-03 08:00."""
    on_forum = replace(patient, settings=Settings.model_validate({"forum": {"base_url": base_url}}))
    made = await deliveries.deliveries(on_forum)
    assert told(made) == (Status.WARN, "none in the last 30 days, and the forum has posts")
    assert "Ping" in made.mend
    for received, status in (("2025-01-03 07:00+00", Status.WARN), ("2025-01-03 09:00+00", Status.OK)):
        await run(pool, "DELETE FROM inbox", INBOX.replace("%s", f"'{received}'"))
        assert (await deliveries.deliveries(on_forum)).status is status
    await run(pool, "DELETE FROM inbox", INBOX.replace("%s", "'2025-01-02 12:00+00'"))
    near = Clock(datetime(2025, 1, 3, 10, tzinfo=UTC))
    assert (await deliveries.deliveries(replace(on_forum, now=near))).status is Status.OK  # silent for 22 h only
    gone = replace(patient, settings=Settings.model_validate({"forum": {"base_url": refusing_address()}}))
    with pytest.raises(NotExamined, match="the forum"):
        await deliveries.deliveries(gone)


async def test_a_process_without_the_secret_trusts_a_delivery_that_another_one_verified(
    patient: Patient, pool: Pool
) -> None:
    """A worker has no secret by design; without any verified delivery nobody seems to have it."""
    made = await deliveries.secret(patient)
    assert told(made) == (Status.FAIL, "webhook.secrets is empty: the web process doesn't start")
    assert "ARIANE_WEBHOOK__SECRETS" in made.mend
    await run(pool, INBOX.replace("%s", "'2025-01-03 07:00+00'"))
    made = await deliveries.secret(patient)
    assert told(made) == (
        Status.OK,
        "none here: another process has it, and verified a delivery at 2025-01-03 07:00 UTC",
    )
    here = replace(patient, settings=Settings.model_validate({"webhook": {"secrets": [SECRET]}}))
    assert told(await deliveries.secret(here)) == (Status.OK, "one secret is set")


async def test_the_databases_clock_is_compared_with_ours(patient: Patient) -> None:
    settings = Settings.model_validate({"forum": {"base_url": refusing_address()}})
    for minutes, status in ((0, Status.OK), (1, Status.WARN), (-10, Status.FAIL)):
        shifted = replace(patient, settings=settings, now=Clock(utc_now() + timedelta(minutes=minutes)))
        assert (await clock.clock(shifted)).status is status


@pytest.mark.parametrize(
    ("answering", "pipeline", "status", "said"),
    [
        ("off", "off", Status.WARN, "nobody is answered"),
        ("on", "off", Status.WARN, "the legacy path answers"),
        ("shadow", "on", Status.OK, "not posted"),
        ("on", "on", Status.OK, "answering on"),
    ],
)
async def test_switches_that_let_nothing_through(
    patient: Patient, pool: Pool, answering: str, pipeline: str, status: Status, said: str
) -> None:
    if pipeline == "on":
        await switch_on(pool, patient.settings, answering=answering)
    else:
        await FlagStore(pool).set("answering", answering, by="test", reason="test")
    made = await flags.flags(patient)
    assert made.status is status
    assert said in made.detail


async def test_a_good_installation_has_nothing_to_mend(
    patient: Patient, pool: Pool, corpus: CorpusStore, embedder: HashEmbedder, base_url: str
) -> None:
    settings = Settings.model_validate(
        {
            "forum": {"base_url": base_url, "api_key": KEY},
            "webhook": {"secrets": [SECRET]},
            "database": {"url": "x"},
            "moderation": {"connect_secret": SECRET},
        }
    )
    await prove(embedder, ReferenceStore(pool))
    await embed_part(corpus, embedder, Unshared())
    await run(pool, "INSERT INTO procrastinate_workers DEFAULT VALUES", INBOX.replace("%s", "now()"))
    await switch_on(pool, settings)
    checks = await examine(replace(patient, settings=settings), CHECKS)
    assert [one for one in checks if one.status is not Status.OK] == []


async def test_examining_changes_nothing(patient: Patient, pool: Pool, corpus: CorpusStore) -> None:
    await examine(patient, CHECKS)
    async with pool.connection() as conn:
        for table in (b"embedding_profiles", b"embedding_references", b"embeddings", b"procrastinate_jobs"):
            assert (await conn.execute(b"SELECT FROM " + table)).rowcount == 0


@pytest.mark.parametrize("machine", [True, False])
def test_the_command_tells_every_check_and_its_status(
    database_url: str, base_url: str, machine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARIANE_DATABASE__URL", database_url)
    monkeypatch.setenv("ARIANE_FORUM__BASE_URL", base_url)
    result = CliRunner().invoke(ariane, ["doctor", *(["--json"] if machine else [])], standalone_mode=False)
    assert result.exception is None, result.output
    assert result.return_value == 1  # no key, no secret, no worker
    if machine:
        value = json.loads(result.stdout)
        assert [one["name"] for one in value["checks"]] == [one.name for one in CHECKS]
        assert {one["name"] for one in value["checks"] if one["status"] == "fail"} == {
            "worker",
            "key",
            "webhook secret",
        }
    else:
        assert result.stdout.splitlines()[-1].startswith(f"3 of {len(CHECKS)} checks failed (worker, key, webhook")
