"""`ariane members`: who is not to be quoted."""

import asyncio
from datetime import UTC, datetime

import click

from service.commands.flags import system_user
from service.commands.options import config_option, configured
from service.errors import Rejected
from service.settings import Settings
from service.store.members import MemberStore
from service.wiring.database import open_database
from service.wiring.members import accounts_of

WHY = click.option("--why", required=True, help="The reason, kept with the decision.")
BY = click.option("--by", help="Who decides; the system user by default.")


@click.group("members")
@config_option
def command(config: object) -> None:
    """Members who are not to be quoted: their posts leave the index at once, and come back when they opt in."""
    del config  # the sub-command looks for it here


@command.command("opt-out")
@click.argument("who", metavar="NAME|ID")
@WHY
@BY
@configured
def opt_out(settings: Settings, who: str, why: str, by: str | None) -> None:
    """Let nothing that this member wrote be a source. Posted answers that cite him are flagged to moderators.

    Digits alone are a user id; a name made of digits is written @123.
    """
    asyncio.run(_opt_out(settings, who, by or system_user(), why))


@command.command("opt-in")
@click.argument("who", metavar="NAME|ID")
@WHY
@BY
@configured
def opt_in(settings: Settings, who: str, why: str, by: str | None) -> None:
    """Let this member be quoted again: the reconciler brings his posts back."""
    asyncio.run(_opt_in(settings, who, by or system_user(), why))


@command.command("list")
@configured
def show(settings: Settings) -> None:
    """Print who is not to be quoted: id, name, since when, by whom and why, between tabs."""
    asyncio.run(_show(settings))


async def _opt_out(settings: Settings, who: str, by: str, why: str) -> None:
    async with open_database(settings, "members") as pool:
        accounts = await accounts_of(who, pool)
        left = await MemberStore(pool).opt_out(accounts, by=by, reason=why, now=datetime.now(UTC))
    click.echo(f"{who} is not quoted any more: {left} posts left the index", err=True)


async def _opt_in(settings: Settings, who: str, by: str, why: str) -> None:
    async with open_database(settings, "members") as pool:
        accounts = await accounts_of(who, pool)
        if not await MemberStore(pool).opt_in(accounts, by=by, reason=why, now=datetime.now(UTC)):
            raise Rejected(f"{who} had not opted out")
    click.echo(f"{who} may be quoted again: `ariane reconcile`, or a worker in time, brings the posts back", err=True)


async def _show(settings: Settings) -> None:
    async with open_database(settings, "members") as pool:
        found = await MemberStore(pool).opt_outs()
    for one in found:
        fields = (one.user_id or "", one.username or "", f"{one.since:%Y-%m-%d %H:%M}", one.by, one.reason)
        click.echo("\t".join(" ".join(str(field).split()) for field in fields))
