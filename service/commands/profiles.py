"""`ariane profiles`: embedding profiles, how much is stored under each, and which one answers."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.table import Table

from service.commands.options import config_option, configured
from service.inference.references import ReferencePair
from service.proof import scored_pairs
from service.settings import Settings
from service.store.profiles import ProfileStore, StoredProfile
from service.store.quarantine import QuarantineStore
from service.wiring.database import open_database
from service.wiring.models import unproved_models


@click.group("profiles", invoke_without_command=True)
@config_option
@click.pass_context
def command(context: click.Context, config: Path | None) -> None:
    """List the embedding profiles (model, text strategy, version).

    `profiles activate` builds one's index, `profiles drop` removes one.
    """
    del config  # the sub-command looks for it here
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("list")
@configured
def show(settings: Settings) -> None:
    """List the profiles with what is stored under each."""
    stored = asyncio.run(_list(settings))
    if not stored:
        click.echo("no profile is stored yet: the first backfill makes one", err=True)
        return
    table = Table("profile", "posts", "passages", "dimensions", "index", "", box=None, padding=(0, 2, 0, 0))
    for one in stored:
        built = one.profile.index_kind if one.index_built else f"{one.profile.index_kind} (not built)"
        state = "active" if one.active else ""
        table.add_row(
            one.profile.name, f"{one.posts:,}", f"{one.passages:,}", str(one.profile.dimensions), built, state
        )
    Console(markup=False).print(table)


@command.command("activate")
@click.argument("name")
@configured
def activate(settings: Settings, name: str) -> None:
    """Build the index of the profile NAME as models.index_kind says, then make it the one that answers.

    Posts that its model failed on are tried again.
    """
    asyncio.run(_activate(settings, name))
    click.echo(f"{name} is active", err=True)


@command.command("drop")
@click.argument("name")
@configured
def drop(settings: Settings, name: str) -> None:
    """Drop all vectors of the profile NAME, which must not be the active one, and its index.

    Take it out of the configuration first: a process that still embeds under it makes it anew.
    """
    dropped = asyncio.run(_drop(settings, name))
    click.echo(f"{name} is gone, with {dropped.passages:,} vectors of {dropped.posts:,} posts", err=True)


@command.command("references")
@configured
def references(settings: Settings) -> None:
    """Print reference pairs with the logits that the reranker gives them now, as YAML.

    Put them into the reranker's profile in models.profiles_file: from then on a server that scores them otherwise is
    not used.
    """
    pairs = asyncio.run(_score_pairs(settings))
    click.echo(yaml.safe_dump({"references": [asdict(one) for one in pairs]}, allow_unicode=True, sort_keys=False))


async def _score_pairs(settings: Settings) -> list[ReferencePair]:
    async with AsyncExitStack() as stack:
        return await scored_pairs(unproved_models(settings.models, stack).reranker)


async def _list(settings: Settings) -> list[StoredProfile]:
    async with open_database(settings, "profiles") as pool:
        return await ProfileStore(pool).list_profiles()


async def _drop(settings: Settings, name: str) -> StoredProfile:
    async with open_database(settings, "profiles") as pool:
        with Console(stderr=True).status("dropping; reading and writing go on meanwhile"):
            return await ProfileStore(pool).drop(name)


async def _activate(settings: Settings, name: str) -> None:
    async with open_database(settings, "profiles") as pool:
        with Console(stderr=True).status("building the index; writing goes on meanwhile"):
            await ProfileStore(pool).activate(name)
        chosen = await ProfileStore(pool).active_profile()
        if chosen is not None:
            await QuarantineStore(pool).release(chosen.profile)
