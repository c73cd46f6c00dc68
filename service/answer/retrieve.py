"""Finds the posts that may answer: nearest vectors and keywords, fused by reciprocal rank (spec P7)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from service.answer.ports import QueryEmbedder, Search
from service.domain import Candidate, Mode, PostId, Question, Trace
from service.errors import Misconfigured, Rejected, Transient
from service.lexer import query_lexemes
from service.settings import Channel, RetrievalSettings
from service.telemetry import went_without


async def retrieve(
    question: Question, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings, trace: Trace
) -> list[Candidate]:
    """At most `candidates` posts of the channels in use, best fused rank first; without the embedder, keywords alone.

    Sets the trace's mode, and its queries. Raises Transient when the index can't be searched.
    """
    trace.queries = [question.text]
    trace.mode = Mode.RERANKED if Channel.VECTOR in settings.channels else Mode.KEYWORD
    rankings = await asyncio.gather(
        *(_search(channel, question, embedder, search, settings, trace) for channel in settings.channels)
    )
    return fuse(rankings, k=settings.rrf_k)[: settings.candidates]


async def _search(
    channel: Channel,
    question: Question,
    embedder: QueryEmbedder,
    search: Search,
    settings: RetrievalSettings,
    trace: Trace,
) -> list[Candidate]:
    match channel:
        case Channel.VECTOR:
            return await _nearest(question, embedder, search, settings, trace)
        case Channel.KEYWORD:
            return await _worded(question, search, settings)
    assert_never(channel)


async def _nearest(
    question: Question, embedder: QueryEmbedder, search: Search, settings: RetrievalSettings, trace: Trace
) -> list[Candidate]:
    try:
        vector = await embedder.embed_query(question.text)
    except (Transient, Rejected, Misconfigured) as exc:
        trace.mode = Mode.KEYWORD
        trace.notes.append(went_without("embedder", exc))
        return []
    return await search.nearest_posts(embedder.profile, vector, settings.candidates, exclude_from=question.exclude_from)


async def _worded(question: Question, search: Search, settings: RetrievalSettings) -> list[Candidate]:
    lexemes = query_lexemes(question.text)
    if not lexemes:
        return []
    return await search.keyword_posts(lexemes, settings.candidates, exclude_from=question.exclude_from)


def fuse(rankings: Sequence[Sequence[Candidate]], *, k: int) -> list[Candidate]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): the sum of 1 / (k + rank), ranks from 1.

    A post found by several channels keeps each one's score. Equal sums go to the lower post id.
    """
    found: dict[PostId, Candidate] = {}
    for ranking in rankings:
        for rank, candidate in enumerate(ranking, start=1):
            known = found.get(candidate.post_id, candidate)
            found[candidate.post_id] = replace(
                known,
                cosine=candidate.cosine if known.cosine is None else known.cosine,
                bm25=candidate.bm25 if known.bm25 is None else known.bm25,
                fused=(known.fused if candidate.post_id in found else 0.0) + 1 / (k + rank),
            )
    return sorted(found.values(), key=lambda candidate: (-candidate.fused, candidate.post_id))
