"""The doctor's checks without a database: the runner, the report, the model servers, the forum and the clocks."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from starlette.types import ASGIApp

from service.doctor import clock, database, deliveries, forum, model_servers, proofs
from service.doctor.check import Check, Examination, Finding, Status, examine, ok
from service.doctor.checks import CHECKS
from service.doctor.patient import NotExamined, Patient, utc_now
from service.doctor.report import as_json, passed, show_checks
from service.domain import EmbeddingProfile, RerankerProfile
from service.errors import ArianeError, Busy, Misconfigured, Transient
from service.inference.references import ReferencePair
from service.settings import Settings
from service.wiring.models import UnprovedModels
from tests.fakes.answering import FakeReranker
from tests.fakes.embedder import HashEmbedder
from tests.fakes.forum import Fault, answer, hangs
from tests.fakes.model_server import FakeServer
from tests.fakes.ollama import FakeOllama
from tests.fakes.openai_chat import FakeOpenAi
from tests.fakes.serving import Stage, refusing_address, served
from tests.fakes.tei import FakeTei
from tests.simulated import KEY, Clock, simulator, tiny_forum

BGE = EmbeddingProfile("bge-m3", 1, 1, dimensions=16, window_tokens=8192)
MODELS = UnprovedModels(HashEmbedder(BGE), FakeReranker(profile=RerankerProfile("org/model", -4, 0, provisional=False)))
GONE = Transient("the database can't be reached: refused")
SECRET = "long-enough-secret"


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


@pytest.fixture(scope="module")
def address(stage: Stage) -> Iterator[str]:
    with served(stage) as url:
        yield url


def patient(models: UnprovedModels | ArianeError = MODELS, /, **settings: Any) -> Patient:
    return Patient(Settings.model_validate(settings), GONE, models, utc_now)


async def found(examination: Examination, who: Patient, seconds: float = 5.0) -> Check:
    [check] = await examine(who, [examination], seconds=seconds)
    return check


def raising(exc: Exception) -> Examination:
    async def find(_: Patient) -> Finding:
        raise exc

    return Examination("it", find, "Mend it.")


@pytest.mark.parametrize(
    ("exc", "status", "detail", "mend"),
    [
        (Misconfigured("bad\n  setting"), Status.FAIL, "bad setting", "Mend it."),
        (Transient("gone"), Status.FAIL, "gone", "Mend it."),
        (NotExamined("it needs the key"), Status.WARN, "not examined: it needs the key", "Mend that first"),
        (KeyError("x"), Status.FAIL, "the check crashed: KeyError: 'x'", "This is a fault of Ariane"),
    ],
)
async def test_no_check_ever_raises(exc: Exception, status: Status, detail: str, mend: str) -> None:
    check = await found(raising(exc), patient())
    assert (check.name, check.status, check.detail) == ("it", status, detail)
    assert check.mend.startswith(mend)


async def test_a_check_that_hangs_is_cut_and_the_others_run_meanwhile() -> None:
    async def slow(_: Patient) -> Finding:
        await asyncio.sleep(60)
        return ok("never")

    async def fast(_: Patient) -> Finding:
        return ok("done")

    checks = await examine(patient(), [Examination("slow", slow, "Wait."), Examination("fast", fast, "")], seconds=0.05)
    assert [asdict(one) for one in checks] == [
        {"name": "slow", "status": "fail", "detail": "no result within 0.05 s", "mend": "Wait."},
        {"name": "fast", "status": "ok", "detail": "done", "mend": ""},
    ]


async def test_with_everything_down_each_check_still_says_something_and_how_to_mend_it() -> None:
    nowhere = refusing_address()
    everything = {
        "forum": {"base_url": nowhere, "api_key": "k"},
        "database": {"url": "postgresql://nowhere/x"},
        "models": {
            "embedder": {"kind": "tei", "url": nowhere},
            "reranker": {"kind": "tei", "url": nowhere},
            "answerer": {"kind": "ollama", "url": nowhere},
        },
    }
    checks = await examine(patient(Misconfigured("no such profile"), **everything), CHECKS)
    assert len({one.name for one in checks}) == len(CHECKS) == len(checks)
    for check in checks:
        assert check.detail
        assert "crashed" not in check.detail, check
        assert (check.status is Status.OK) == (check.mend == ""), check
    failed = {one.name for one in checks if one.status is Status.FAIL}
    assert {"database", "forum", "key", "webhook secret", "embedder", "reranker", "answerer"} <= failed


CHECKED = [
    Check("a", Status.OK, "fine", ""),
    Check("bb", Status.WARN, "so [bold]so[/bold]", "Look."),
    Check("c", Status.FAIL, "bad", "Mend."),
]


def test_the_json_has_exactly_the_promised_fields() -> None:
    value = json.loads(json.dumps(as_json(CHECKED)))
    assert value["ok"] is False
    assert value.keys() == {"ok", "checks"}
    assert value["checks"][1] == {"name": "bb", "status": "warn", "detail": "so [bold]so[/bold]", "mend": "Look."}
    assert passed(CHECKED[:2])


@pytest.mark.parametrize(
    ("count", "verdict"),
    [(1, "all is well"), (2, "nothing failed, 1 warning"), (3, "1 of 3 checks failed (c), 1 warning")],
)
def test_the_text_is_aligned_and_ends_with_a_verdict(count: int, verdict: str) -> None:
    console = Console(width=80, record=True, markup=False, file=StringIO())
    show_checks(CHECKED[:count], console)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[-1] == verdict
    assert lines[0] == (" ✓  a   fine" if count > 1 else " ✓  a  fine")
    if count > 1:
        assert lines[1:3] == [" !  bb  so [bold]so[/bold]", "        → Look."]


async def served_by(fake: ASGIApp, stage: Stage, who: Patient, check: Any) -> Finding:
    stage.on = fake
    made: Finding = await check(who)
    return made


def embedding_by(kind: str, url: str) -> Patient:
    return patient(models={"embedder": {"kind": kind, "url": url}})


async def test_tei_tells_model_batch_and_window(stage: Stage, address: str) -> None:
    who = embedding_by("tei", address)
    made = await served_by(FakeTei(window=8192), stage, who, model_servers.embedder)
    assert made.status is Status.WARN  # it serves "fake/model"
    assert made.detail == "TEI 1.9.3 with fake/model, batches of 32 texts, 8,192 tokens"
    assert "If that is not bge-m3" in made.mend
    made = await served_by(FakeTei(window=512), stage, who, model_servers.embedder)
    assert "the profile's window is 8192 tokens" in made.mend
    who = patient(models={"reranker": {"kind": "tei", "url": address}})
    assert (await served_by(FakeTei(), stage, who, model_servers.reranker)).status is Status.OK


async def test_ollama_tells_context_and_dimensions(stage: Stage, address: str) -> None:
    who = embedding_by("ollama", address)
    made = await served_by(FakeOllama(), stage, who, model_servers.embedder)
    assert made == ok("Ollama has bge-m3, 8,192 tokens of context, 16 dimensions")
    other = FakeOllama(model_info={"bert.context_length": 8192, "bert.embedding_length": 768})
    assert (await served_by(other, stage, who, model_servers.embedder)).status is Status.FAIL
    short = FakeOllama(model_info={"bert.context_length": 512})
    assert "to 512" in (await served_by(short, stage, who, model_servers.embedder)).mend
    with pytest.raises(Misconfigured, match="ollama pull bge-m3"):
        await served_by(FakeOllama(models=()), stage, who, model_servers.embedder)


async def test_the_language_model_must_hold_the_context_that_is_asked_for(stage: Stage, address: str) -> None:
    who = patient(models={"answerer": {"kind": "ollama", "url": address}})
    made = await served_by(FakeOllama(), stage, who, model_servers.answerer)
    assert made.status is Status.OK
    small = FakeOllama(model_info={"qwen3.context_length": 4096})
    made = await served_by(small, stage, who, model_servers.answerer)
    assert (made.status, made.mend) == (Status.WARN, "Lower models.answerer.context_tokens to 4096 or less.")


@pytest.mark.parametrize(("model", "status"), [("qwen3", Status.OK), ("other", Status.WARN)])
async def test_an_openai_compatible_server_lists_its_models(
    stage: Stage, address: str, model: str, status: Status
) -> None:
    who = patient(models={"answerer": {"kind": "openai", "url": address, "model": model, "api_key": "k"}})
    made = await served_by(FakeOpenAi(), stage, who, model_servers.answerer)
    assert made.status is status
    assert made.detail.startswith("an OpenAI-compatible server with qwen3")
    garbage = FakeOpenAi(always=answer(200, {"data": [1, {"id": None}]}))
    assert (await served_by(garbage, stage, who, model_servers.answerer)).status is Status.WARN


FAULTS = {
    "503": answer(503, {"error": "loading"}),
    "401": answer(401, {"error": "who?"}),
    "garbage": answer(200, b"{,"),
    "a list": answer(200, [1]),
    "a page": answer(200, "<html>login</html>"),
    "404": answer(404, "404 page not found"),
    "hangs": hangs,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("kind", ["tei", "ollama", "openai"])
async def test_a_server_that_misbehaves_is_a_failure_with_its_mend(
    stage: Stage, address: str, kind: str, fault: Fault
) -> None:
    role = "embedder" if kind == "tei" else "answerer"
    who = patient(models={role: {"kind": kind, "url": address}})
    stage.on = FakeServer(always=fault)
    [examination] = [one for one in CHECKS if one.name == role]
    check = await found(examination, who, seconds=0.5)
    assert (kind == "openai" and check.status is Status.WARN) or check.status is Status.FAIL
    assert "crashed" not in check.detail
    assert check.mend


async def test_a_model_in_this_process_needs_its_folder(tmp_path: Path) -> None:
    kind = "sentence-transformers"
    assert (await model_servers.embedder(embedding_by(kind, str(tmp_path)))).status is Status.OK
    gone = patient(models={"reranker": {"kind": kind, "url": str(tmp_path / "none")}})
    assert (await model_servers.reranker(gone)).status is Status.FAIL
    assert (await model_servers.reranker(patient())).status is Status.OK
    assert (await model_servers.embedder(patient())).status is Status.OK
    assert (await model_servers.answerer(patient())).status is Status.OK


@pytest.fixture
def base_url(stage: Stage, address: str, tmp_path: Path) -> str:
    stage.on = simulator(tiny_forum(tmp_path), Clock())
    return address


def on_forum(base_url: str, **settings: Any) -> Patient:
    return patient(forum={"base_url": base_url, "api_key": KEY} | settings)


async def test_a_good_forum_key_and_account(base_url: str) -> None:
    who = on_forum(base_url)
    assert (await forum.forum(who)).detail == f"{base_url} shows the public 1 categories"
    assert (await forum.key(who)).detail.startswith("the key reads as ariane")
    assert await forum.account(who) == ok("ariane has trust level 1")


async def test_a_forum_without_public_categories_can_not_be_indexed(stage: Stage, address: str) -> None:
    stage.on = answer(403, {"errors": ["login"], "error_type": "not_logged_in"})
    made = await forum.forum(on_forum(address))
    assert made.status is Status.FAIL
    assert "login_required" in made.mend


async def test_a_refused_key_is_told_from_a_missing_one(base_url: str) -> None:
    assert (await forum.key(on_forum(base_url, api_key=""))).detail.startswith("forum.api_key is not set")
    with pytest.raises(NotExamined):
        await forum.account(on_forum(base_url, api_key=""))
    for check in (forum.key, forum.account):
        with pytest.raises(Misconfigured, match=r"refuses forum\.api_key"):
            await check(on_forum(base_url, api_key="another"))


@pytest.mark.parametrize(
    ("bot", "status"),
    [({"trust_level": 0}, Status.WARN), ({"trust_level": 0, "moderator": True}, Status.OK)],
)
async def test_a_new_account_may_post_two_links_only(
    stage: Stage, address: str, tmp_path: Path, bot: dict[str, Any], status: Status
) -> None:
    stage.on = simulator(tiny_forum(tmp_path, **bot), Clock())
    assert (await forum.account(on_forum(address))).status is status


async def test_an_account_that_is_not_there_is_named(stage: Stage, address: str) -> None:
    stage.on = answer(404, {"errors": ["none"], "error_type": "not_found"})
    made = await forum.account(on_forum(address, bot_username="ghost"))
    assert made.detail == "the forum has no account ghost"


async def test_the_newest_post_is_the_publics(base_url: str, stage: Stage) -> None:
    settings = on_forum(base_url).settings.forum
    assert await forum.newest_post_at(settings) == datetime(2025, 1, 3, 8, tzinfo=UTC)
    odd: object
    for odd in ({"latest_posts": [{"created_at": 3}]}, {"latest_posts": 4}, {"latest_posts": [{}]}):
        stage.on = answer(200, odd)
        with pytest.raises(ArianeError, match="can't be read"):
            await forum.newest_post_at(settings)
    stage.on = answer(200, {"latest_posts": []})
    assert await forum.newest_post_at(settings) is None


@pytest.mark.parametrize(
    ("secrets", "status", "detail"),
    [([], Status.FAIL, "is empty"), ([SECRET], Status.OK, "one secret"), ([SECRET, SECRET], Status.OK, "2 secrets")],
)
async def test_without_a_secret_nothing_gets_in(secrets: list[str], status: Status, detail: str) -> None:
    made = await deliveries.secret(patient(webhook={"secrets": secrets}))
    assert made.status is status
    assert detail in made.detail


@pytest.mark.parametrize(
    ("ahead", "status"), [(0, Status.OK), (-20, Status.OK), (40, Status.WARN), (-400, Status.FAIL)]
)
async def test_the_forums_clock_is_compared_with_ours(stage: Stage, address: str, ahead: int, status: Status) -> None:
    stage.on = answer(404, "")
    ours = replace(on_forum(address), now=lambda: utc_now() - timedelta(seconds=ahead))
    made = await clock.clock(ours)
    assert made.status is status, made


async def test_clocks_that_can_not_be_read_are_a_warning(stage: Stage, address: str) -> None:
    assert (await clock.clock(on_forum(refusing_address()))).status is Status.WARN
    stage.on = answer(200, "", date="yesterday")
    assert (await clock.clock(on_forum(address))).status is Status.WARN


async def test_the_embedded_database_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await database.disk(patient(database={"url": "postgresql://x/y"}))).status is Status.OK
    for free, status in ((5e9, Status.OK), (1e9, Status.WARN), (1e8, Status.FAIL)):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: type("Usage", (), {"free": int(free)}))
        assert (await database.disk(patient(home=tmp_path))).status is status


def scoring(*references: ReferencePair, down: ArianeError | None = None) -> Patient:
    models = replace(MODELS, reranker=FakeReranker(down=down), pairs=references)
    return patient(models, models={"reranker": {"kind": "tei", "url": "http://reranker"}})


@pytest.mark.parametrize(
    ("who", "status", "said"),
    [
        (patient(), Status.OK, "part of this program"),
        (scoring(), Status.WARN, "no reference pairs"),
        (scoring(ReferencePair("q", "t", "e", 1.05)), Status.OK, "largest difference 0.05"),
        (scoring(ReferencePair("q", "t", "e", 7.3)), Status.FAIL, "another model: largest difference 6.3"),
        (scoring(ReferencePair("q", "t", "e", 1.0), down=Transient("silent")), Status.FAIL, "silent"),
        (scoring(ReferencePair("q", "t", "e", 1.0), down=Busy("no free turn")), Status.WARN, "full: no free turn"),
    ],
    ids=["bundled", "no references", "the same", "another", "down", "full"],
)
async def test_the_rerankers_proof(who: Patient, status: Status, said: str) -> None:
    made = await proofs.reranker_proof(who)
    assert made.status is status
    assert said in made.detail
    assert ("ariane profiles references" in made.mend) == (said == "no reference pairs")
