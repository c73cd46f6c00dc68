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


@click.command("reconcile")
@click.option(
    "--once", is_flag=True, help="One round, as the worker makes one a minute: what is newest, and a step on."
)
@configured
def command(settings: Settings, once: bool) -> None:
    """Compare the index with the forum and mend it: what webhooks lost, and what no webhook tells.

    It reads every public post and topic once, at the pace of reconcile.requests_per_minute, and may be interrupted.
    """
    report = asyncio.run(_reconcile(settings, once=once))
    if report is None:
        raise Transient("somebody else, a worker perhaps, reconciles this index now: try again later")
    for kind, count in sorted(report.found.items()):
        click.echo(f"{kind}: {count} found, {report.mended[kind]} mended", err=True)
    if report.unread:
        click.echo(f"{report.unread} readings left out: the forum could not give them (logged)", err=True)
    elif not report.found:
        click.echo("the index and the forum agree", err=True)


async def _reconcile(settings: Settings, *, once: bool) -> Report | None:
    per_minute, now = settings.reconcile.requests_per_minute, datetime.now(UTC)
    if not per_minute:
        raise Misconfigured("reconcile.requests_per_minute: 0 allows no reading of the forum")
    async with open_services(settings, "reconcile") as services, open_reconciler(services) as at:
        if once:
            return await reconcile_round(at, steps=steps_of(per_minute), now=now)
        with ProgressBar() as progress:
            return await reconcile_all(at, now=now, progress=progress)
