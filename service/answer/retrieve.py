"""Finds the posts that may answer: whole topics by several channels, fused, each by its best post (spec P7)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.answer.distinct import distinct
from service.answer.ports import QueryEmbedder, Search
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

SPARE = 5
"""Topics beyond the wanted number, in the places of those whose post says what another one does."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as channels get it: its vector (None: none, or no embedder) and its lexemes, repeats counting."""

    question: Question
    vector: asyncio.Task[Vector | None]
    words: asyncio.Task[list[str]]


async def retrieve(
    question: Question, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings, trace: Trace
) -> list[Candidate]:
    """The best post of at most `candidates` topics, best fused rank first; without the embedder, by keywords alone.

    Sets the trace's mode, and its queries. Raises Transient when the index can't be searched.
    """
    trace.queries = [question.text]
    by_vector = bool(BY_VECTOR.intersection(settings.channels))
    trace.mode = Mode.RERANKED if by_vector else Mode.KEYWORD
    vector = asyncio.create_task(_vector(question, embedder, trace, wanted=by_vector))
    words = asyncio.create_task(_words(question, search))
    try:
        asked = _Asked(question, vector, words)
        found = await asyncio.gather(*(_search(one, asked, embedder, search, settings) for one in settings.channels))
        given = await vector, await words
    finally:
        await _ended(vector, words)
    rankings = dict(zip(settings.channels, found, strict=True))
    fused = fuse(rankings, settings.weights, k=settings.rrf_k)
    chosen = list(fused)[: settings.candidates + SPARE]
    if not chosen:
        return []
    posts = await search.best_posts(
        chosen,
        embedder.profile,
        *given,
        rrf_k=settings.rrf_k,
        exclude_from=question.exclude_from,
    )
    by_words = {hit.topic_id: hit.score for hit in rankings.get(Channel.TOPIC_KEYWORD, ())}
    scored = [_with_scores(one, fused[one.topic_id], by_words) for one in posts]
    return distinct(sorted(scored, key=lambda one: (-one.fused, one.topic_id)))[: settings.candidates]


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _vector(question: Question, embedder: QueryEmbedder, trace: Trace, *, wanted: bool) -> Vector | None:
    if not wanted:
        return None
    try:
        return await embedder.embed_query(question.text)
    except (Transient, Rejected, Misconfigured) as exc:
        trace.mode = Mode.KEYWORD
        trace.notes.append(went_without("embedder", exc))
        return None


async def _words(question: Question, search: Search) -> list[str]:
    asked = lexemes(question.text)
    return await search.respelled(asked) if asked else []


async def _search(
    channel: Channel, asked: _Asked, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings
) -> list[TopicHit]:
    posts, topics = POSTS * settings.candidates, TOPICS * settings.candidates
    exclude = asked.question.exclude_from
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


def _with_scores(candidate: Candidate, fused: float, by_words: Mapping[TopicId, float]) -> Candidate:
    scores = candidate.topic or TopicScores()
    return replace(candidate, fused=fused, topic=replace(scores, words=by_words.get(candidate.topic_id)))
