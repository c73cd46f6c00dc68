"""`ariane export`: hands out all that we keep of a member."""

import asyncio
import json

import click

from service.commands.options import configured
from service.settings import Settings
from service.store.personal import export
from service.wiring.database import open_database
from service.wiring.members import accounts_of


@click.command("export")
@click.option("--user", "who", metavar="NAME|ID", required=True, help="Digits alone are a user id; @123 is a name.")
@configured
def command(settings: Settings, who: str) -> None:
    """Print all that is kept of a member, as JSON: the rows by table."""
    asyncio.run(_export(settings, who))


async def _export(settings: Settings, who: str) -> None:
    async with open_database(settings, "export") as pool:
        kept = await export(pool, await accounts_of(who, pool))
    click.echo(json.dumps(kept, ensure_ascii=False, indent=1))
