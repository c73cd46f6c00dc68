"""The bundled reranker: a logit for each candidate from lexical and dense features; no model, nothing downloaded."""

from collections.abc import Sequence

import numpy as np

from service.domain import Candidate, RerankerProfile
from service.inference.pair_features import features
from service.inference.profiles import BUNDLED_RERANKER
from service.lexer import lexemes

MAX_QUESTION_CHARS = 4_000

# Fitted by `python -m eval bundled` on 1,309 labelled questions about three forums (a game engine, a privacy help desk,
# the demo), and on each forum 80 questions about the others and 30 of small talk: the pairs by conditional logistic
# regression within each list, the list by logistic regression on "one of the first five topics answers". The thresholds
# of the profile were read off folds left out; they stay provisional until a forum's own questions have calibrated them.
PAIR_WEIGHTS = np.array([33.9, 57.8, 12.2, 2.75, 1.7])
"""In the order of PAIR_FEATURES."""
LIST_WEIGHTS = np.array([2.59, 116.0, 61.2, 1.52, 1.25, -0.36])
"""In the order of LIST_FEATURES."""
BIAS = -62.91
NOTHING_ASKED = -10.0
"""The logit of a question without a single lexeme ("hello"): nothing can answer it."""


class BundledReranker:
    """Reranker whose top logit tells how likely the list answers at all; the others lie below it as they rank."""

    def __init__(self, profile: RerankerProfile = BUNDLED_RERANKER) -> None:
        self.profile = profile

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        """One finite logit a candidate, in the order given; 5 ms for 25 candidates of 300 characters."""
        asked = lexemes(question[:MAX_QUESTION_CHARS])
        if not asked:
            return [NOTHING_ASKED] * len(candidates)
        if not candidates:
            return []
        seen = features(asked, candidates)
        order = seen.pairs @ PAIR_WEIGHTS
        logits = seen.whole @ LIST_WEIGHTS + BIAS + order - order.max()
        return [float(logit) for logit in logits]
