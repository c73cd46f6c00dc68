"""Comparing runs: what a switch changed, with interval and p-value; refusals; what is shown to people and machines."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from eval.commands.compare import command
from eval.datasets import load_dataset
from eval.domain import Answered, CitedSource, Hit, Retrieved
from eval.measures.pairing import made_differently
from eval.runs import DatasetUsed, Run, new_run
from service.domain import TopicId
from service.errors import Rejected
from service.settings import Settings

QUESTIONS = 60
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

Ranks = Callable[[int], int | None]
"""At which rank a system finds the answer to question number n; None: not at all."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARIANE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def dataset(home: Path) -> Path:
    """Sixty questions on thirty topics, a third of them French, the last ten without an answer."""
    folder = home / "forum"
    folder.mkdir()
    write_questions(folder, QUESTIONS)
    return folder


def write_questions(folder: Path, count: int) -> None:
    items = [
        {
            "id": f"q{n}",
            "slice": "paraphrase" if n < 50 else "unanswerable",
            "lang": "fr" if n % 3 == 0 else "en",
            "question": f"question {n}?",
            "golden": [{"topic": 100 + n // 2, "posts": [n % 2 + 1], "grade": 2}] if n < 50 else [],
        }
        for n in range(count)
    ]
    (folder / "questions.yml").write_text(yaml.safe_dump(items))


def retrieved(number: int, rank: int | None) -> Retrieved:
    hits = [Hit(TopicId(9000 + place), 1, 0.0) for place in range(30)]
    if rank:
        hits.insert(rank - 1, Hit(TopicId(100 + number // 2), number % 2 + 1, 0.0))
    return Retrieved(f"q{number}", tuple(hits))


def a_run(
    home: Path,
    dataset: Path,
    systems: Mapping[str, Ranks],
    switches: Mapping[str, Any] | None = None,
    count: int = QUESTIONS,
    **options: object,
) -> Run:
    run = made(home, dataset, "retrieve", {name: switches or {} for name in systems}, **options)
    with run:
        for system, ranks in systems.items():
            for number in range(count):
                run.append("questions", system, retrieved(number, ranks(number)))
    return run


def made(home: Path, dataset: Path, name: str, systems: Mapping[str, Mapping[str, Any]], **options: object) -> Run:
    return new_run(
        Settings(home=home),
        command=name,
        dataset=DatasetUsed(name="forum", checksum=load_dataset(dataset).checksum),
        labels=["questions"],
        systems=systems,
        seed=3,
        options={"dataset": str(dataset), **options},
        now=NOW,
    )


def plain(number: int) -> int | None:
    return number % 6 + 1 if number % 5 else None


def better(number: int) -> int | None:
    """As `plain`, but every other topic's questions are found first."""
    return 1 if number // 2 % 2 else plain(number)


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments])


def compared(*arguments: object) -> dict[str, Any]:
    done = compare(*arguments, "--json")
    assert done.exit_code == 0, done.exception or done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def row(answer: Mapping[str, Any], measure: str, after: str = "hybrid") -> dict[str, Any]:
    [one] = [one for one in answer["rows"] if one["measure"] == measure and one["after"] == after]
    return dict(one)


def test_a_change_of_one_switch_shows_with_its_interval_and_p_value(home: Path, dataset: Path) -> None:
    before = a_run(home, dataset, {"hybrid": plain}, {"neighbours": False})
    after = a_run(home, dataset, {"hybrid": better}, {"neighbours": True})
    answer = compared(before.folder, after.folder)
    assert answer["differs"] == ["hybrid, neighbours: False -> True"]
    assert answer["warnings"] == []
    mrr = row(answer, "topic MRR")
    assert mrr["n"] == 50
    assert mrr["value_after"] - mrr["value_before"] == pytest.approx(mrr["difference"], abs=2e-6)
    assert 0 < mrr["low"] < mrr["difference"] < mrr["high"]
    assert mrr["p"] < 0.01
    assert mrr["p_corrected"] == mrr["p"]  # one comparison by this measure
    assert 0 < mrr["detectable"] < mrr["difference"]


def test_the_same_again_differs_by_nothing(home: Path, dataset: Path) -> None:
    answer = compared(a_run(home, dataset, {"hybrid": plain}).folder, a_run(home, dataset, {"hybrid": plain}).folder)
    assert answer["differs"] == answer["changes"] == []
    assert {(one["difference"], one["low"], one["high"], one["p"]) for one in answer["rows"]} == {(0.0, 0.0, 0.0, 1.0)}
    assert {one["detectable"] for one in answer["rows"]} == {None}


def test_a_comparison_is_the_same_each_time(home: Path, dataset: Path) -> None:
    runs = a_run(home, dataset, {"hybrid": plain}).folder, a_run(home, dataset, {"hybrid": better}).folder
    assert compared(*runs) == compared(*runs)


def test_the_questions_that_changed_most_come_first(home: Path, dataset: Path) -> None:
    def moved(number: int) -> int | None:
        return {7: None, 8: 12, 9: 5}.get(number, 2)

    answer = compared(
        a_run(home, dataset, {"hybrid": lambda _: 2}).folder, a_run(home, dataset, {"hybrid": moved}).folder
    )
    assert [(one["id"], one["before"]["found"], one["after"]["found"]) for one in answer["changes"]] == [
        ("q7", 2, None),
        ("q8", 2, 12),
        ("q9", 2, 5),
    ]


def test_the_systems_of_one_run_are_compared_with_a_baseline_and_corrected(home: Path, dataset: Path) -> None:
    run = a_run(home, dataset, {"dense": plain, "hybrid": better, "rrf": plain, "reranked": better})
    answer = compared(run.folder, "--baseline", "dense")
    assert list(dict.fromkeys(one["after"] for one in answer["rows"])) == ["hybrid", "rrf", "reranked"]
    assert {one["before"] for one in answer["rows"]} == {"dense"}
    hybrid = row(answer, "topic MRR")
    assert hybrid["p_corrected"] == pytest.approx(3 * hybrid["p"], abs=2e-6)
    assert row(answer, "topic MRR", "rrf")["p_corrected"] == 1.0


def test_a_baseline_of_one_run_meets_every_system_of_the_other(home: Path, dataset: Path) -> None:
    before, after = a_run(home, dataset, {"dense": plain}), a_run(home, dataset, {"hybrid": better, "rrf": plain})
    answer = compared(before.folder, after.folder, "--baseline", "dense")
    assert [(one["before"], one["after"]) for one in answer["rows"] if one["measure"] == "topic MRR"] == [
        ("dense", "hybrid"),
        ("dense", "rrf"),
    ]


def test_one_slice_can_be_looked_at(home: Path, dataset: Path) -> None:
    before, after = a_run(home, dataset, {"hybrid": plain}), a_run(home, dataset, {"hybrid": better})
    answer = compared(before.folder, after.folder, "--slice", "lang:fr")
    assert row(answer, "topic MRR")["n"] == 17
    moved = {n for n in range(0, 50, 3) if plain(n) != better(n)}
    assert {one["id"] for one in answer["changes"]} == {f"q{n}" for n in moved} != set()
    assert "no question changed" not in compare(before.folder, after.folder, "--slice", "lang:fr").stdout
    refused = compare(before.folder, after.folder, "--slice", "typo")
    assert isinstance(refused.exception, Rejected)
    assert "paraphrase, unanswerable, lang:fr, lang:en" in str(refused.exception)


def test_what_is_missing_counts_as_zero_and_is_said(home: Path, dataset: Path) -> None:
    before, after = (
        a_run(home, dataset, {"hybrid": lambda _: 1}),
        a_run(home, dataset, {"hybrid": lambda _: 1}, count=25),
    )
    answer = compared(before.folder, after.folder)
    assert "35 of 60 questions are missing" in answer["warnings"][0]
    assert (row(answer, "topic Hit@1")["n"], row(answer, "topic Hit@1")["difference"]) == (50, -0.5)


def test_what_two_runs_were_made_with_is_told_where_it_differs(home: Path, dataset: Path) -> None:
    one = a_run(home, dataset, {"hybrid": plain}, {"neighbours": False}, followups="full").record
    changed = {
        "git": "a" * 40 + "-dirty",
        "models": {**one.models, "reranker": "other"},
        "options": {"dataset": "moved"},
    }
    told = made_differently(one.model_copy(update={"git": "b" * 40}), one.model_copy(update=changed), [])
    assert told == [
        "git: bbbbbbbbbbbb -> aaaaaaaaaaaa-dirty",
        f"reranker: {one.models['reranker']} -> other",
        "option followups: full -> None",
    ]


def test_limited_runs_are_compared_on_what_both_were_asked(home: Path, dataset: Path) -> None:
    few = a_run(home, dataset, {"hybrid": lambda _: 2}, count=20, limit=20)
    fewer, every = (
        a_run(home, dataset, {"hybrid": lambda _: 1}, count=10, limit=10),
        a_run(home, dataset, {"hybrid": plain}),
    )
    alike = compared(few.folder, fewer.folder)
    assert "limited to 10 questions" in alike["warnings"][0]
    assert (row(alike, "topic MRR")["n"], row(alike, "topic MRR")["difference"]) == (10, 0.5)
    assert row(compared(few.folder, every.folder), "topic MRR")["n"] == 20


def test_runs_of_different_datasets_meet_on_their_common_questions(home: Path, dataset: Path) -> None:
    before = a_run(home, dataset, {"hybrid": lambda _: 1}, count=40)
    write_questions(dataset, 40)
    after = a_run(home, dataset, {"hybrid": lambda _: 1}, count=30)
    answer = compared(before.folder, after.folder)
    assert "different datasets" in answer["warnings"][0]
    assert (row(answer, "topic Hit@1")["n"], row(answer, "topic Hit@1")["difference"]) == (30, 0.0)
    write_questions(dataset, 20)
    assert "changed since the run" in compared(before.folder, after.folder)["warnings"][-1]


def answered(number: int, *, right: bool) -> Answered:
    topic, post = 100 + number // 2, number % 2 + 1
    source = CitedSource(1, TopicId(topic), post if right else post + 8, "", cited=True)
    return Answered(f"q{number}", "answered", "normal", "reranked", "See [[1]].", (source,))


def test_answers_are_compared_by_what_became_of_each_question(home: Path, dataset: Path) -> None:
    runs = []
    for rights in (10, 30):
        run = made(home, dataset, "answer", {"bot": {}})
        with run:
            for number in range(QUESTIONS):
                run.append("questions", "bot", answered(number, right=number < rights))
        runs.append(run.folder)
    answer = compared(*runs)
    wrong = row(answer, "wrong when answered", "bot")
    assert (wrong["value_before"], wrong["value_after"]) == (pytest.approx(5 / 6, abs=1e-6), 0.5)
    assert wrong["p"] < 0.01
    assert {one["id"] for one in answer["changes"]} == {f"q{number}" for number in range(10, 30)}
    assert answer["changes"][0]["after"] == {"system": "bot", "found": "answered right"}


def test_what_people_read_has_every_figure(home: Path, dataset: Path) -> None:
    before, after = a_run(home, dataset, {"hybrid": plain}), a_run(home, dataset, {"hybrid": better})
    shown = compare(before.record.id, after.record.id)  # by id: from the folder of runs
    assert shown.exit_code == 0, shown.exception
    mrr = row(compared(before.folder, after.folder), "topic MRR")
    [line] = [line for line in shown.stdout.splitlines() if "topic MRR" in line]
    for figure in (
        f"{mrr['value_before']:.3f}",
        f"{mrr['difference']:+.3f}",
        f"[{mrr['low']:+.3f}, {mrr['high']:+.3f}]",
    ):
        assert figure in line
    assert "questions changed; most:" in shown.stdout
    assert "not found -> rank 1" in shown.stdout


def test_what_cannot_be_compared_is_refused(home: Path, dataset: Path) -> None:
    one = a_run(home, dataset, {"dense": plain})
    other = a_run(home, dataset, {"hybrid": plain})
    gate = made(home, dataset, "gate", {"dense": {}})
    lost = new_run(
        Settings(home=home),
        command="retrieve",
        dataset=DatasetUsed(name="forum", checksum="0"),
        labels=["questions"],
        systems={"dense": {}},
        seed=1,
        options={},
        now=NOW,
    )
    for arguments, told in {
        (one.folder,): "--baseline dense",
        (one.folder, "--baseline", "dense"): "no systems to compare",
        (one.folder, "--baseline", "bm25"): "no system 'bm25', but dense",
        (one.folder, other.folder): "no systems to compare",
        (one.folder, gate.folder): "a run of retrieve",
        (gate.folder, "--baseline", "dense"): "no systems to compare",
        (gate.folder, made(home, dataset, "gate", {"dense": {}}).folder): "is of gate",
        (lost.folder, one.folder): "--dataset",
        (one.folder, lost.folder): "no question in common",
        (home / "nowhere", one.folder): "no run",
    }.items():
        refused = compare(*arguments)
        assert isinstance(refused.exception, Rejected), (arguments, refused.output)
        assert told in str(refused.exception)
