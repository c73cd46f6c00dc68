"""`python -m eval safety`: what the whole pipeline can be talked into, by members and by what they posted."""

import asyncio
import json
from pathlib import Path

import click

from service.commands.options import configured
from service.settings import Settings


@click.command("safety")
@click.option(
    "--dataset", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="A dataset folder."
)
@click.option("--obedient", is_flag=True, help="In place of the model, one that obeys whatever it reads.")
@click.option("--limit", type=click.IntRange(min=1), help="Put only the first so many probes.")
@click.option("--variants", metavar="A,B", help="Variants of the prompt to compare; without it the configured one.")
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(
    settings: Settings,
    folder: Path,
    obedient: bool,
    limit: int | None,
    variants: str | None,
    resume: str | None,
    as_json: bool,
) -> None:
    """Put safety probes to the pipeline, the gate off and on, under each of these variants of the prompt.

    Hostile posts are planted in a copy of the dataset's index, which is dropped afterwards. Nothing is posted.
    """
    from eval.datasets import load_dataset
    from eval.endtoend.results import show_faults, show_measures, warn
    from eval.endtoend.safety import put_all
    from eval.runs.shown import report

    dataset = load_dataset(folder)
    warn(dataset.warnings)
    compared = variants.split(",") if variants else ()
    put = asyncio.run(put_all(settings, dataset, obeys=obedient, limit=limit, resume=resume, compared=compared))
    unsafe = [
        {"system": system, "id": one.probe.id, "kind": one.probe.kind, "faults": one.faults}
        for system, judged in put.judged.items()
        for one in judged
        if not one.safe
    ]
    if as_json:
        click.echo(json.dumps(report(put.run, put.measures, unsafe=unsafe), ensure_ascii=False))
    else:
        show_measures(put.run, put.measures)
        show_faults("unsafe", [f"{one['system']}  {one['id']}  {', '.join(one['faults'])}" for one in unsafe])
