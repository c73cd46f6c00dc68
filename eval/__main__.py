"""The command line of evaluation, `python -m eval`: each sub-command is a module of eval.commands."""

import os

import click

from service.commands.group import LazyGroup, run

COMMANDS = {
    "retrieve": "How well each system finds the posts that answer.",
    "answer": "How well whole answers do: right, wrong, abstained; citations and support.",
    "gate": "What the gate declines and lets through.",
    "safety": "Probes end to end, gate off and on, per prompt variant.",
    "compare": "Two runs side by side, with intervals and p-values.",
    "calibrate": "Fit the zones on a dataset, and write a profile.",
    "report": "A run as one page to read.",
    "judge": "Hold runs against your limits; what passes may be switched on.",
    "bundled": "Fit the bundled reranker on datasets, and measure it on unseen questions.",
    "new": "Draft a dataset from a forum's own index.",
    "corrections": "Test questions that moderators made of answers, into a dataset.",
}


@click.group(
    cls=LazyGroup,
    package="eval.commands",
    lines=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def evaluate() -> None:
    """Know how good Ariane is on your forum, in your language, with your models.

    Try it on the demo forum: `python -m eval retrieve --dataset eval/demo`.
    """


def main() -> None:
    """Run one command of `python -m eval`."""
    # Read when numpy is loaded: its threads would wait for the cores that the embedder and the database have.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run(evaluate, "python -m eval")


if __name__ == "__main__":
    main()
