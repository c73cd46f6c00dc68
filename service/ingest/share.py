"""Embed what an index lacks together with whoever else does: each takes another part of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby

from service.errors import ArianeError
from service.ingest.crawl_ports import Claims
from service.ingest.embed import embed_anew
from service.ingest.ports import Corpus, PassageEmbedder, TopicPost

PART_IDS = 256
"""Ids of one part, which one process claims at a time."""
LOOKED_AT = 2048
"""Posts looked through for a part that nobody works on: eight processes find one each."""
POLL_SECONDS = 1.0


class Unshared:
    """The claims of a process that fills its index alone."""

    @asynccontextmanager
    async def claim(self, number: int) -> AsyncIterator[bool]:
        yield True


async def embed_part(corpus: Corpus, embedder: PassageEmbedder, claims: Claims) -> int | None:
    """Embed a part of what is pending; how many posts, 0 where none is left, None where others hold all parts."""
    parts = _parts(await corpus.pending(embedder.profile, LOOKED_AT))
    for number in parts:
        async with claims.claim(number) as ours:
            if ours:  # looked up again: another may have embedded it since
                part = _parts(await corpus.pending(embedder.profile, LOOKED_AT)).get(number, [])
                if part:
                    return await embed_anew(part, corpus, embedder)
    return None if parts else 0


async def embed_part_of_each(corpus: Corpus, embedders: Sequence[PassageEmbedder], claims: Claims) -> int:
    """Embed a part under the profile of each; how many posts, 0 where nothing is left to us.

    One that fails keeps no other from its part, and is raised at the end.
    """
    done, failed = 0, None
    for embedder in embedders:
        try:
            done += await embed_part(corpus, embedder, claims) or 0
        except ArianeError as exc:
            failed = failed or exc
    if failed is not None:
        raise failed
    return done


async def embed_meanwhile(reading: Awaitable[None], corpus: Corpus, embedder: PassageEmbedder, claims: Claims) -> None:
    """Read, and embed what was read while the forum lets us wait; an embedder that is down doesn't end the reading."""
    task = asyncio.ensure_future(reading)
    try:
        while not task.done():
            if not await embed_part(corpus, embedder, claims):
                await asyncio.wait({task}, timeout=POLL_SECONDS)
    except ArianeError:
        await task
        raise
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    await task


def _parts(posts: Sequence[TopicPost]) -> dict[int, list[TopicPost]]:
    return {number: list(part) for number, part in groupby(posts, key=lambda post: post.post_id // PART_IDS)}
