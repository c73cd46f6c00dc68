"""`ariane serve`: the web process."""

import asyncio

import click

from service.app import GRACE_SECONDS, create_app, listen, serve
from service.commands.options import configured
from service.settings import Settings
from service.stop import stop_on_signals
from service.telemetry import log
from service.wiring.database import open_database
from service.wiring.moderation import moderation_desk


@click.command("serve")
@configured
def command(settings: Settings) -> None:
    """Run the web process: it receives the forum's webhook and answers health and metrics.

    It needs a webhook secret and never calls another server. Stop it with Ctrl-C or SIGTERM.
    """
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    with stop_on_signals(GRACE_SECONDS) as stop:
        async with open_database(settings, "web") as pool:
            app = create_app(settings, pool, desk=moderation_desk(pool, settings))
            listening = listen(settings.web)
            host, port = listening.getsockname()[:2]
            log.info("listening", url=f"http://{host}:{port}")
            await serve(app, listening, stop=stop)
