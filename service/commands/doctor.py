"""`ariane doctor`: what is wrong with this installation, and how to mend it."""

import asyncio
import json
from collections.abc import Sequence

import click
from rich.console import Console

from service.commands.options import configured
from service.doctor.check import Check, examine
from service.doctor.checks import CHECKS
from service.doctor.patient import open_patient
from service.doctor.report import as_json, passed, show_checks
from service.settings import Settings


@click.command("doctor")
@click.option("--json", "machine", is_flag=True, help="One JSON object on stdout.")
@configured
def command(settings: Settings, machine: bool) -> int:
    """Check the whole installation and say how to mend what is wrong. Nothing is changed.

    The status is 0 when nothing failed, 1 otherwise.
    """
    checks = asyncio.run(_examine(settings))
    if machine:
        click.echo(json.dumps(as_json(checks), ensure_ascii=False))
    else:
        show_checks(checks, Console(markup=False, highlight=False))
    return 0 if passed(checks) else 1


async def _examine(settings: Settings) -> Sequence[Check]:
    async with open_patient(settings) as patient:
        return await examine(patient, CHECKS)
