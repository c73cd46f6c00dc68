"""`ariane migrate`: bring the database's schema up to date."""

import asyncio

import click

from service.commands.options import configured
from service.settings import Settings
from service.store.migrate import migrate
from service.wiring.database import database_url


@click.command("migrate")
@configured
def command(settings: Settings) -> None:
    """Bring the database's schema up to date; safe to run again and from several places at once."""
    asyncio.run(_migrate(settings))


async def _migrate(settings: Settings) -> None:
    applied = await migrate(await database_url(settings))
    for name in applied:
        click.echo(f"applied {name}", err=True)
    click.echo("the schema is up to date", err=True)
