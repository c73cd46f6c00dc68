"""How close a claim's vector is to those of its sources' sentences, where words alone can't tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.answer.support.claims import Evidence
from service.domain import Vector
from service.lexer import lexemes

MOST_TEXTS = 24
"""Embedded for one draft: 30 ms each on one core with the bundled model."""
MOST_OF_CLAIM = 6
"""Sentences of the sources that one claim is compared with: those that share most of its words."""
EMBEDDED_CHARS = 160

# Cosines of the bundled model between a claim and its source's nearest sentence, on the half `dev` of our labels:
# under the first nothing is said of it, from the second on it is.
SAME_LANGUAGE = (0.84, 0.94)
OTHER_LANGUAGE = (0.83, 0.88)


@dataclass(frozen=True, slots=True)
class Compared:
    """A claim, the sentences it is compared with, and whether they are in another language."""

    claim: str
    sentences: tuple[str, ...]
    foreign: bool


def comparison(claim: str, cited: Sequence[Evidence]) -> Compared:
    """What is to be embedded for a claim, each text cut to EMBEDDED_CHARS."""
    words = frozenset(lexemes(claim))
    sentences = [(sentence, own) for one in cited for sentence, own in zip(one.sentences, one.words[1:], strict=True)]
    nearest = sorted(sentences, key=lambda pair: -len(words & pair[1]))[:MOST_OF_CLAIM]
    foreign = any(one.foreign for one in cited)
    return Compared(claim[:EMBEDDED_CHARS], tuple(text[:EMBEDDED_CHARS] for text, _ in nearest), foreign)


def affordable(compared: Sequence[Compared]) -> Sequence[Compared]:
    """As many of the first comparisons as MOST_TEXTS allows."""
    texts: set[str] = set()
    for at, one in enumerate(compared):
        texts.update((one.claim, *one.sentences))
        if len(texts) > MOST_TEXTS:
            return compared[:at]
    return compared


def closeness(compared: Compared, vectors: Mapping[str, Vector]) -> float | None:
    """Support by the nearest sentence, 0 to 1; None where there is no sentence."""
    if not compared.sentences:
        return None
    best = max(float(vectors[compared.claim] @ vectors[sentence]) for sentence in compared.sentences)
    low, high = OTHER_LANGUAGE if compared.foreign else SAME_LANGUAGE
    return float(np.clip((best - low) / (high - low), 0.0, 1.0))
