"""The bundled answerer: quotes the sentences of the sources that answer best, under a lead of one line."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from service.domain import ENGLISH, FRENCH, Draft, Question, Source, Vector, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.inference.sentences import sentences
from service.lexer import query_lexemes
from service.telemetry import log

MAX_EMBEDDED = 4
EMBEDDED_CHARS = 100
"""Sentences compared by their vectors, and what is embedded of each: 30 ms a sentence on one core."""
PRIOR_WEIGHT = 0.75
FOLLOWS = 0.2
"""Share of its score that a sentence hands on to the next of its source: an answer goes on."""
MOST = {Zone.NORMAL: 4, Zone.WEAK: 2}
"""Sentences quoted in each zone."""
MOST_OF_SOURCE = 2
LEAST_SHARE = 0.6
"""A sentence after the first needs this share of the best one's score."""
ALIKE = 0.6
"""Two sentences that share this much of their lexemes say the same."""
LEADS = {FRENCH: "Voici ce que des membres en disent :", ENGLISH: "Here is what members wrote:"}

_MARKDOWN = re.compile(r"([\\`*_\[\]<>~|#&$])")
_BULLET = re.compile(r"^(?=[-+=])")
_NUMBERED = re.compile(r"^(\d{1,9})(?=[.)])")


class SentenceEmbedder(Protocol):
    """Vectors of a question and of a few sentences, soon; raises Transient or Rejected."""

    async def embed_query(self, text: str) -> Vector: ...
    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]: ...


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of source `n`, at `position` among its sentences."""

    n: int
    position: int
    text: str
    words: frozenset[str]
    prior: float


class ExtractiveAnswerer:
    """Answerer that picks sentences by the question's words and by vectors; by words alone when those fail."""

    def __init__(self, embedder: SentenceEmbedder | None) -> None:
        """`embedder` None where sentences can't be embedded fast enough: words then decide alone."""
        self._embedder = embedder

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        """A lead in the question's language and a list of quotes that cite their sources; empty if none fits."""
        quotes = _quotes(sources)
        worded = _worded(question.scored, quotes)
        likely = sorted(quotes, key=lambda quote: -worded[quote])[:MAX_EMBEDDED]
        scores = await self._scored(question.scored, likely, worded)
        chosen = _chosen(_carried_on(scores), MOST.get(zone, MOST[Zone.WEAK]))
        if not chosen:
            return Draft("", "extractive")
        lead = LEADS.get(question.lang, LEADS[ENGLISH])
        return Draft("\n".join([lead, "", *map(_line, chosen)]), "extractive")

    async def _scored(
        self, question: str, quotes: Sequence[Quote], worded: dict[Quote, float]
    ) -> list[tuple[float, Quote]]:
        if self._embedder is None:
            return [(worded[quote], quote) for quote in quotes]
        try:
            asked = await self._embedder.embed_query(question)
            vectors = await self._embedder.embed_sentences([quote.text[:EMBEDDED_CHARS] for quote in quotes])
        except (Transient, Rejected, Misconfigured) as exc:
            log.warning("quotes_by_words_alone", error=str(exc))
            return [(worded[quote], quote) for quote in quotes]
        cosines = np.array([float(asked @ vector) for vector in vectors])
        # E5's cosines lie close together: what counts is their order within the question.
        span = float(np.ptp(cosines)) if len(quotes) > 1 else 0.0
        near = (cosines - cosines.min()) / span if span > 0 else np.ones(len(quotes))
        return [(worded[quote] + float(close), quote) for quote, close in zip(quotes, near, strict=True)]


def _quotes(sources: Sequence[Source]) -> list[Quote]:
    best = max((source.logit for source in sources if source.logit is not None), default=0.0)
    return [
        Quote(source.n, position, text, frozenset(query_lexemes(text)), _prior(source, best))
        for source in sources
        for position, text in enumerate(sentences(source.excerpt))
    ]


def _prior(source: Source, best: float) -> float:
    """How far the reranker trusts the source, 0 to 1: its odds relative to the best; by place when it was down."""
    return math.exp(source.logit - best) if source.logit is not None else 1 / source.n


def _worded(question: str, quotes: Sequence[Quote]) -> dict[Quote, float]:
    """The share of the question's lexemes in a sentence, by their rarity among the sentences, plus its prior."""
    asked = query_lexemes(question)
    found = {word: sum(word in quote.words for quote in quotes) for word in asked}
    weights = {word: math.log(1 + (len(quotes) - n + 0.5) / (n + 0.5)) for word, n in found.items() if n}
    total = sum(weights.values()) or 1.0
    return {
        quote: sum(weight for word, weight in weights.items() if word in quote.words) / total
        + PRIOR_WEIGHT * quote.prior
        for quote in quotes
    }


def _carried_on(scores: Sequence[tuple[float, Quote]]) -> list[tuple[float, Quote]]:
    by_place = {(quote.n, quote.position): score for score, quote in scores}
    return [(score + FOLLOWS * by_place.get((quote.n, quote.position - 1), 0.0), quote) for score, quote in scores]


def _chosen(scores: Sequence[tuple[float, Quote]], most: int) -> list[Quote]:
    """The best quotes that differ, in reading order: by source, then by position."""
    ranked = sorted(scores, key=lambda scored: (-scored[0], scored[1].n, scored[1].position))
    chosen: list[Quote] = []
    for score, quote in ranked:
        poor = score < LEAST_SHARE * ranked[0][0]
        crowded = sum(other.n == quote.n for other in chosen) >= MOST_OF_SOURCE
        if len(chosen) < most and not poor and not crowded and not any(_alike(quote, other) for other in chosen):
            chosen.append(quote)
    if len(chosen) == 1:  # a lone sentence says little: the next best of its source goes with it
        best = chosen[0]
        chosen += [quote for _, quote in ranked if quote.n == best.n and not _alike(quote, best)][:1]
    return sorted(chosen, key=lambda quote: (quote.n, quote.position))


def _alike(one: Quote, other: Quote) -> bool:
    either = one.words | other.words
    return one.text == other.text or len(one.words & other.words) > ALIKE * len(either)


def _line(quote: Quote) -> str:
    escaped = _NUMBERED.sub(r"\1\\", _BULLET.sub(r"\\", _MARKDOWN.sub(r"\\\1", quote.text)))
    return f"- {escaped} [[{quote.n}]]"
