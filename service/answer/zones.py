"""The zone of an answer: how far the best candidate's logit lets us go (spec P9)."""

from service.domain import RerankerProfile, Zone


def zone_of(top_logit: float | None, profile: RerankerProfile) -> Zone:
    """Below `weak` abstain, below `normal` weak, else normal; no candidate and no number abstain."""
    if top_logit is None or not top_logit >= profile.weak:  # so that NaN abstains
        return Zone.ABSTAIN
    return Zone.NORMAL if top_logit >= profile.normal else Zone.WEAK


def zone_without_reranker(top_cosine: float | None, floor: float) -> Zone:
    """Weak at best: a cosine ranks, but the thresholds weren't measured on it; under the model's floor abstain."""
    return Zone.WEAK if top_cosine is not None and top_cosine >= floor else Zone.ABSTAIN
