"""What the bundled reranker sees of a question and its candidates: a few lexical and dense features."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from service.domain import Candidate, TopicId
from service.lexer import lexemes

MAX_BODY_CHARS = 3_000
PAIR_FEATURES = (
    "cosine",  # of the candidate; one that only keywords found has at most the least cosine of the others
    "fused_share",  # its fused rank, relative to the first of the list
    "topic_share",  # the fused ranks of all candidates of its topic, relative to the first topic
    "title_coverage",  # share of the question's lexemes in the title, by their weight
    "bigrams",  # share of the question's pairs of neighbours that are neighbours there too
    "log_length",  # of the body, in characters
    "asks",  # share of the body's sentences that end in a question mark
)
LIST_FEATURES = (
    "top_cosine",
    "cosine_spread",  # the highest cosine less the mean of the list
    "top_coverage",  # the highest share of the question's lexemes in one title and body, by their weight
    "log_lexemes",  # how many distinct lexemes are asked
    "log_support",  # how many candidates the best represented topic has
)
NO_COSINE = (0.865, 0.02)
"""Top cosine and spread where no vector was searched: a little below the average question, since less is known."""


@dataclass(frozen=True, slots=True)
class Features:
    """`pairs` has shape (candidates, PAIR_FEATURES), `whole` (LIST_FEATURES,)."""

    pairs: NDArray[np.float64]
    whole: NDArray[np.float64]


def features(question: Sequence[str], candidates: Sequence[Candidate]) -> Features:
    """The features of a question, given as its lexemes (one at least), and its candidates (one at least)."""
    wanted = tuple(dict.fromkeys(question))
    titles = [lexemes(one.title) for one in candidates]
    bodies = [lexemes(one.body[:MAX_BODY_CHARS]) for one in candidates]
    words = [frozenset(title).union(body) for title, body in zip(titles, bodies, strict=True)]
    weights = _weights(wanted, words)
    asked_pairs = frozenset(pairwise(question))
    bigrams = [
        len(asked_pairs.intersection(pairwise(title)).union(asked_pairs.intersection(pairwise(body))))
        / max(len(asked_pairs), 1)
        for title, body in zip(titles, bodies, strict=True)
    ]
    cosines, spread = _cosines(candidates)
    topic_fused: defaultdict[TopicId, float] = defaultdict(float)
    for one in candidates:
        topic_fused[one.topic_id] += one.fused
    top_fused = max(one.fused for one in candidates) or 1.0
    top_topic = max(topic_fused.values()) or 1.0
    pairs = [
        (
            cosines[i],
            one.fused / top_fused,
            topic_fused[one.topic_id] / top_topic,
            _share(weights, frozenset(titles[i])),
            bigrams[i],
            math.log1p(len(one.body)),
            one.body.count("?") / (1 + one.body.count(".") + one.body.count("?")),
        )
        for i, one in enumerate(candidates)
    ]
    whole = (
        max(cosines),
        spread,
        max(_share(weights, found) for found in words),
        math.log1p(len(wanted)),
        math.log(max(Counter(one.topic_id for one in candidates).values())),
    )
    return Features(np.array(pairs), np.array(whole))


def _weights(wanted: Sequence[str], documents: Sequence[Collection[str]]) -> dict[str, float]:
    """BM25's inverse document frequency among the candidates, as shares of their sum."""
    found = {word: sum(word in document for document in documents) for word in wanted}
    idf = {word: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for word, n in found.items()}
    total = sum(idf.values())
    return {word: weight / total for word, weight in idf.items()}


def _share(weights: dict[str, float], found: Collection[str]) -> float:
    return sum(weight for word, weight in weights.items() if word in found)


def _cosines(candidates: Sequence[Candidate]) -> tuple[list[float], float]:
    known = [one.cosine for one in candidates if one.cosine is not None]
    if not known:
        return [NO_COSINE[0]] * len(candidates), NO_COSINE[1]
    cosines = [min(known) if one.cosine is None else one.cosine for one in candidates]
    return cosines, max(cosines) - sum(cosines) / len(cosines)
