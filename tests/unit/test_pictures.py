"""A picture made small keeps its size and its main colours, and says the same."""

from io import BytesIO

import numpy as np
from PIL import Image

from tests.pictures.squeeze import PALETTES, squeezed


def png(pixels: np.ndarray) -> bytes:
    out = BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def read(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(picture)).convert("RGB"))


def test_few_colours_stay_exactly() -> None:
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, :20], pixels[:, 20:50], pixels[7, 7] = (248, 249, 251), (31, 36, 48), (1, 2, 3)
    assert np.array_equal(read(squeezed(png(pixels))), pixels)


def test_many_colours_become_few_near_ones_and_small() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (120, 120, 3), np.uint8)
    noise[:60] = (248, 249, 251)
    whole = png(noise)
    small = squeezed(whole, max_bytes=len(whole) // 4)
    assert len(small) <= len(whole) // 4
    seen = read(small)
    assert np.array_equal(seen[:60], noise[:60])
    assert len(np.unique(seen.reshape(-1, 3), axis=0)) <= PALETTES[0]


def test_what_never_fits_has_the_fewest_colours() -> None:
    noise = np.random.default_rng(2).integers(0, 256, (50, 50, 3), np.uint8)
    seen = read(squeezed(png(noise), max_bytes=1))
    assert len(np.unique(seen.reshape(-1, 3), axis=0)) <= PALETTES[-1]
