"""How a command line ends: one line and a status, whatever was met."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from service.__main__ import COMMANDS, ariane
from service.commands.group import run
from service.errors import Misconfigured, Rejected, Transient

ROOT = Path(__file__).parents[2]
SPEAKS = """
import click
from service.commands.group import run

@click.command()
def speak():
    for _ in range(100_000):
        click.echo("a line")

run(speak, "speaker")
"""


def failing(error: Exception) -> click.Group:
    @click.group(invoke_without_command=True)
    def fails() -> None:
        raise error

    return fails


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (Rejected("no such thing"), 2, "tool: no such thing"),
        (Misconfigured("forum.base_url is missing"), 2, "tool: forum.base_url is missing"),
        (Transient("try again"), 1, "tool: try again"),
        (OSError(28, "No space left on device", "/a/file"), 1, "tool: /a/file: No space left on device"),
        (click.UsageError("one of them"), 2, "tool: one of them"),
    ],
)
def test_an_error_is_one_line_and_a_status(
    error: Exception, status: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tool"])
    with pytest.raises(SystemExit) as ended:
        run(failing(error), "tool")
    assert ended.value.code == status
    assert capsys.readouterr().err == f"{says}\n"


def test_a_reader_who_has_seen_enough_meets_no_traceback() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    speaker = subprocess.Popen(
        [sys.executable, "-c", SPEAKS], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert speaker.stdout and speaker.stderr
    assert speaker.stdout.readline() == "a line\n"
    speaker.stdout.close()
    assert speaker.stderr.read() == ""
    speaker.stderr.close()
    assert speaker.wait(30) == 1


def test_the_help_says_what_a_command_does_when_nothing_is_said() -> None:
    erasing = CliRunner().invoke(ariane, ["erase", "--help"])
    assert '[default: "asked for"]' in erasing.output  # without quotes it reads as if it asked
    assert all(source in COMMANDS["backfill"] for source in ("archive", "forum", "database"))
