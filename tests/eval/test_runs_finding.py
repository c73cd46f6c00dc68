"""Runs found by what people call them, and gone on with only by what they were begun with."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eval.runs import DatasetUsed, Run, new_run
from eval.runs.finding import dataset_folder, find_run, runs_in
from eval.runs.resuming import gone_on_with
from service.errors import Rejected
from service.settings import RetrievalSettings, Settings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DATASET = DatasetUsed(name="garden", checksum="ab" * 32)
SYSTEMS: Mapping[str, Mapping[str, Any]] = {"reranked": {"channels": ["keyword"]}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def begun(settings: Settings, command: str, *, minutes: int = 0, **options: object) -> Run:
    now = NOON + timedelta(minutes=minutes)
    return new_run(
        settings,
        command=command,
        dataset=DATASET,
        labels=["questions"],
        systems=SYSTEMS,
        seed=1,
        options=options,
        now=now,
    )


def test_a_run_is_found_by_its_folder_its_id_and_the_newest_by_its_command(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = begun(settings, "answer", minutes=5)
    newest = [begun(settings, "retrieve", minutes=9) for _ in range(11)][-1]
    begun(settings, "retrieve")
    assert find_run(settings, str(late.folder)).record == late.record
    assert find_run(settings, late.record.id).record == late.record
    assert find_run(settings, "retrieve").record.id == newest.record.id == "20261130-120900-retrieve-11"
    (tmp_path / "answer").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_run(settings, "answer").record == late.record, "a folder of that name holds no run"


@pytest.mark.parametrize("name", ["nothing", "30-12", "20261130", "retr", "*", "", ".", "..", "else/{}", "a\nb"])
def test_what_is_no_run_is_refused(settings: Settings, name: str) -> None:
    run = begun(settings, "retrieve")
    with pytest.raises(Rejected, match="no run"):
        find_run(settings, name.format(run.record.id))
    with pytest.raises(Rejected, match="no run"):
        find_run(Settings(home=settings.home / "nowhere"), "retrieve")


def test_a_broken_run_is_none_of_a_folder_and_told_by_its_name(settings: Settings) -> None:
    whole, broken = begun(settings, "retrieve"), begun(settings, "retrieve")
    (broken.folder / "run.json").write_text("{}")
    assert [run.record.id for run in runs_in(whole.folder.parent)] == [whole.record.id]
    assert find_run(settings, "retrieve").record.id == whole.record.id
    with pytest.raises(Rejected, match=r"run\.json, "):
        find_run(settings, broken.record.id)


def test_a_run_says_where_its_dataset_was(settings: Settings) -> None:
    assert dataset_folder(begun(settings, "retrieve", dataset="/somewhere")) == Path("/somewhere")
    with pytest.raises(Rejected, match="--dataset"):
        dataset_folder(begun(settings, "retrieve"))


def test_a_run_of_another_program_or_configuration_is_not_gone_on_with(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.runs.folder.git_hash", lambda: "a" * 40)
    monkeypatch.setattr("eval.runs.resuming.git_hash", lambda: "a" * 40)
    run = begun(settings, "retrieve", dataset="/then", limit=3)
    asked: dict[str, Any] = {"dataset": DATASET, "systems": SYSTEMS, "options": {"limit": 3, "dataset": "/moved"}}
    assert gone_on_with(run, settings, **asked) is run

    def refused(other: str, settings: Settings = settings, **changed: object) -> None:
        with pytest.raises(Rejected, match=f"made with other {other}: begin a new run"):
            gone_on_with(run, settings, **asked | changed)

    refused("options", options={"limit": None})
    refused("dataset, systems", dataset=DatasetUsed(name="garden", checksum="cd" * 32), systems={})
    refused("settings, configuration", Settings(home=settings.home, retrieval=RetrievalSettings(rrf_k=3)))
    monkeypatch.setattr("eval.runs.resuming.program_version", lambda: "99.0")
    refused("program version")
    monkeypatch.setattr("eval.runs.resuming.git_hash", lambda: "b" * 40)
    refused("commit, program version")
