"""Fill the index from an archive of topics: in batches, with progress, going on where an earlier run stopped."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from service.domain import Category, CategoryId, Topic
from service.errors import Rejected
from service.ingest.archive import ArchivedTopic, GivenVectors, count_topics, fingerprint, read_topics, read_vectors
from service.ingest.crawl_ports import Claims
from service.ingest.eligibility import IndexRules, public_part
from service.ingest.index import embeddable, prepare
from service.ingest.ports import Backfills, Census, Corpus, EmbeddedPassage, IndexedPost, PassageEmbedder
from service.ingest.share import POLL_SECONDS, Unshared, embed_part
from service.ingest.text import digest, passage_texts

TOPICS_A_BATCH = 100


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill works with; `progress` hears (step, done, total)."""

    corpus: Corpus
    backfills: Backfills
    embedder: PassageEmbedder
    rules: IndexRules
    progress: Callable[[str, int, int], None]
    claims: Claims = field(default_factory=Unshared)


@dataclass(frozen=True, slots=True)
class Batch:
    """The next topics of the archive, ready to be stored; `lines` of it were read for them."""

    lines: int
    new_categories: list[Category]
    topics: list[Topic]
    posts: list[IndexedPost]
    passages: list[EmbeddedPassage]


async def backfill_archive(
    archive: Path, *, categories: Sequence[Category] | None, vectors: Path | None, at: Backfill
) -> Census:
    """Store every topic of the archive, then embed what has no vector yet, unless vectors were given.

    `categories` None declares every category public. With given vectors the posts they miss are left to the worker.
    Raises Rejected on a bad file, with the line; what stands before it is stored, and an interrupted run of the same
    files goes on where it stopped.
    """
    given = read_vectors(vectors, at.embedder.profile) if vectors else None
    source = fingerprint(archive, *([vectors] if vectors else []), terms=_terms(categories, at.rules))
    total = count_topics(archive)
    if categories is not None:
        await at.corpus.put_categories(categories)
        await at.corpus.withdraw_private()
    done = await at.backfills.topics_read(source)
    at.progress("topics", done, total)
    batches = _batches(archive, done, await at.corpus.categories(), given, at, all_public=categories is None)
    coming = _next(batches)
    while (batch := await coming) is not None:
        coming = _next(batches)  # made ready in a thread while this one is stored
        try:
            await _store(batch, at)
        except BaseException:
            coming.cancel()
            raise
        done += batch.lines
        await at.backfills.mark_read(source, done)
        at.progress("topics", done, total)
    if given is None:
        await embed_rest(at)
    await at.backfills.settle()
    return await at.corpus.census(at.embedder.profile)


def _terms(categories: Sequence[Category] | None, rules: IndexRules) -> str:
    """What decides, beside the archive, which posts are stored: under other terms it is read again from its start."""
    return repr((categories, sorted(rules.bots), rules.index_banners))


def _next(batches: Iterator[Batch]) -> asyncio.Task[Batch | None]:
    return asyncio.create_task(asyncio.to_thread(next, batches, None))


async def embed_rest(at: Backfill) -> None:
    """Embed every eligible post that has no vector yet; ends when none is left, whoever embedded it."""
    left = (await at.corpus.census(at.embedder.profile)).left_to_embed
    done = 0
    at.progress("vectors", done, left)
    while (embedded := await embed_part(at.corpus, at.embedder, at.claims)) != 0:
        if embedded is None:
            await asyncio.sleep(POLL_SECONDS)
            continue
        done += embedded
        at.progress("vectors", done, max(done, left))


def _batches(
    archive: Path,
    skip: int,
    known: dict[CategoryId, Category],
    given: GivenVectors | None,
    at: Backfill,
    *,
    all_public: bool,
) -> Iterator[Batch]:
    """The slow part of each batch: parsing, cleaning, counting terms, pairing with given vectors; no other I/O."""
    for batch in _read_batches(archive, skip):
        new = _declared_public(batch, known) if all_public else {}
        known |= new
        ready = Batch(len(batch), list(new.values()), [], [], [])
        for archived in batch:
            category = known.get(archived.topic.category_id) if archived.topic.category_id is not None else None
            posts = [prepare(post, archived.topic, category, at.rules) for post in archived.posts]
            ready.topics.append(public_part(archived.topic, category, at.rules))
            ready.posts.extend(posts)
            if given is not None:
                ready.passages.extend(_passages(posts, archived.topic, category, given, at.embedder))
        yield ready


def _read_batches(archive: Path, skip: int) -> Iterator[list[ArchivedTopic]]:
    """The archive's topics by the batch; what stands before a line at fault comes before its Rejected."""
    topics = read_topics(archive, skip=skip)
    fault: Rejected | None = None
    while fault is None:
        batch: list[ArchivedTopic] = []
        try:
            batch.extend(islice(topics, TOPICS_A_BATCH))
        except Rejected as exc:
            fault = exc
        if batch:
            yield batch
        elif fault is None:
            return
    raise fault


def _declared_public(
    batch: Sequence[ArchivedTopic], known: Mapping[CategoryId, Category]
) -> dict[CategoryId, Category]:
    unknown = {one.topic.category_id for one in batch if one.topic.category_id is not None} - known.keys()
    return {i: Category(i, f"category {i}", str(i), None, read_restricted=False) for i in sorted(unknown)}


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
            first, *others = passage_texts(post, embedder)
            if not others:  # one vector is not what several passages need
                passages.append(EmbeddedPassage(post.post_id, 0, digest(first.text), vector))
    return passages


async def _store(batch: Batch, at: Backfill) -> None:
    if batch.new_categories:
        await at.corpus.add_categories(batch.new_categories)
    stored = await at.corpus.put_topics(batch.topics)
    await at.corpus.put_posts(batch.posts)
    if stored < len(batch.topics):  # some were removed since: their posts were decided on by what the archive says
        await at.corpus.withdraw_private()
    if batch.passages:
        await at.corpus.put_passages(at.embedder.profile, batch.passages)
