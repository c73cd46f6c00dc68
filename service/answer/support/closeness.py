"""How close a claim's vector is to those of its sources' sentences, where words alone can't tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.answer.support.claims import Evidence, Near
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
    """A claim, and the sentences it is compared with: those of its sources in its language, and in others."""

    claim: str
    same: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.claim, *self.same, *self.other)


def comparison(claim: str, cited: Sequence[Evidence]) -> Compared:
    """What is to be embedded for a claim, each text cut to EMBEDDED_CHARS; half is of each language where two are."""
    words = frozenset(lexemes(claim))
    same, other = (_nearest(words, [one for one in cited if one.foreign is foreign]) for foreign in (False, True))
    other = other[: max(MOST_OF_CLAIM // 2, MOST_OF_CLAIM - len(same))]
    return Compared(claim[:EMBEDDED_CHARS], same[: MOST_OF_CLAIM - len(other)], other)


def affordable(compared: Sequence[Compared]) -> Sequence[Compared]:
    """As many of the first comparisons as MOST_TEXTS allows."""
    texts: set[str] = set()
    for at, one in enumerate(compared):
        texts.update(one.texts)
        if len(texts) > MOST_TEXTS:
            return compared[:at]
    return compared


def closeness(compared: Compared, vectors: Mapping[str, Vector]) -> Near:
    """Support by the nearest sentence of each language."""
    claim = vectors[compared.claim]

    def scaled(sentences: Sequence[str], low: float, high: float) -> float | None:
        cosines = [float(claim @ vectors[sentence]) for sentence in sentences]
        return float(np.clip((max(cosines) - low) / (high - low), 0.0, 1.0)) if cosines else None

    return Near(scaled(compared.same, *SAME_LANGUAGE), scaled(compared.other, *OTHER_LANGUAGE))


def _nearest(words: frozenset[str], cited: Sequence[Evidence]) -> tuple[str, ...]:
    """The sentences that share most of the words, at most MOST_OF_CLAIM."""
    sentences = [(sentence, own) for one in cited for sentence, own in zip(one.sentences, one.words[1:], strict=True)]
    ordered = sorted(sentences, key=lambda pair: -len(words & pair[1]))
    return tuple(text[:EMBEDDED_CHARS] for text, _ in ordered[:MOST_OF_CLAIM])
