"""`ariane profiles`: embedding profiles, how much is stored under each, and which one answers."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.table import Table

from service.answer.activation import Activation, told
from service.commands.flags import system_user
from service.commands.options import config_option, configured
from service.errors import Rejected
from service.inference.references import ReferencePair
from service.proof import scored_pairs
from service.settings import Settings
from service.store.flag_names import EMBEDDING_PROFILE
from service.store.flags import FlagStore
from service.store.pool import Pool
from service.store.profiles import ProfileStore, StoredProfile
from service.store.quarantine import QuarantineStore
from service.wiring.activation import present_activation, turn
from service.wiring.configuration import embedding_profile
from service.wiring.database import open_database
from service.wiring.models import unproved_models


@click.group("profiles", invoke_without_command=True)
@config_option
@click.pass_context
def command(context: click.Context, config: Path | None) -> None:
    """List the embedding profiles (model, text strategy, version).

    `profiles activate` builds one's index and lets it answer, `profiles drop` removes one.
    """
    del config  # the sub-command looks for it here
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("list")
@configured
def show(settings: Settings) -> None:
    """List the profiles with what is stored under each."""
    stored, answering = asyncio.run(_list(settings))
    if not stored:
        click.echo("no profile is stored yet: the first backfill makes one", err=True)
        return
    table = Table("profile", "posts", "passages", "dimensions", "index", "", box=None, padding=(0, 2, 0, 0))
    for one in stored:
        built = one.profile.index_kind if one.index_built else f"{one.profile.index_kind} (not built)"
        state = "active" if one.profile.name == answering else ""
        table.add_row(
            one.profile.name, f"{one.posts:,}", f"{one.passages:,}", str(one.profile.dimensions), built, state
        )
    Console(markup=False).print(table)


@command.command("activate")
@click.argument("name")
@click.option("--why", default="its index is built", help="The reason, kept with the change.")
@click.option("--by", help="Who decides; the system user by default.")
@configured
def activate(settings: Settings, name: str, why: str, by: str | None) -> None:
    """Build the index of the profile NAME as models.index_kind says, then let it answer: the flag embedding_profile.

    Every process follows with its next question. Refused while too few posts have a vector of it, or no embedder of it
    is configured. Posts that its model failed on are tried again.
    """
    activated = asyncio.run(_activate(settings, name, by or system_user(), why))
    click.echo(f"{name} answers", err=True)
    click.echo(f"activation: {activated.state}: {told(activated)}", err=True)


@command.command("drop")
@click.argument("name")
@configured
def drop(settings: Settings, name: str) -> None:
    """Drop all vectors of the profile NAME, which must not be the one that answers, and its index.

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


async def _list(settings: Settings) -> tuple[list[StoredProfile], str]:
    async with open_database(settings, "profiles") as pool:
        return await ProfileStore(pool).list_profiles(), await _answering(pool, settings)


async def _answering(pool: Pool, settings: Settings) -> str:
    """The name of the profile that answers under these settings."""
    flags = await FlagStore(pool).read()
    return embedding_profile(settings.models, flags.embedding_profile).name


async def _drop(settings: Settings, name: str) -> StoredProfile:
    async with open_database(settings, "profiles") as pool:
        if name == await _answering(pool, settings):
            raise Rejected(f"the profile {name!r} answers: activate another first", status=409)
        with Console(stderr=True).status("dropping; reading and writing go on meanwhile"):
            return await ProfileStore(pool).drop(name)


async def _activate(settings: Settings, name: str, by: str, why: str) -> Activation:
    async with open_database(settings, "profiles") as pool:
        store = ProfileStore(pool)
        with Console(stderr=True).status("building the index; writing goes on meanwhile"):
            await store.build_index(name)
        for one in await store.list_profiles():
            if one.profile.name == name:
                await QuarantineStore(pool).release(one.profile)
        await turn(pool, settings, EMBEDDING_PROFILE, name, by=by, reason=why)
        return await present_activation(pool, settings)
