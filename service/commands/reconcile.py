"""`ariane reconcile`: compare the index with the forum and mend it, the whole of it or one round."""

import asyncio
from datetime import UTC, datetime

import click

from service.commands.options import configured
from service.errors import Misconfigured, Transient
from service.ingest.mend import Report
from service.ingest.reconcile import reconcile_all, reconcile_round
from service.progress import ProgressBar
from service.settings import Settings
from service.wiring.reconcile import open_reconciler, steps_of
from service.wiring.services import open_services

WAIT_SECONDS = 120.0
"""Two rounds of a worker, which take about a minute each."""
WAITS = "a worker, perhaps, reconciles this index now: waiting for its round to end, two minutes at most"


@click.command("reconcile")
@click.option(
    "--once", is_flag=True, help="One round, as the worker makes one a minute: what is newest, and a step on."
)
@configured
def command(settings: Settings, once: bool) -> None:
    """Compare the index with the forum and mend it: what webhooks lost, and what no webhook tells.

    It reads every public post and topic once, at the pace of reconcile.requests_per_minute, and may be interrupted.
    """
    report = asyncio.run(reconciled(settings, once=once))
    for kind, count in sorted(report.found.items()):
        click.echo(f"{kind}: {count} found, {report.mended[kind]} mended", err=True)
    if report.unread:
        click.echo(f"{report.unread} readings left out: the forum could not give them (logged)", err=True)
    elif not report.found:
        click.echo("the index and the forum agree", err=True)


async def reconciled(settings: Settings, *, once: bool) -> Report:
    """What was found and mended; raises Transient where others hold the index for longer than WAIT_SECONDS."""
    per_minute = settings.reconcile.requests_per_minute
    if not per_minute:
        raise Misconfigured("reconcile.requests_per_minute: 0 allows no reading of the forum")
    async with open_services(settings, "reconcile") as services, open_reconciler(services) as at:

        async def read(wait_seconds: float) -> Report | None:
            now = datetime.now(UTC)
            if once:
                return await reconcile_round(at, steps=steps_of(per_minute), now=now, wait_seconds=wait_seconds)
            with ProgressBar() as progress:
                return await reconcile_all(at, now=now, progress=progress, wait_seconds=wait_seconds)

        report = await read(0.0)
        if report is None:
            click.echo(WAITS, err=True)
            report = await read(WAIT_SECONDS)
    if report is None:
        raise Transient("somebody else, a worker perhaps, reconciles this index now: try again later")
    return report
