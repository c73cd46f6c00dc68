"""Finds the posts that may answer: whole topics by several channels, fused, each by its best post (spec P7)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.answer.ports import Excluded, QueryEmbedder, Search
from service.domain import Candidate, Mode, Question, TopicHit, TopicId, TopicScores, Trace, Vector
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import lexemes
from service.settings import Channel, RetrievalSettings
from service.telemetry import went_without

BY_VECTOR = frozenset({Channel.VECTOR, Channel.TOPIC_MEAN, Channel.FIRST_POST})
"""The channels that need the embedder."""

POSTS = 4
TOPICS = 16
"""How many times the wanted number of candidates a channel looks deep, in posts and in topics."""

SEARCHES_AT_ONCE = 4
"""How many of a question's searches run at a time, each on a connection of its own: two questions fill a pool of 8."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query as channels get it: its vector (None: none, or no embedder) and its lexemes, repeats counting.

    `turns` are the searches that its question may begin now.
    """

    exclude_from: Excluded
    turns: asyncio.Semaphore
    vector: asyncio.Task[Vector | None]
    words: asyncio.Task[list[str]]


async def retrieve(
    question: Question, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings, trace: Trace
) -> list[Candidate]:
    """The best post of at most `candidates` topics, best fused rank first; without vectors, by keywords alone.

    Whether any post has a vector, the channels tell that look for them. A condensed question is searched, and so is the
    message alone, whose ranks count for `message_percent`; posts are then chosen and scored by the condensed one. Sets
    the trace's mode and queries. Raises Transient when the index can't be searched.
    """
    trace.queries = list(question.queries)
    by_vector = bool(BY_VECTOR.intersection(settings.channels))
    trace.mode = Mode.RERANKED if by_vector else Mode.KEYWORD
    vectors = asyncio.create_task(_vectors(question.queries if by_vector else (), embedder, trace))
    turns = asyncio.Semaphore(SEARCHES_AT_ONCE)
    asked = [
        _Asked(
            question.exclude_from,
            turns,
            asyncio.create_task(_one_of(vectors, n)),
            asyncio.create_task(_words(one, search, settings.keyword_words, turns)),
        )
        for n, one in enumerate(question.queries)
    ]
    searches = [
        asyncio.create_task(_in_turn(channel, one, embedder, search, settings))
        for one in asked
        for channel in settings.channels
    ]
    try:
        found = await asyncio.gather(*searches)
        given = await asked[0].vector, await asked[0].words
    finally:
        # First the searches: one that goes on after another has failed holds a connection for nobody.
        await _ended(*searches, vectors, *(task for one in asked for task in (one.vector, one.words)))
    channels = len(settings.channels)
    rankings = [
        dict(zip(settings.channels, found[start : start + channels], strict=True))
        for start in range(0, len(found), channels)
    ]
    if given[0] is not None and not any(ranking.get(channel) for ranking in rankings for channel in BY_VECTOR):
        nothing = Transient(f"no post that may answer has a vector of {embedder.profile.name} yet")
        trace.mode = Mode.KEYWORD
        trace.notes.append(went_without("vectors", nothing))
    fused = fuse(rankings[0], settings.weights, k=settings.rrf_k)
    for of_message in rankings[1:]:
        fused = _raised(fused, fuse(of_message, settings.weights, k=settings.rrf_k), settings.message_percent / 100)
    topics, posts = list(fused), list[Candidate]()
    # A topic of nothing but questions to us has no post to offer: the next in turn has its place.
    for start in (0, settings.candidates):
        chosen = topics[start : start + settings.candidates]
        if chosen and len(posts) < settings.candidates:
            posts += await search.best_posts(chosen, embedder.profile, *given, exclude_from=question.exclude_from)
    by_words = {hit.topic_id: hit.score for hit in rankings[0].get(Channel.TOPIC_KEYWORD, ())}
    scored = [_with_scores(one, fused[one.topic_id], by_words) for one in posts]
    return sorted(scored, key=lambda one: (-one.fused, one.topic_id))[: settings.candidates]


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _vectors(queries: Sequence[str], embedder: QueryEmbedder, trace: Trace) -> list[Vector]:
    """The vector of each query; none when the embedder is down, which is then told once."""
    try:
        return [await embedder.embed_query(query) for query in queries]
    except (Transient, Rejected, Misconfigured) as exc:
        trace.mode = Mode.KEYWORD
        trace.notes.append(went_without("embedder", exc))
        return []


async def _one_of(vectors: asyncio.Task[list[Vector]], n: int) -> Vector | None:
    known = await vectors
    return known[n] if known else None


async def _words(query: str, search: Search, limit: int, turns: asyncio.Semaphore) -> list[str]:
    asked = lexemes(query)
    if not asked:
        return []
    async with turns:
        return await search.asked_words(asked, limit)


async def _in_turn(
    channel: Channel, asked: _Asked, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings
) -> list[TopicHit]:
    await (asked.vector if channel in BY_VECTOR else asked.words)  # who waits for these takes no turn
    async with asked.turns:
        return await _search(channel, asked, embedder, search, settings)


async def _search(
    channel: Channel, asked: _Asked, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings
) -> list[TopicHit]:
    posts, topics = POSTS * settings.candidates, TOPICS * settings.candidates
    exclude = asked.exclude_from
    if channel in BY_VECTOR:
        vector = await asked.vector
        if vector is None:
            return []
        if channel is Channel.VECTOR:
            near = await search.nearest_posts(embedder.profile, vector, posts, exclude_from=exclude)
            return _topics(near, [one.cosine or 0.0 for one in near])
        nearest = search.mean_topics if channel is Channel.TOPIC_MEAN else search.first_post_topics
        return await nearest(embedder.profile, vector, topics, exclude_from=exclude)
    words = await asked.words
    if not words:
        return []
    if channel is Channel.KEYWORD:
        worded = await search.keyword_posts(words, posts, exclude_from=exclude)
        return _topics(worded, [one.bm25 or 0.0 for one in worded])
    return await search.keyword_topics(words, topics, exclude_from=exclude)


def _topics(posts: Sequence[Candidate], scores: Sequence[float]) -> list[TopicHit]:
    """The topics of posts, best first, in the order of their first."""
    best: dict[TopicId, TopicHit] = {}
    for post, score in zip(posts, scores, strict=True):
        best.setdefault(post.topic_id, TopicHit(post.topic_id, score))
    return list(best.values())


def fuse(
    rankings: Mapping[Channel, Sequence[TopicHit]], weights: Mapping[Channel, float], *, k: int
) -> dict[TopicId, float]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): the sum of weight / (k + rank), ranks from 1.

    Best topic first; equal sums go to the lower id. A channel without a weight has 1.
    """
    sums: dict[TopicId, float] = {}
    for channel, ranking in rankings.items():
        for rank, hit in enumerate(ranking, start=1):
            sums[hit.topic_id] = sums.get(hit.topic_id, 0.0) + weights.get(channel, 1.0) / (k + rank)
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _raised(fused: Mapping[TopicId, float], more: Mapping[TopicId, float], weight: float) -> dict[TopicId, float]:
    sums = {topic_id: fused.get(topic_id, 0.0) + weight * more.get(topic_id, 0.0) for topic_id in {**fused, **more}}
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _with_scores(candidate: Candidate, fused: float, by_words: Mapping[TopicId, float]) -> Candidate:
    scores = candidate.topic or TopicScores()
    return replace(candidate, fused=fused, topic=replace(scores, words=by_words.get(candidate.topic_id)))
