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
    coded = pixels.astype(np.int64) @ np.array([65_536, 256, 1])
    codes, places, counts = np.unique(coded, return_inverse=True, return_counts=True)
    found = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    small = b""
    for colours in PALETTES:
        kept = _palette(found, counts, colours)
        nearest = np.argmin([_apart(found, colour) for colour in kept], axis=0).astype(np.uint8)
        image = Image.fromarray(nearest[places.reshape(pixels.shape[:2])], "P")
        image.putpalette(kept.astype(np.uint8).tobytes())
        out = BytesIO()
        image.save(out, "PNG", optimize=True)
        small = out.getvalue()
        if len(small) <= max_bytes:
            break
    return small


def _palette(found: np.ndarray, counts: np.ndarray, colours: int) -> np.ndarray:
    """So many of the colours that were found, as rows of red, green and blue."""
    order = np.argsort(-counts, kind="stable")
    kept = list(found[order[: colours - colours // RARE]])
    rare = found[counts >= LEAST_PIXELS]
    if len(rare):
        apart = np.min([_apart(rare, colour) for colour in kept], axis=0)
        while len(kept) < colours and apart.any():
            kept.append(rare[apart.argmax()])
            apart = np.minimum(apart, _apart(rare, kept[-1]))
    return np.array(kept)


def _apart(colours: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """The squared distance of each of these colours from that one."""
    return np.asarray(((colours - colour) ** 2).sum(axis=1))
