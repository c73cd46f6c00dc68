"""Whatever bytes a model server sends, an adapter ends in one of our errors or a checked result, in bounded memory."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache

import numpy as np
import pytest

from service.domain import ChatMessage, Completion, EmbeddingProfile, RerankerProfile, Role, TextFailure
from service.errors import ArianeError, Misconfigured, Transient
from service.inference.access import Access
from service.inference.breaker import Breaker
from service.inference.embedding import EmbedderOptions
from service.inference.ollama_chat import OllamaChatOptions, ollama_chat
from service.inference.ollama_embedder import OllamaEmbedder, OllamaEmbedderOptions
from service.inference.ollama_errors import ollama_client
from service.inference.openai_chat import OpenAiChatOptions, openai_chat
from service.inference.pairs import PairOptions
from service.inference.tei import TeiOptions, TeiServer
from service.inference.tei_embedder import TeiEmbedder
from service.inference.tei_reranker import MOST_LOGIT, TeiReranker
from service.inference.turns import Turns
from service.remote import Remote
from tests.fakes.answering import candidate
from tests.fakes.raw import RawServer, http, raw_server

PROFILE = EmbeddingProfile("bge-m3", 1, 1, dimensions=4, window_tokens=512)
RERANKER = RerankerProfile("mmarco", weak=-4.0, normal=0.0, provisional=True)
ASKED = [ChatMessage(Role.USER, "Why does the valve leak?")]
INFO = http(json.dumps({"model_id": "m", "version": "1.9.3", "max_client_batch_size": 32}).encode())
SECONDS = 2.0
MOST_BYTES = 40_000_000
"""What an answer may take while it is read: its 8 MB a few times over."""


async def tei_embed(url: str, access: Access) -> object:
    server = TeiServer("tei", TeiOptions(url, timeout_seconds=SECONDS, attempts=1))
    try:
        return await TeiEmbedder(server, PROFILE, EmbedderOptions()).embed_passages(["a text"])
    finally:
        assert server.turns.taken == 0
        await server.aclose()


async def tei_rerank(url: str, access: Access) -> object:
    server = TeiServer("tei", TeiOptions(url, timeout_seconds=SECONDS, attempts=1))
    try:
        return await TeiReranker(server, RERANKER, PairOptions()).rerank("why?", [candidate(1)])
    finally:
        assert server.turns.taken == 0
        await server.aclose()


@asynccontextmanager
async def ollama_embedder(url: str, access: Access) -> AsyncIterator[OllamaEmbedder]:
    async with ollama_client(url, timeout_seconds=SECONDS) as client:
        options = OllamaEmbedderOptions("bge-m3", timeout_seconds=SECONDS)
        yield OllamaEmbedder(client, PROFILE, access, options, EmbedderOptions())


async def ollama_embed(url: str, access: Access) -> object:
    async with ollama_embedder(url, access) as embedder:
        return await embedder.embed_passages(["a text"])


async def ollama_query(url: str, access: Access) -> object:
    async with ollama_embedder(url, access) as embedder:
        return await embedder.embed_query("why?")


async def ollama_answer(url: str, access: Access) -> object:
    async with ollama_client(url, timeout_seconds=SECONDS) as client:
        chat = ollama_chat(client, access, OllamaChatOptions("qwen3"))
        return await chat.complete(ASKED, max_tokens=100, temperature=0, timeout_seconds=SECONDS)


async def openai_answer(url: str, access: Access) -> object:
    async with Remote(url, name="llm", timeout_seconds=SECONDS, attempts=1, headers={}) as remote:
        chat = openai_chat(remote, access, OpenAiChatOptions("qwen3"))
        return await chat.complete(ASKED, max_tokens=100, temperature=0, timeout_seconds=SECONDS)


Call = Callable[[str, Access], Awaitable[object]]
CALLS: dict[str, Call] = {
    "TEI embeds": tei_embed,
    "TEI reranks": tei_rerank,
    "Ollama embeds": ollama_embed,
    "Ollama embeds a question": ollama_query,
    "Ollama answers": ollama_answer,
    "OpenAI answers": openai_answer,
}


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, 1)


@cache
def bomb(times: int) -> bytes:
    """Blanks, twice as many as may be in memory, compressed as often."""
    packed = zlib.compressobj(9, wbits=31)
    content = b"".join(packed.compress(b" " * 1_000_000) for _ in range(2 * MOST_BYTES // 1_000_000)) + packed.flush()
    return content if times == 1 else gzip.compress(content, 9)


DEEP = b"[" * 100_000
HUGE = b"9" * 400
LIES: dict[str, bytes] = {
    "an integer past any float, as a score": http(b'[{"index": 0, "score": %s}]' % HUGE),
    "an integer past any float, in a vector": http(b"[[%s, 0, 0, 0]]" % HUGE),
    "the same of Ollama": http(b'{"model": "m", "embeddings": [[%s, 0, 0, 0]]}' % HUGE),
    "more digits than Python reads": http(b"[[%s, 0, 0, 0]]" % (b"9" * 5000)),
    "a number past float32": http(b"[[1e39, 0, 0, 0]]"),
    "squares past float32": http(b'{"model": "m", "embeddings": [[1e30, 1e30, 0, 0]]}'),
    "Infinity": http(b'{"model": "m", "embeddings": [[Infinity, 0, 0, 0]]}'),
    "NaN": http(b'{"model": "m", "embeddings": [[NaN, 0, 0, 0]]}'),
    "endless nesting": http(DEEP),
    "endless nesting inside": http(b'{"model": "m", "embeddings": ' + DEEP),
    "endless nesting in a message": http(b'{"message": ' + DEEP + b"\n"),
    "endless nesting in an error": http(DEEP, status="500 Internal Server Error"),
    "an encoding that was not asked for": http(b"\x0b\x00\x80[]\x03", "Content-Encoding: br"),
    "a broken gzip": http(b"hello", "Content-Encoding: gzip"),
    "half a gzip": http(zipped(b"[[1, 0, 0, 0]]" * 99)[:40], "Content-Encoding: gzip"),
    "a codec of Python's as charset": http(b"{}", "Content-Type: application/json; charset=hex", status="500 Error"),
    "another codec": http(b"{}", "Content-Type: application/json; charset=rot13"),
    "a redirect to nowhere": http(b"", "Location: http://[::bad", status="302 Found"),
    "a redirect in another alphabet": http(b"", "Location: \xff\xfe://\xe9:99999999/", status="302 Found"),
    "chunks that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a status that is none": b"HTTP/1.1 9999 \xff\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9\r\n",
    "nothing": b"",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
    "a page": http(b"<html>Log in</html>", "Content-Type: text/html"),
    "counts that are none": http(b'{"message": {"role": "emperor", "content": 5}, "done": 1, "eval_count": 1e400}\n'),
}


def way() -> Access:
    return Access(Turns(1), Breaker("model"))


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as server:
        server.info = INFO
        yield server


def checked(made: object) -> bool:
    """A text that can be stored, a failure of the text itself, or finite numbers."""
    if isinstance(made, Completion):
        return bool(made.text.encode())
    if isinstance(made, np.ndarray):
        return bool(np.isfinite(made).all())
    assert isinstance(made, list)
    return all(isinstance(one, TextFailure) or bool(np.isfinite(one).all()) for one in made)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("call", CALLS)
async def test_every_lie_ends_in_one_of_our_errors(server: RawServer, call: str, lie: str) -> None:
    server.said = LIES[lie]
    access = way()
    try:
        assert checked(await CALLS[call](server.url, access))
    except ArianeError as exc:
        assert len(str(exc)) < 1000
    assert access.turns.taken == 0


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("call", CALLS)
async def test_a_bomb_is_not_unpacked(server: RawServer, call: str, times: int) -> None:
    encoding = ", ".join(["gzip"] * times)
    server.said = http(bomb(times), f"Content-Encoding: {encoding}")
    tracemalloc.start()
    try:
        with pytest.raises(Transient):
            await CALLS[call](server.url, way())
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


async def test_an_endless_line_is_not_read_to_its_end(server: RawServer) -> None:
    server.said = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 30_000_000
    for call in (ollama_embed, ollama_answer):
        with pytest.raises(Transient, match="more than 8000000 bytes"):
            await call(server.url, way())


async def test_a_compressed_answer_is_read(server: RawServer) -> None:
    server.said = http(zipped(b"[[1, 0, 0, 0]]"), "Content-Encoding: gzip")
    assert np.array_equal(np.array(await tei_embed(server.url, way())), [[1, 0, 0, 0]])


@pytest.mark.parametrize("score", [MOST_LOGIT * 10, -MOST_LOGIT * 10, True])
async def test_a_score_that_no_model_gives_is_none(server: RawServer, score: float) -> None:
    server.said = http(json.dumps([{"index": 0, "score": score}]).encode())
    with pytest.raises(ArianeError, match="no finite score"):
        await tei_rerank(server.url, way())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (ollama_answer, {"message": {"role": "assistant", "content": "a\ud800b\0c"}, "done": True}),
        (openai_answer, {"choices": [{"message": {"content": "a\ud800b\0c"}, "finish_reason": "stop"}]}),
    ],
)
async def test_a_text_can_be_stored_whatever_the_model_wrote(server: RawServer, call: Call, said: object) -> None:
    server.said = http(json.dumps(said).encode() + b"\n")
    made = await call(server.url, way())
    assert isinstance(made, Completion) and made.text == "a?b c"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (ollama_answer, {"message": {"role": "assistant", "content": "x" * 1_000_000}, "done": True}),
        (openai_answer, {"choices": [{"message": {"content": "x" * 1_000_000}, "finish_reason": "stop"}]}),
    ],
)
async def test_a_text_of_a_megabyte_is_no_answer(server: RawServer, call: Call, said: object) -> None:
    server.said = http(json.dumps(said).encode() + b"\n")
    with pytest.raises(Transient, match="doesn't stop"):
        await call(server.url, way())


async def test_a_tag_split_over_events_is_one_tag(server: RawServer) -> None:
    parts = ["<th", "ink>hm </", "think", ">\nIt sti", "cks."]
    events = [{"message": {"role": "assistant", "content": part}, "done": part == parts[-1]} for part in parts]
    server.said = http(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    made = await ollama_answer(server.url, way())
    assert isinstance(made, Completion) and made.text == "It sticks."


async def test_a_connection_cut_between_two_calls_costs_nothing(server: RawServer) -> None:
    """Both clients keep connections; a server or a proxy cuts those that rest."""
    server.said = http(b'{"model": "m", "embeddings": [[1, 0, 0, 0]]}')
    async with ollama_embedder(server.url, way()) as embedder:
        for _ in range(5):
            assert (await embedder.embed_query("why?")).shape == (4,)
    assert server.requests == 5
    server.said = http(b"[[1, 0, 0, 0]]")
    tei = TeiServer("tei", TeiOptions(server.url, timeout_seconds=SECONDS, attempts=1))
    for _ in range(5):
        assert (await TeiEmbedder(tei, PROFILE, EmbedderOptions()).embed_query("why?")).shape == (4,)
    await tei.aclose()


async def test_another_dimension_half_way_refuses_the_batch(server: RawServer) -> None:
    server.said = http(b'{"model": "m", "embeddings": [[1, 0, 0, 0], [1, 0, 0]]}')
    async with ollama_embedder(server.url, way()) as embedder:
        with pytest.raises(Misconfigured, match="3"):
            await embedder.embed_passages(["one", "two"])
