"""The vectors a bench is given: what is made has the cosines asked for, what is read is checked; and what is drawn."""

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.bench.plot import draw, svg
from service.bench.vectors import LIKE, hold_out, read_vectors, synthetic
from service.errors import Rejected

CHANCE = np.random.default_rng(3)


@pytest.mark.parametrize("like", LIKE)
def test_cosines_are_those_asked_for(like: str) -> None:
    within, between = LIKE[like]
    made = synthetic(2000, 256, 40, within=within, between=between)
    unit = made.stored / made.lengths[:, None]
    cosines = unit @ unit.T
    same = made.topics[:, None] == made.topics[None, :]
    np.fill_diagonal(same, val=False)
    assert cosines[same].mean() == pytest.approx(within, abs=0.01)
    assert cosines[made.topics[:, None] != made.topics[None, :]].mean() == pytest.approx(between, abs=0.02)
    nearest = (made.questions @ unit.T).max(axis=1)
    assert nearest.mean() == pytest.approx(within, abs=0.06)  # a question has a topic too


def test_what_is_made_is_what_halfvec_keeps_and_the_same_every_time() -> None:
    first, again = (synthetic(300, 32, 5, within=0.65, between=0.45) for _ in range(2))
    assert np.array_equal(first.stored, again.stored)
    assert np.array_equal(first.stored, first.stored.astype(np.float16).astype(np.float32))
    assert first.lengths == pytest.approx(np.ones(300), abs=1e-3)
    assert first.first(100).stored.shape == (100, 32)
    assert len(first.first(100).questions) == 5


@pytest.mark.parametrize(("within", "between"), [(0.4, 0.6), (1.0, 0.5), (0.5, -0.1), (float("nan"), 0.1)])
def test_impossible_cosines_are_rejected(within: float, between: float) -> None:
    with pytest.raises(Rejected, match="between <= within"):
        synthetic(100, 16, 2, within=within, between=between)


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_questions_are_held_out(tmp_path: Path) -> None:
    vectors = CHANCE.standard_normal((50, 8)).astype(np.float16)
    read = read_vectors(npz(tmp_path / "v.npz", embedding=vectors, topic_id=np.arange(50, dtype=np.int32)), 10)
    assert (len(read.stored), len(read.questions), len(set(read.topics))) == (40, 10, 40)
    both = np.vstack([read.stored, read.questions])
    assert len(np.unique(both, axis=0)) == 50


@pytest.mark.parametrize(
    ("embedding", "topics", "says"),
    [
        (np.ones(50), np.arange(50), "needs embedding"),
        (np.ones((50, 4)), np.arange(49), "needs embedding"),
        (np.ones((50, 4), dtype=np.int32), np.arange(50), "needs embedding"),
        (np.ones((50, 4)), np.arange(50) / 2, "whole topic ids"),
        (np.ones((9, 4)), np.arange(9), "more than 10"),
        (np.full((50, 4), np.nan), np.arange(50), "not finite"),
        (np.zeros((50, 4)), np.arange(50), "zero"),
    ],
)
def test_unusable_vectors_are_rejected(embedding: Any, topics: Any, says: str) -> None:
    with pytest.raises(Rejected, match=f"here: .*{says}"):
        hold_out(embedding, topics, 10, origin="here")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 900), at=st.integers(0, 900), byte=st.integers(0, 255), whole=st.booleans())
def test_a_damaged_file_is_rejected_or_read(tmp_path: Path, cut: int, at: int, byte: int, whole: bool) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, embedding=CHANCE.standard_normal((30, 4)).astype(np.float16), topic_id=np.arange(30))
    content = bytearray(buffer.getvalue())
    content[at % len(content)] = byte
    path = tmp_path / "v.npz"
    path.write_bytes(content if whole else content[:cut])
    try:
        assert len(read_vectors(path, 5).questions) == 5
    except Rejected as exc:
        assert str(path) in str(exc)


def result(sizes: tuple[int, ...]) -> dict[str, Any]:
    rows = [
        {"system": system, "posts": size, "p95_ms": ms * size, "recall": recall}
        for size in sizes
        for system, ms, recall in (
            ("numpy, brute force", 0.1, 1.0),
            ("exact scan", 0.3, 1.0),
            ("exact scan, category", 0.01, 1.0),
            ("hnsw_halfvec, ef_search 100", 0.01, 0.93),
            ("hnsw_halfvec, ef_search 400", 0.02, 0.995),
        )
    ]
    return {"rows": rows, "settings": {"vectors": "<made>", "dimensions": 8}}


@pytest.mark.parametrize(("sizes", "circles"), [((500,), 4), ((500, 1000), 4 + 6)])
def test_a_drawing_has_each_measured_point(tmp_path: Path, sizes: tuple[int, ...], circles: int) -> None:
    draw(result(sizes), tmp_path / "plot.svg")
    root = ElementTree.fromstring((tmp_path / "plot.svg").read_text())
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert names.count("circle") == circles
    assert "<made>, 8 dimensions" in [element.text for element in root.iter()]


def test_a_drawing_that_cannot_be_written_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="--plot"):
        draw(result((500,)), tmp_path / "nowhere" / "plot.svg")


def test_growth_is_drawn_at_the_recall_that_counts() -> None:
    """0.995 at 20 times the posts is drawn, the faster 0.93 is not."""
    assert svg(result((500, 1000))).count("hnsw_halfvec") == 2
