"""`ariane sanitize --jsonl`: the lines it reads and writes, and how it refuses bad ones."""

import json
from io import StringIO
from typing import Any

import pytest
from click.testing import CliRunner

from service.commands.sanitize import command, sanitize_jsonl


def run(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    out = StringIO()
    assert sanitize_jsonl([json.dumps(line) for line in lines], out) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_number_stands_for_invented_sources() -> None:
    (result,) = run({"id": "a", "draft": "Wax the seam [[2]].", "sources": 2, "zone": "normal"})
    assert result == {
        "id": "a",
        "post": "Wax the seam [2 · Topic 2](https://forum.example/t/topic-2/1002/2).",
        "fallback": None,
        "cited": [2],
        "removed": {},
    }


def test_sources_may_be_given_with_a_base_url() -> None:
    source = {"topic_id": 9, "post_number": 4, "slug": "wet-boots", "title": "Wet boots"}
    (result,) = run({"id": 7, "draft": "Dry it [[1]].", "sources": [source], "base_url": "https://a.example/forum"})
    assert result["post"] == "Dry it [1 · Wet boots](https://a.example/forum/t/wet-boots/9/4)."


def test_a_post_is_null_exactly_when_there_is_a_fallback() -> None:
    results = run(
        {"id": 1, "draft": "Wax it.", "sources": 2},
        {"id": 2, "draft": "Wax it [[1]].", "sources": 2, "zone": "abstain"},
        {"id": 3, "draft": "Wax it [[1]].", "sources": 2, "zone": "weak", "lang": "fr"},
    )
    assert [(each["post"] is None, each["fallback"]) for each in results] == [
        (True, "sources"),
        (True, "abstain"),
        (False, None),
    ]
    assert len(results[2]["post"].split("\n\n")) == 2


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "not JSON"),
        ("[]", "valid"),
        ('{"id": 1, "sources": 1}', "draft"),
        ('{"id": 1, "draft": 5, "sources": 1}', "draft"),
        ('{"id": 1, "draft": "x", "sources": -1}', "sources"),
        ('{"id": 1, "draft": "x", "sources": [{"topic_id": 0}]}', "sources"),
        ('{"id": 1, "draft": "x", "sources": 1, "zone": "high"}', "zone"),
        ('{"id": 1, "draft": "x", "sources": 1, "base_url": "javascript:x"}', "base_url"),
        ("[" * 100_000, "not JSON"),
        ('{"id": 1, "draft": "\udc80", "sources": 1}', "not UTF-8"),
        ('{"id": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_a_bad_line_ends_with_its_number_and_fault(line: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    good = json.dumps({"id": 1, "draft": "Wax it [[1]].", "sources": 1})
    assert sanitize_jsonl([good, "", line], StringIO()) == 2
    message = capsys.readouterr().err
    assert message.startswith("ariane sanitize: line 3: ") and message.count("\n") == 1
    assert fault in message


def test_lone_surrogates_are_read_and_removed() -> None:
    out = StringIO()
    line = '{"id": "\\ud800", "draft": "Wax\\udfff the seam [[1]].", "sources": 1}'
    assert sanitize_jsonl([line], out) == 0
    assert json.loads(out.getvalue())["post"].startswith("Wax the seam")


def test_the_command_reads_stdin() -> None:
    result = CliRunner().invoke(
        command, ["--jsonl"], input='{"id": 1, "draft": "Sciez-la à ras [[1]].", "sources": 1}\n'
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["post"].startswith("Sciez-la à ras [1")
