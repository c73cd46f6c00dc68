"""Holds a draft against its sources without a model: what they don't say is dropped, what they barely say is hedged."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.answer.markup.tree import Block, citations
from service.answer.markup.write import write
from service.answer.messages import Message, message
from service.answer.ports import SentenceEmbedder
from service.answer.sanitize import clean_blocks
from service.answer.support.claims import Evidence, Judgement, Support, judge, judge_code, read_source
from service.answer.support.closeness import Compared, affordable, closeness, comparison
from service.answer.support.sentences import Claim, claims, revised
from service.domain import Draft, Question, Source, Trace, Vector
from service.errors import Misconfigured, Rejected, Transient
from service.telemetry import log

MOST_CLAIMS = 100
"""Different sentences judged of one draft: no answer comes near, and what is beyond goes unjudged, so not at all."""


@dataclass(frozen=True, slots=True)
class Held:
    """A draft after the check: as it may be posted, whether a sentence that cites is left, and what became of each."""

    draft: Draft
    stands: bool
    judged: Mapping[Claim, Judgement]


async def hold(
    question: Question,
    draft: Draft,
    sources: Sequence[Source],
    embedder: SentenceEmbedder | None,
    trace: Trace,
    *,
    seed: int,
) -> Held:
    """Check all that a written draft says against the excerpts of the sources that it cites.

    What the check took out is counted in the trace. Without `embedder`, or when it fails, words decide alone.
    """
    removed: Counter[str] = Counter()
    by_words = await asyncio.to_thread(_by_words, question, draft, sources, removed)
    judged = {**by_words.judged, **await _by_vectors(by_words, embedder)}
    hedge = message(Message.UNSURE, question.lang, seed)
    kept = revised(by_words.blocks, {claim: one.support for claim, one in judged.items()}, hedge)
    for one in judged.values():
        removed["unsupported" if one.support is Support.NONE else "hedged"] += one.support is not Support.FULL
    trace.removed = {kind: count for kind, count in sorted(removed.items()) if count}
    stands = any(claim.own and claim.says_something for claim in claims(kept))
    return Held(replace(draft, text=write(kept, lambda n: f"[[{n}]]")), stands, judged)


def cites(draft: Draft, sources: Sequence[Source]) -> bool:
    """Whether the draft cites any source that it was shown."""
    return bool(citations(clean_blocks(draft.text, len(_shown(draft, sources)), draft.prompt, Counter())))


@dataclass(frozen=True, slots=True)
class _ByWords:
    """The cleaned draft, what it is held against, each claim judged without vectors, and what those may still tell."""

    blocks: tuple[Block, ...]
    read: Sequence[Evidence]
    asked: str
    judged: Mapping[Claim, Judgement]
    unclear: Mapping[Claim, Compared]


def _by_words(question: Question, draft: Draft, sources: Sequence[Source], removed: Counter[str]) -> _ByWords:
    shown = _shown(draft, sources)
    blocks = clean_blocks(draft.text, len(shown), draft.prompt, removed)
    read = [read_source(source, question.lang) for source in shown]
    asked = f"{question.title} {question.text} {question.condensed}"
    judged: dict[Claim, Judgement] = {}
    unclear: dict[Claim, Compared] = {}
    every = claims(blocks)
    judged.update((claim, Judgement(Support.NONE, score=0.0)) for claim in every[MOST_CLAIMS:])
    for claim in every[:MOST_CLAIMS]:
        if claim.code:
            judged[claim] = judge_code(claim.text, read, asked)
            continue
        cited = _cited(claim, read)
        judged[claim] = judge(claim.text, cited, asked, own=claim.own, spans=claim.spans)
        if judged[claim].open:
            unclear[claim] = comparison(claim.text, cited)
    return _ByWords(blocks, read, asked, judged, unclear)


async def _by_vectors(by_words: _ByWords, embedder: SentenceEmbedder | None) -> dict[Claim, Judgement]:
    """What vectors say of the claims that words left open; nothing where there are none."""
    if embedder is None or not by_words.unclear:
        return {}
    compared = affordable(list(by_words.unclear.values()))
    texts = list(dict.fromkeys(text for one in compared for text in one.texts))
    try:
        vectors = dict(zip(texts, await embedder.embed_sentences(texts), strict=True))
    except (Transient, Rejected, Misconfigured) as exc:
        log.warning("checked_by_words_alone", error=str(exc))
        return {}
    return await asyncio.to_thread(_with_vectors, by_words, vectors, len(compared))


def _with_vectors(by_words: _ByWords, vectors: Mapping[str, Vector], count: int) -> dict[Claim, Judgement]:
    """The first `count` unclear claims, judged anew."""
    found: dict[Claim, Judgement] = {}
    for claim, compared in list(by_words.unclear.items())[:count]:
        cited, near = _cited(claim, by_words.read), closeness(compared, vectors)
        found[claim] = judge(claim.text, cited, by_words.asked, own=claim.own, spans=claim.spans, near=near)
    return found


def _shown(draft: Draft, sources: Sequence[Source]) -> Sequence[Source]:
    """The sources that the draft was written from: the first ones."""
    return sources if draft.shown is None else sources[: len(draft.shown)]


def _cited(claim: Claim, read: Sequence[Evidence]) -> list[Evidence]:
    """What the claim must stand in: the sources it cites; without any of its own, any source."""
    return [read[n - 1] for n in claim.cites] if claim.own else list(read)
