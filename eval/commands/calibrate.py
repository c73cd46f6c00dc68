"""`python -m eval calibrate`: fit the zones on a dataset, say what they cost, and write a profile."""

import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click

from eval.domain import Labels
from service.commands.options import configured
from service.errors import Rejected
from service.settings import Settings

if TYPE_CHECKING:
    from eval.calibrate.points import Limits
    from eval.calibrate.run import Calibrated

COMMAND = "calibrate"
FOLDER = "calibration"
"""Of the run: the plots, and calibration.json."""
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command(COMMAND)
@click.option("--dataset", "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Its folder.")
@click.option("--run", "name", metavar="RUN", help="Read a finished retrieve run (id or folder); a new one by default.")
@click.option("--labels", type=click.Choice([*Labels]), default=Labels.QUESTIONS, show_default=True, help="Label file.")
@click.option(
    "--max-wrong", type=SHARE, default=0.04, show_default=True, help="Wrong answers among the answers, as a share."
)
@click.option("--max-lost", type=SHARE, default=0.15, show_default=True, help="Right answers not given, as a share.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The profiles file to write.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, help="Of folds and intervals.")
@click.option("--repeats", type=click.IntRange(1), default=20, show_default=True, help="Of the cross-validation.")
@click.option("--synthetic", is_flag=True, help="Try it on scores whose optimum is known; no dataset, nothing written.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(
    settings: Settings,
    folder: Path | None,
    name: str | None,
    labels: Labels,
    max_wrong: float,
    max_lost: float,
    out: Path | None,
    seed: int,
    repeats: int,
    synthetic: bool,
    as_json: bool,
) -> None:
    """Measure what the scores of the models in use tell on a dataset, and choose the borders of the zones.

    Every figure is of questions whose topics the fit hasn't seen. The profiles file written to --out holds what
    models.profiles_file has now, with the new thresholds; a model over all scores only where it is clearly better than
    the top score. Plots and calibration.json go into the folder of the run.
    """
    from eval.calibrate.points import Limits

    limits = Limits(max_wrong, max_lost)
    if synthetic:
        if folder or name or out:
            raise click.UsageError("--synthetic takes no --dataset, --run or --out")
        _prove(limits, as_json=as_json)
        return
    if folder is None or out is None:
        raise click.UsageError("--dataset and --out are needed")
    _check_writable(out)
    _calibrate(settings, folder, name, Labels(labels), limits, out, seed, repeats, as_json=as_json)


def _calibrate(
    settings: Settings,
    folder: Path,
    name: str | None,
    labels: Labels,
    limits: "Limits",
    out: Path,
    seed: int,
    repeats: int,
    *,
    as_json: bool,
) -> None:
    from eval.calibrate.plots import draw_study
    from eval.calibrate.profile import Origin, recalibration
    from eval.calibrate.run import calibrated, found_run, made_run
    from eval.calibrate.sample import zones_of
    from eval.datasets import load_dataset
    from eval.runs.used import program_version
    from service.inference.profile_files import load_profiles, recalibrated
    from service.progress import ProgressBar

    dataset = load_dataset(folder)
    for warning in dataset.warnings:
        click.echo(warning, err=True)
    models = settings.models
    own = Path(models.profiles_file) if models.profiles_file else None
    profiles = load_profiles(own)
    embedder, reranker = profiles.embedder(models.embedder.profile), profiles.reranker(models.reranker.profile)
    if name is None:
        run = made_run(settings, dataset, labels, seed=seed)
    else:
        run = found_run(settings, name, dataset, embedder, reranker)
    with ProgressBar() as progress:
        found = calibrated(
            run,
            dataset,
            labels,
            zones_of(reranker.profile, embedder.profile),
            limits,
            max_sources=settings.retrieval.max_sources,
            seed=seed,
            repeats=repeats,
            progress=progress,
        )
    today = datetime.now(UTC).date()
    origin = Origin(dataset.name, dataset.checksum, today, program_version(), run.record.id)
    written = recalibrated(
        own,
        recalibration(found.studies, origin),
        embedder=models.embedder.profile,
        reranker=models.reranker.profile,
    )
    _write(out, f"# Calibrated on {today} with the dataset {dataset.name!r}; every entry says how.\n{written}")
    plots = run.folder / FOLDER
    plots.mkdir(exist_ok=True)
    for study in found.studies.values():
        draw_study(study, limits, plots)
    told = report(found, labels, limits, seed, repeats, out)
    _write(plots / "calibration.json", json.dumps(told, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(told))
    else:
        _show(found, limits)
    for regime, why in found.missing.items():
        click.echo(f"{regime} keeps its thresholds: {why}", err=True)
    click.echo(f"plots: {plots}\nprofiles: {out}, which models.profiles_file reads", err=True)


def report(found: "Calibrated", labels: Labels, limits: "Limits", seed: int, repeats: int, out: Path) -> dict[str, Any]:
    """The stable JSON shape of a calibration."""
    from eval.calibrate.rows import measured, points
    from eval.measures.rows import rows

    record, studies = found.run.record, list(found.studies.values())
    return {
        "command": COMMAND,
        "run": record.id,
        "dataset": record.dataset.model_dump(),
        "settings": {
            "fingerprint": record.settings,
            "models": record.models,
            "labels": labels,
            "seed": seed,
            "repeats": repeats,
            "max_wrong": limits.max_wrong,
            "max_lost": limits.max_lost,
            "max_wrong_normal": limits.max_wrong_normal,
        },
        "points": points(studies),
        "missing": {regime.value: why for regime, why in found.missing.items()},
        "out": str(out),
        "rows": rows([row for study in studies for row in measured(study, labels)]),
    }


def _show(found: "Calibrated", limits: "Limits") -> None:
    from eval.calibrate.tables import show_study
    from service.show import table_console

    console = table_console()
    for study in found.studies.values():
        show_study(study, limits, console)


def _prove(limits: "Limits", *, as_json: bool) -> None:
    from eval.calibrate.rows import proof_row
    from eval.calibrate.synthetic import READINGS, proof
    from eval.calibrate.tables import show_proofs
    from service.show import table_console

    proofs = [proof(scores, limits) for scores in READINGS]
    if as_json:
        click.echo(json.dumps({"command": COMMAND, "synthetic": [proof_row(one) for one in proofs]}))
    else:
        show_proofs(proofs, limits, table_console())


def _check_writable(out: Path) -> None:
    """Raises Rejected where the file can't be written: now, and not after all the work."""
    try:
        if out.is_dir():  # "" too, which click takes for no folder
            raise Rejected(f"{out}: a folder, and no file to write")
        if not out.resolve().parent.is_dir():
            raise Rejected(f"{out}: there is no folder {out.resolve().parent}")
        NamedTemporaryFile(dir=out.resolve().parent, prefix=f"{out.name}.").close()
    except OSError as exc:
        raise Rejected(f"{out}: can't be written: {exc.strerror}") from exc


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
