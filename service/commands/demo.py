"""`ariane demo`: the whole loop on embedded defaults."""

import asyncio
import sys

import click

from service.commands.options import configured
from service.demo.run import run_demo
from service.settings import Settings


@click.command("demo")
@click.option("--once", is_flag=True, help="End after the first posted answer.")
@click.option(
    "--forum-port",
    type=click.IntRange(0, 65535),
    default=4200,
    show_default=True,
    help="Port of the simulated forum, if it is free.",
)
@configured
def command(settings: Settings, once: bool, forum_port: int) -> None:
    """Run the whole loop on this machine: database, a simulated forum with demo content, service and worker.

    It indexes the demo forum, asks a first question, shows the answer, and serves until Ctrl-C.
    """
    sys.exit(asyncio.run(run_demo(settings, once=once, forum_port=forum_port)))
