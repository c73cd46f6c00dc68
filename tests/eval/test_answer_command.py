"""`python -m eval answer|gate|safety` as scripts meet them: one JSON object, or one line on what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eval.dataset_files import ASKED, write_folder
from tests.eval.test_safety_index import DATED, TOLD, TOPIC

FORUM = {**TOPIC, "slug": "watering-pots"}
"""Another index than the safety tests', which nobody may be using when it is copied."""

QUESTIONS = [
    {
        **ASKED,
        "question": "Do I water the pots every morning in July?",
        "golden": [{"topic": 5, "posts": [1], "grade": 2}],
    },
    {**ASKED, "id": "q2", "slice": "offtopic", "question": "Who won the cup in 1998?", "golden": []},
]


def run(home: Path, *words: str, url: str = "") -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("ARIANE_")}
    env |= {"ARIANE_HOME": str(home), "ARIANE_DATABASE__URL": url}
    command = [sys.executable, "-m", "eval", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)


def test_answers_are_measured_and_a_run_can_be_gone_on_with(server_url: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", questions__yml=QUESTIONS)
    (folder / "topics.jsonl").write_text(json.dumps(FORUM) + "\n", encoding="utf-8")
    words = ("answer", "--dataset", str(folder), "--json")
    first = run(tmp_path / "home", *words, url=server_url)
    told = json.loads(first.stdout)
    assert (told["command"], told["dataset"]["name"], told["settings"]["limit"]) == ("answer", "data", None)
    rows = {(row["slice"], row["measure"]): row for row in told["rows"]}
    assert {row["system"] for row in told["rows"]} == {"pipeline"}
    assert rows["all", "failed"]["value"] == 0 and rows["all", "failed"]["n"] == 2
    assert rows["offtopic", "abstained right"]["value"] == 1
    assert rows["paraphrase", "answered right"]["value"] == 1 and rows["all", "citations valid"]["value"] == 1
    assert rows["all", "time retrieve p95 ms"]["value"] > 0
    kept = (tmp_path / "home" / "eval" / "runs" / told["run"] / "questions.pipeline.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["case_id"] for line in sorted(kept.splitlines())] == ["q1", "q2"]

    again = json.loads(run(tmp_path / "home", *words, "--resume", told["run"], url=server_url).stdout)
    assert again == told


def test_a_first_post_never_finds_itself(server_url: str, tmp_path: Path) -> None:
    asks = {**TOLD, **DATED, "cooked": "<p>I water the pots every morning in July.</p>"}
    answers = {**asks, "id": 2, "topic_id": 6, "cooked": "<p>Water the pots in July at dawn.</p>"}
    forum = [{**TOPIC, "slug": "pots-in-july", "post_stream": {"posts": [asks]}}]
    forum.append({**TOPIC, "id": 6, "post_stream": {"posts": [answers]}})
    asked = {"topic_id": 5, "title": TOPIC["title"], "text": "I water the pots every morning in July."}
    accepted = [{**asked, "golden": [{"topic_id": 6, "post_number": 1}]}]
    folder = write_folder(tmp_path / "data", topics__jsonl=forum, accepted__jsonl=accepted)
    done = run(tmp_path / "home", "answer", "--dataset", str(folder), "--labels", "accepted", "--json", url=server_url)
    kept = tmp_path / "home" / "eval" / "runs" / json.loads(done.stdout)["run"] / "accepted.pipeline.jsonl"
    [said] = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    assert [one["topic_id"] for one in said["sources"]] == [6]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("answer", "--dataset", "{}"), "no questions.yml in this dataset"),
        (("gate", "--dataset", "{}"), "no gate.yml in this dataset"),
        (("safety", "--dataset", "{}/nowhere"), "no such folder"),
        (("safety", "--dataset", "{}", "--resume", "some-run"), "no safety.yml in this dataset"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    folder = write_folder(tmp_path / "data", topics__jsonl=[FORUM])
    done = run(tmp_path / "home", *(word.format(folder) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr.splitlines()[-1]
