"""The command line, `ariane`: each sub-command is a module of service.commands, imported when it is called."""

import gc
import importlib
import os
import sys

import click

from service.errors import ArianeError, Transient

COMMANDS = {
    "demo": "The whole loop on this machine, with a simulated forum.",
    "serve": "The web process: webhook, health and metrics.",
    "worker": "The worker: indexes posts and answers mentions.",
    "migrate": "Bring the database's schema up to date.",
    "backfill": "Fill the index from an archive.",
    "profiles": "Embedding profiles, and which one answers.",
    "flags": "The switches, and who turned them.",
    "ask": "One question against the index; nothing is posted.",
    "doctor": "What is wrong with this installation, and how to mend it.",
    "sanitize": "What would be posted of a model's drafts.",
    "bench": "Measure this machine.",
}
"""Every sub-command with its line of help."""

BAD_INPUT = 2
TRY_AGAIN = 1


class Commands(click.Group):
    """Sub-commands by name, so that starting one, or listing them, doesn't pay for importing the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        gc.disable()  # a thousand modules make no garbage, and looking for it takes a tenth of their import
        module = importlib.import_module(f"service.commands.{cmd_name}")
        gc.freeze()  # nor is there any later: unfrozen, the first two collections would read them all again
        gc.enable()
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ariane-forum", prog_name="ariane")
def ariane() -> None:
    """Ariane answers mentions on a Discourse forum with the forum's own threads.

    Try it first: `ariane demo`. On a real forum: `migrate`, `backfill`, then `serve` and `worker`, then `flags`.
    """


def main() -> None:
    """Run one command; bad input and bad settings end with status 2 and one line that says what and where."""
    # Nobody extends our settings: without this, pydantic reads the metadata of every installed package at each start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        status = ariane.main(prog_name="ariane", standalone_mode=False)
    except click.Abort:
        status = 130
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        status = BAD_INPUT
    except click.ClickException as exc:
        context = exc.ctx.command_path if isinstance(exc, click.UsageError) and exc.ctx else "ariane"
        status = _fail(f"{context}: {exc.format_message()}", BAD_INPUT)
    except Transient as exc:
        status = _fail(f"ariane: {exc}", TRY_AGAIN)
    except ArianeError as exc:
        status = _fail(f"ariane: {exc}", BAD_INPUT)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(line: str, status: int) -> int:
    click.echo(" ".join(line.split()), err=True)
    return status


if __name__ == "__main__":
    main()
