"""Fill the index from an archive of topics: in batches, with progress, going on where an earlier run stopped."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from service.domain import Category, CategoryId, Topic
from service.ingest.archive import ArchivedTopic, GivenVectors, count_topics, fingerprint, read_topics, read_vectors
from service.ingest.eligibility import IndexRules, public_part
from service.ingest.embed import embed_pending
from service.ingest.index import embeddable, prepare
from service.ingest.ports import Backfills, Census, Corpus, EmbeddedPassage, IndexedPost, PassageEmbedder
from service.ingest.text import digest, embedded_text

TOPICS_A_BATCH = 100


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill works with; `progress` hears (step, done, total)."""

    corpus: Corpus
    backfills: Backfills
    embedder: PassageEmbedder
    rules: IndexRules
    progress: Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Batch:
    topics: list[Topic]
    posts: list[IndexedPost]
    passages: list[EmbeddedPassage]


async def backfill_archive(
    archive: Path, *, categories: Sequence[Category] | None, vectors: Path | None, at: Backfill
) -> Census:
    """Store every topic of the archive, then embed what has no vector yet, unless vectors were given.

    `categories` None declares every category public. With given vectors the posts they miss are left to the worker.
    Raises Rejected on a bad file, with the line; what was stored before it stays, and the next run goes on there.
    """
    given = read_vectors(vectors, at.embedder.profile) if vectors else None
    source = fingerprint(archive, *([vectors] if vectors else []))
    total = count_topics(archive)
    if categories is not None:
        await at.corpus.put_categories(categories)
    done = await at.backfills.topics_read(source)
    at.progress("topics", done, total)
    topics = read_topics(archive, skip=done)
    while batch := list(islice(topics, TOPICS_A_BATCH)):
        if categories is None:
            await _declare_public(batch, at.corpus)
        known = await at.corpus.categories()
        await _store(await asyncio.to_thread(_prepare, batch, known, given, at), at)
        done += len(batch)
        await at.backfills.mark_read(source, done)
        at.progress("topics", done, total)
    if given is None:
        await embed_rest(at)
    return await at.corpus.census(at.embedder.profile)


async def embed_rest(at: Backfill) -> None:
    """Embed every eligible post that has no vector yet."""
    left = (await at.corpus.census(at.embedder.profile)).left_to_embed
    done = 0
    at.progress("vectors", done, left)
    while embedded := await embed_pending(at.corpus, at.embedder):
        done += embedded
        at.progress("vectors", done, max(done, left))


async def _declare_public(batch: Sequence[ArchivedTopic], corpus: Corpus) -> None:
    known = await corpus.categories()
    unknown = {one.topic.category_id for one in batch if one.topic.category_id is not None} - known.keys()
    if unknown:
        new = [Category(CategoryId(i), f"category {i}", str(i), None, read_restricted=False) for i in sorted(unknown)]
        await corpus.put_categories([*known.values(), *new])


def _prepare(
    batch: Sequence[ArchivedTopic],
    known: Mapping[CategoryId, Category],
    given: GivenVectors | None,
    at: Backfill,
) -> Batch:
    """The slow part of a batch, without I/O: cleaning, counting terms, pairing with given vectors."""
    result = Batch([], [], [])
    for archived in batch:
        category = known.get(archived.topic.category_id) if archived.topic.category_id is not None else None
        posts = [prepare(post, archived.topic, category, at.rules) for post in archived.posts]
        result.topics.append(public_part(archived.topic, category, at.rules))
        result.posts.extend(posts)
        if given is not None:
            result.passages.extend(_passages(posts, archived.topic, category, given, at.embedder))
    return result


def _passages(
    posts: Sequence[IndexedPost],
    topic: Topic,
    category: Category | None,
    given: GivenVectors,
    embedder: PassageEmbedder,
) -> list[EmbeddedPassage]:
    vectors = {one.post.id: given.of(one.post) for one in posts}
    passages = []
    for post in embeddable(posts, topic, category):
        vector = vectors[post.post_id]
        if vector is not None:
            text = embedder.truncate(embedded_text(post, embedder.profile.strategy))
            passages.append(EmbeddedPassage(post.post_id, 0, digest(text), vector))
    return passages


async def _store(batch: Batch, at: Backfill) -> None:
    await at.corpus.put_topics(batch.topics)
    await at.corpus.put_posts(batch.posts)
    if batch.passages:
        await at.corpus.put_passages(at.embedder.profile, batch.passages)
