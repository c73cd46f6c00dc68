"""`python -m eval gate`: what the input gate declines and lets through."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from service.commands.options import configured
from service.settings import Settings


@click.command("gate")
@click.option(
    "--dataset", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="A dataset folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@configured
def command(settings: Settings, folder: Path, as_json: bool) -> None:
    """Put the messages of a dataset to the gate: what it should decline, and what it should let through.

    Every message that it judges wrongly is listed by its id, with the rule and the words that declined it.
    """
    from eval.datasets import load_dataset, read_gate
    from eval.endtoend.gating import SYSTEM, decide_all, decider, measured_decisions
    from eval.endtoend.recording import recording
    from eval.endtoend.results import show_faults, show_measures, warn
    from eval.measures.rows import GATE
    from eval.runs.shown import report

    dataset = load_dataset(folder)
    warn(dataset.warnings)
    cases = read_gate(dataset)
    run = recording(
        settings,
        dataset,
        command="gate",
        labels=GATE,
        systems={SYSTEM: {}},
        options={},
        resume=None,
        now=datetime.now(UTC),
    )
    with run:
        decided = decide_all(cases, decider(settings))
        for one in decided:
            run.append(GATE, SYSTEM, one)
        measures = measured_decisions(cases, decided, seed=run.record.seed)
        run.finish(measures, now=datetime.now(UTC))
    wrong = [
        {
            "id": case.id,
            "kind": case.kind,
            "lang": case.lang,
            "expect": "decline" if case.declines else "proceed",
            "rule": one.rule,
            "span": one.span,
        }
        for case, one in zip(cases, decided, strict=True)
        if case.declines != one.declined
    ]
    if as_json:
        click.echo(json.dumps(report(run, measures, wrong=wrong), ensure_ascii=False))
    else:
        show_measures(run, measures)
        show_faults("wrong", [f"{one['id']}  {one['kind']}  {one['rule']}  {one['span']}".rstrip() for one in wrong])
