"""`ariane signin-link`: lets whoever runs Ariane into the moderators' pages before the forum can."""

import asyncio
from datetime import UTC, datetime

import click

from service.commands.flags import system_user
from service.commands.options import configured
from service.moderation.place import site_of
from service.settings import Settings
from service.store.sessions import SIGN_IN_MINUTES, SessionStore
from service.wiring.database import open_database


@click.command("signin-link")
@click.option("--by", help="Who will use it, for the record of changes; the system user by default.")
@configured
def command(settings: Settings, by: str | None) -> None:
    """Print an address that signs in to the moderators' pages, once and soon.

    For the first set-up, and for when signing in with the forum does not work. It starts with moderation.public_url.
    """
    asyncio.run(_make(settings, by or system_user()))


async def _make(settings: Settings, by: str) -> None:
    async with open_database(settings, "signin-link") as pool:
        token = await SessionStore(pool).new_link(f"{by} (link)", now=datetime.now(UTC))
    click.echo(site_of(settings.moderation).url(f"/sign-in/link?token={token}"))
    click.echo(f"It works once, within {SIGN_IN_MINUTES} minutes.", err=True)
