"""Which settings file a command reads: the one that is typed, else the one that the environment names."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from service.commands.options import config_option, configured
from service.settings import Settings


@click.group()
@config_option
def group(config: Path | None) -> None:
    """A group that takes the file for its sub-commands."""


@group.command()
@configured
def said(settings: Settings) -> None:
    click.echo(settings.forum.bot_username)


@pytest.mark.parametrize(
    ("typed", "named", "read"),
    [
        ([], None, "ariane"),
        ([], "env", "env"),
        (["said", "--config", "own"], "env", "own"),
        (["--config", "group", "said"], "env", "group"),
        (["--config", "group", "said", "--config", "own"], None, "own"),
    ],
)
def test_what_is_typed_beats_the_environment(typed: list[str], named: str | None, read: str, tmp_path: Path) -> None:
    for name in ("env", "own", "group"):
        (tmp_path / name).write_text(f"forum: {{bot_username: {name}}}")
    arguments = [str(tmp_path / one) if one in ("own", "group") else one for one in typed or ["said"]]
    ran = CliRunner().invoke(group, arguments, env={"ARIANE_CONFIG": named and str(tmp_path / named)})
    assert ran.stdout.strip() == read, ran.output
