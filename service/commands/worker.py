"""`ariane worker`: the process that indexes and answers."""

import asyncio
from os import getpid
from socket import gethostname

import click

from service.commands.options import configured
from service.settings import Settings
from service.stop import stop_on_signals
from service.telemetry import log
from service.wiring.gauges import index_gauges
from service.wiring.parts import stored_parts
from service.wiring.services import open_services, prove_models
from service.wiring.work import work_of
from service.worker import run_worker


@click.command("worker")
@configured
def command(settings: Settings) -> None:
    """Run a worker: it indexes posts and answers mentions. Run as many as you like.

    It stops at Ctrl-C or SIGTERM, once the running jobs have ended.
    """
    asyncio.run(_work(settings))


async def _work(settings: Settings) -> None:
    with stop_on_signals(settings.worker.shutdown_grace_seconds) as stop:
        async with open_services(settings, "worker", long_lived=True) as services:
            await prove_models(services)
            log.info("working", metrics_port=settings.worker.metrics_port)
            name = f"{gethostname()}:{getpid()}"
            watch = [services.flags.read, index_gauges(services), stored_parts(services.pool, name, services.up)]
            await run_worker(settings, services.pool, work_of(services, stop), stop=stop, up=services.up, watch=watch)
