"""What the bundled reranker sees of a question and its candidates: a few lexical and dense features."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.domain import Candidate, TopicScores
from service.lexer import lexemes

MAX_BODY_CHARS = 3_000
PAIR_FEATURES = (
    "best_cosine",  # of the topic's post that is nearest
    "mean_cosine",  # of the mean of the topic's posts
    "first_cosine",  # of the topic's first post
    "best_bm25",  # of the topic's best post, as a share of the list's highest
    "topic_bm25",  # of the topic's whole text, as a share of the list's highest
)
LIST_FEATURES = (
    "top_cosine",  # the highest best_cosine
    "cosine_spread",  # that less the mean of the list
    "top_mean",  # the highest mean_cosine
    "top_coverage",  # the highest share of the question's lexemes in one title and body, by their weight
    "log_lexemes",  # how many distinct lexemes are asked
    "agreement",  # the first topic's fused rank less the second's, as a share of the first's
)
NO_COSINES = (0.865, 0.025, 0.886)
"""Top cosine, spread and mean where no vector was searched: as of a list that answers as often as all lists do."""


@dataclass(frozen=True, slots=True)
class Features:
    """`pairs` has shape (candidates, PAIR_FEATURES), `whole` (LIST_FEATURES,)."""

    pairs: NDArray[np.float64]
    whole: NDArray[np.float64]


def features(question: Sequence[str], candidates: Sequence[Candidate]) -> Features:
    """The features of a question, given as its lexemes (one at least), and its candidates (one at least)."""
    wanted = tuple(dict.fromkeys(question))
    topics = [_topic(one) for one in candidates]
    best, mean = _known([one.cosine for one in topics]), _known([one.mean for one in topics])
    pairs = (
        best,
        mean,
        _known([one.first for one in topics]),
        _shares([one.bm25 for one in topics]),
        _shares([one.words for one in topics]),
    )
    words = [frozenset(lexemes(f"{one.title}\n{one.body[:MAX_BODY_CHARS]}")) for one in candidates]
    weights = _weights(wanted, words)
    searched = any(one.cosine is not None for one in topics)
    cosines = (max(best), max(best) - sum(best) / len(best), max(mean)) if searched else NO_COSINES
    whole = (
        *cosines,
        max(sum(weight for word, weight in weights.items() if word in found) for found in words),
        math.log1p(len(wanted)),
        _lead([one.fused for one in candidates]),
    )
    return Features(np.array(pairs).T, np.array(whole))


def _topic(candidate: Candidate) -> TopicScores:
    """The topic's scores; where topics weren't searched the post's own stand for them."""
    own, words = candidate.cosine, candidate.bm25
    return candidate.topic or TopicScores(cosine=own, mean=own, first=None, bm25=words, words=words)


def _known(scores: Sequence[float | None]) -> list[float]:
    """The scores; one that isn't known counts as the mean of the others, so that it tells nothing."""
    known = [score for score in scores if score is not None]
    mean = sum(known) / len(known) if known else 0.0
    return [mean if score is None else score for score in scores]


def _shares(scores: Sequence[float | None]) -> list[float]:
    highest = max((score for score in scores if score is not None), default=0.0) or 1.0
    return [(score or 0.0) / highest for score in scores]


def _lead(fused: Sequence[float]) -> float:
    first, second = sorted((*fused, 0.0), reverse=True)[:2]
    return (first - second) / first if first > 0 else 0.0


def _weights(wanted: Sequence[str], documents: Sequence[Collection[str]]) -> dict[str, float]:
    """BM25's inverse document frequency among the candidates, as shares of their sum."""
    found = {word: sum(word in document for document in documents) for word in wanted}
    idf = {word: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for word, n in found.items()}
    total = sum(idf.values())
    return {word: weight / total for word, weight in idf.items()}
