"""`ariane erase`: forgets all that we keep of a member."""

import asyncio
import secrets
from datetime import UTC, datetime

import click

from service.commands.flags import system_user
from service.commands.options import configured
from service.errors import Rejected
from service.settings import Settings
from service.store.personal import erase
from service.wiring.database import open_database
from service.wiring.members import accounts_of


@click.command("erase")
@click.option("--user", "who", metavar="NAME|ID", required=True, help="Digits alone are a user id; @123 is a name.")
@click.option("--yes", is_flag=True, help="Do it: nothing brings it back.")
@click.option("--why", default="asked for", help='The reason, kept with the decision.  [default: "asked for"]')
@click.option("--by", help="Who decides; the system user by default.")
@configured
def command(settings: Settings, who: str, yes: bool, why: str, by: str | None) -> None:
    """Erase a member's questions, their traces, and whatever else is kept of him; his posts leave the index.

    Posts that the forum still shows come back with the next reading: `ariane members opt-out` keeps them out.
    """
    asyncio.run(_erase(settings, who, yes=yes, by=by or system_user(), why=why))


async def _erase(settings: Settings, who: str, *, yes: bool, by: str, why: str) -> None:
    async with open_database(settings, "erase") as pool:
        accounts = await accounts_of(who, pool)
        names = ", ".join(f"{one.username or '(no name known)'} ({one.user_id or 'no id known'})" for one in accounts)
        if not yes:
            raise Rejected(f"this would erase what is kept of {names}, for good: say --yes")
        pseudonym = f"member-{secrets.token_hex(4)}"
        now = datetime.now(UTC)
        posts = await erase(pool, accounts, pseudonym=pseudonym, gone=False, by=by, reason=why, now=now)
    click.echo(f"erased what was kept of {names}: {posts} posts; records of decisions say {pseudonym}", err=True)
