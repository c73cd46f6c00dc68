"""The command line, `ariane`: each sub-command is a module of service.commands, imported when it is called."""

import click

from service.commands.group import LazyGroup, run

COMMANDS = {
    "demo": "The whole loop on this machine, with a simulated forum.",
    "serve": "The web process: webhook, health and metrics.",
    "worker": "The worker: indexes posts and answers mentions.",
    "migrate": "Bring the database's schema up to date.",
    "backfill": "Fill the index from an archive, the forum, or its database.",
    "reconcile": "Compare the index with the forum, and mend it.",
    "profiles": "Embedding profiles, and which one answers.",
    "flags": "The switches, and who turned them.",
    "members": "Members who are not to be quoted.",
    "export": "All that is kept of a member.",
    "erase": "Forget all that is kept of a member.",
    "signin-link": "A link that signs in to the moderators' pages once.",
    "ask": "One question against the index; nothing is posted.",
    "doctor": "What is wrong with this installation, and how to mend it.",
    "gate": "What the input gate decides on messages.",
    "sanitize": "What would be posted of a model's drafts.",
    "bench": "Measure this machine.",
}
"""Every sub-command with its line of help."""


@click.group(
    cls=LazyGroup,
    package="service.commands",
    lines=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="ariane-forum", prog_name="ariane")
def ariane() -> None:
    """Ariane answers mentions on a Discourse forum with the forum's own threads.

    Try it first: `ariane demo`. On a real forum: `migrate`, `backfill`, then `serve` and `worker`, then `flags`.
    """


def main() -> None:
    """Run one command of `ariane`."""
    run(ariane, "ariane")


if __name__ == "__main__":
    main()
