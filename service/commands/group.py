"""A command line of lazily imported sub-commands, and how its errors end: for `ariane` and for `python -m eval`."""

import gc
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from service.errors import ArianeError, Transient

BAD_INPUT = 2
TRY_AGAIN = 1


class LazyGroup(click.Group):
    """Sub-commands by name, so that starting one, or listing them, doesn't pay for importing the others.

    Each is `command` in the module of its name in `package`; `lines` has its line of help.
    """

    def __init__(self, *, package: str, lines: Mapping[str, str], **attrs: Any) -> None:
        super().__init__(**attrs)
        self._package = package
        self._lines = lines

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lines:
            return None
        gc.disable()  # a thousand modules make no garbage, and looking for it takes a tenth of their import
        module = importlib.import_module(f"{self._package}.{cmd_name.replace('-', '_')}")
        gc.freeze()  # nor is there any later: unfrozen, the first two collections would read them all again
        gc.enable()
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines.items()))


def run(group: click.Group, name: str) -> None:
    """Run one command; bad input and bad settings end with status 2 and one line that says what and where."""
    # Nobody extends our settings: without this, pydantic reads the metadata of every installed package at each start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        status = group.main(prog_name=name, standalone_mode=False)
    except click.Abort:
        status = 130
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        status = BAD_INPUT
    except click.ClickException as exc:
        context = exc.ctx.command_path if isinstance(exc, click.UsageError) and exc.ctx else name
        status = _fail(f"{context}: {exc.format_message()}", BAD_INPUT)
    except Transient as exc:
        status = _fail(f"{name}: {exc}", TRY_AGAIN)
    except ArianeError as exc:
        status = _fail(f"{name}: {exc}", BAD_INPUT)
    except BrokenPipeError:  # who read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = TRY_AGAIN
    except OSError as exc:  # a full disk, a file that went
        status = _fail(f"{name}: {exc.filename or 'output'}: {exc.strerror or exc}", TRY_AGAIN)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(line: str, status: int) -> int:
    click.echo(" ".join(line.split()), err=True)
    return status
