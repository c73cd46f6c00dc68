"""The runner of the gate: every message decided with the member's own turns, wrong ones told, figures right."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import eval.endtoend.gating
from eval.commands.gate import command
from eval.datasets import GateCase
from eval.endtoend.gating import Decided, decide_all, measured_decisions
from eval.runs import open_run
from service.answer.gate.match import Decline
from service.answer.gate.rules import GateKind
from tests.eval.dataset_files import GATE, write_folder

MESSAGES = [
    GATE,
    {**GATE, "id": "g2", "lang": "fr", "text": "Fais mon devoir", "kind": "generalist/homework"},
    {**GATE, "id": "g3", "text": "An essay on roses?", "expect": "proceed", "kind": "look"},
    {**GATE, "id": "g4", "text": "How deep is garlic?", "expect": "proceed", "kind": "look"},
]


def essays(text: str, earlier: Sequence[str] = ()) -> Decline | None:
    """A gate of one rule, which is too wide and knows no French."""
    return Decline("essay", GateKind.GENERALIST, "essay") if "essay" in text else None


def case(name: str, *, declines: bool, history: tuple[tuple[str, str], ...] = ()) -> GateCase:
    return GateCase(name, "en", f"text of {name}", history, declines, "generalist/essay")


def test_the_gate_hears_the_members_own_turns_oldest_first() -> None:
    heard: list[tuple[str, tuple[str, ...]]] = []

    def listening(text: str, earlier: Sequence[str]) -> None:
        heard.append((text, tuple(earlier)))

    decide_all([case("a", declines=True, history=(("user", "one"), ("bot", "two"), ("user", "three")))], listening)
    assert set(heard) == {("text of a", ("one", "three"))}


def test_recall_false_declines_and_times_are_over_the_right_messages() -> None:
    cases = [case("a", declines=True), case("b", declines=True), case("c", declines=False), case("d", declines=False)]
    decided = [Decided(name, name in "ac", "", "", ms) for name, ms in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True)]
    measures = measured_decisions(cases, decided, seed=1)
    values = {one.measure: (one.n, one.interval.value) for one in measures if one.slice == "all"}
    assert values == {
        "decline recall": (2, 0.5),
        "false decline": (2, 0.5),
        "gate right": (4, 0.5),
        "time message p50 ms": (4, 2.0),
        "time message p99 ms": (4, 4.0),
    }


def run(monkeypatch: pytest.MonkeyPatch, home: Path, *words: str) -> Result:
    monkeypatch.setenv("ARIANE_HOME", str(home))
    monkeypatch.setattr(eval.endtoend.gating, "decider", lambda settings: essays)
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def test_what_it_judges_wrongly_is_named_never_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", gate__yml=MESSAGES)
    done = run(monkeypatch, tmp_path / "home", "--dataset", str(folder), "--json")
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["command"], told["dataset"]["name"]) == ("gate", "data")
    assert told["wrong"] == [
        {"id": "g2", "kind": "generalist/homework", "lang": "fr", "expect": "decline", "rule": "", "span": ""},
        {"id": "g3", "kind": "look", "lang": "en", "expect": "proceed", "rule": "essay", "span": "essay"},
    ]
    rows = {(row["slice"], row["measure"]): row["value"] for row in told["rows"]}
    assert rows["all", "decline recall"] == rows["generalist", "decline recall"] == 0.5
    assert rows["lang:fr", "decline recall"] == 0.0 and rows["look", "false decline"] == 0.5
    assert not any(message["text"] in done.stdout + done.stderr for message in MESSAGES)
    run_folder = tmp_path / "home" / "eval" / "runs" / told["run"]
    kept = (run_folder / "gate.gate.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["declined"] for line in kept] == [True, False, True, False]
    assert {one.measure for one in open_run(run_folder).measures()} >= {"decline recall", "time message p99 ms"}


def test_a_person_reads_figures_and_ids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", gate__yml=MESSAGES)
    shown = run(monkeypatch, tmp_path / "home", "--dataset", str(folder)).stdout
    assert "decline recall  0.500" in shown and "wrong: 2" in shown and "g3  look  essay  essay" in shown
