"""Makes a screenshot small: of its colours the most frequent and the most different ones, as many as a size allows."""

from io import BytesIO

import numpy as np
from PIL import Image

MAX_BYTES = 60_000
"""Of one picture, so that a guide with all of its own loads at once."""
PALETTES = (128, 64, 32, 16)
RARE = 8
"""One colour of so many is taken for being unlike all others, as that of a small mark is."""
LEAST_PIXELS = 20
"""Of such a colour."""


def squeezed(png: bytes, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The same picture with the most colours of PALETTES that keep it within `max_bytes`; else with the fewest.

    The kept colours stay exactly, every other one becomes the nearest of them.
    """
    pixels = np.asarray(Image.open(BytesIO(png)).convert("RGB"))
    found, places, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    small = b""
    for colours in PALETTES:
        kept = _palette(found, counts, colours)
        apart = _apart(found, kept)
        nearest = apart.argmin(axis=1).astype(np.uint8)
        image = Image.fromarray(nearest[places.reshape(pixels.shape[:2])], "P")
        image.putpalette(kept.tobytes())
        out = BytesIO()
        image.save(out, "PNG", optimize=True)
        small = out.getvalue()
        if len(small) <= max_bytes:
            break
    return small


def _palette(found: np.ndarray, counts: np.ndarray, colours: int) -> np.ndarray:
    """So many of the colours that were found, as rows of red, green and blue."""
    order = np.argsort(-counts, kind="stable")
    kept = found[order[: colours - colours // RARE]]
    rare = found[counts >= LEAST_PIXELS]
    for _ in range(min(colours // RARE, max(0, len(rare) - len(kept)))):
        kept = np.concatenate([kept, rare[_apart(rare, kept).min(axis=1).argmax()][None]])
    return kept


def _apart(colours: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The squared distance of every colour from each that is kept."""
    return ((colours[:, None, :].astype(int) - kept[None, :, :]) ** 2).sum(axis=2)
