"""`ariane flags`: the switches, and who turned them."""

import asyncio
import getpass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from service.answer.activation import State, held, mend, told
from service.answer.ports import AnsweringMode
from service.commands.options import config_option, configured
from service.errors import Rejected
from service.settings import Settings
from service.store.flag_names import EMBEDDING_PROFILE, FORMS, allowed, limits_of
from service.store.flags import PIPELINE, FlagStore
from service.wiring.activation import present_activation, turn
from service.wiring.database import open_database

SHOWN_CHANGES = 10


@click.group("flags", invoke_without_command=True)
@config_option
@click.pass_context
def command(context: click.Context, config: Path | None) -> None:
    """Show the switches and their last changes; `flags set` turns one.

    \b
    answering       off | shadow | on   post answers, or compute them without posting
    posts_pipeline  off | on            search the indexed posts, under a configuration that passed a test; off: the
                                        rarest words in whole topics alone
    input_gate      off | on            decline questions that are not for the forum, in the server's own words
    private_messages off | on           answer mentions in private messages that the bot takes part in
    embedding_profile default | NAME    whose vectors answer: that of models.embedder, or NAME (`ariane profiles`)

    \b
    category:ID           default | off | shadow | on   in this category, at most this of what `answering` says
    category:ID:per_hour  default | NUMBER              answers in this category in an hour
    group:NAME:per_hour   default | NUMBER              answers to each member of this group in an hour
    """
    del config  # the sub-command looks for it here
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("show")
@configured
def show(settings: Settings) -> None:
    """Show the switches and their last changes."""
    asyncio.run(_show(settings))


@command.command("set")
@click.argument("name", callback=lambda _context, _argument, name: known_name(name))
@click.argument("value")
@click.option("--why", required=True, help="The reason, kept with the change.")
@click.option("--by", help="Who decides; the system user by default.")
@click.option("--override", is_flag=True, help="posts_pipeline on: without a passed test, for the reason you give.")
@configured
def set_flag(settings: Settings, name: str, value: str, why: str, by: str | None, override: bool) -> None:
    """Turn the switch NAME to VALUE, with a reason that is kept.

    posts_pipeline goes on when the present configuration has passed a test and the index is complete. `ariane flags
    --help` lists what can be turned.
    """
    if override and (name, value) != (PIPELINE, "on"):
        raise click.UsageError(f"--override is for {PIPELINE} on: nothing keeps you from the others")
    asyncio.run(_set(settings, name, value, by or system_user(), why, override))


def known_name(name: str) -> str:
    """The name of a switch; raises click.BadParameter for any other."""
    try:
        allowed(name)
    except Rejected as exc:
        raise click.BadParameter(f"{name!r} is not one of {FORMS}") from exc
    return name


def system_user() -> str:
    """Who runs this command, as the system names him."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user id without a name
        return "unknown"


async def _show(settings: Settings) -> None:
    async with open_database(settings, "flags") as pool:
        store = FlagStore(pool)
        flags, changes = await store.read(), await store.changes(SHOWN_CHANGES)
        activated = await present_activation(pool, settings)
    click.echo(f"answering       {flags.answering}")
    click.echo(f"posts_pipeline  {'on' if flags.posts_pipeline else 'off'}")
    click.echo(f"input_gate      {'on' if flags.input_gate else 'off'}")
    click.echo(f"private_messages {'on' if flags.private_messages else 'off'}")
    if flags.embedding_profile:
        click.echo(f"{EMBEDDING_PROFILE} {flags.embedding_profile}")
    for name, value in limits_of(flags):
        click.echo(f"{name:<15} {value}")
    if flags.answering is AnsweringMode.ON and not flags.input_gate:
        click.echo("answering is on while input_gate is off: every question goes on to the answer", err=True)
    in_force = " (in shadow)" if held(activated, settings.activation.on_change) else ""
    click.echo(f"activation      {activated.state}{in_force}: {told(activated)}")
    if activated.state is not State.ACTIVE:
        click.echo(mend(activated), err=True)
    if changes:
        table = Table("when", "who", "flag", "from", "to", "why", box=None, header_style="dim", padding=(0, 2, 0, 0))
        for change in changes:
            when = f"{change.changed_at:%Y-%m-%d %H:%M}"
            who = change.changed_by + (f" ({change.changed_by_user_id})" if change.changed_by_user_id else "")
            table.add_row(when, who, change.name, change.old_value or "-", change.new_value, change.reason)
        Console(stderr=True, markup=False).print(table)


async def _set(settings: Settings, name: str, value: str, by: str, why: str, override: bool) -> None:
    async with open_database(settings, "flags") as pool:
        await turn(pool, settings, name, value, by=by, reason=why, override=override)
    click.echo(f"{name} is {value}", err=True)
