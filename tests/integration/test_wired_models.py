"""The models as settings wire them, on a server that a member's question shares with a backfill."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial

import pytest

from service.answer.categories import CategoryNames
from service.domain import ENGLISH, Category, CategoryId, ChatMessage, PostId, Question, Role, Source, TopicId, Zone
from service.inference.access import Access
from service.inference.breaker import Breaker
from service.inference.ollama_chat import OllamaChatOptions, ollama_chat
from service.inference.ollama_errors import ollama_client
from service.inference.turns import Turns
from service.settings.models import ModelSettings
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.references import ReferenceStore
from service.wiring.models import UnprovedModels, open_models, unproved_models
from tests.fakes.model_server import FakeServer, hashed_vector
from tests.fakes.ollama import FakeOllama
from tests.fakes.serving import Stage
from tests.fakes.tei import FakeTei

BATCH = 4
BATCHES = 10
TEXTS = [f"post number {n} of a long backfill" for n in range(BATCH * BATCHES)]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


def wired(kind: str, url: str, stack: AsyncExitStack) -> UnprovedModels:
    embedder = {"kind": kind, "profile": "bge-m3", "url": url, "batch_texts": BATCH}
    return unproved_models(ModelSettings.model_validate({"embedder": embedder}), stack)


def fake_of(kind: str) -> FakeServer:
    embed = partial(hashed_vector, dimensions=1024)
    if kind == "tei":
        return FakeTei(embed=embed, max_batch=BATCH, seconds=0.02)
    return FakeOllama(embed=embed, seconds=0.02)


@pytest.mark.parametrize(("kind", "path", "field"), [("ollama", "/api/embed", "input"), ("tei", "/embed", "inputs")])
async def test_a_question_waits_for_one_batch_of_a_backfill_at_most(
    stage: tuple[Stage, str], stack: AsyncExitStack, kind: str, path: str, field: str
) -> None:
    fake = fake_of(kind)
    stage[0].on = fake
    models = wired(kind, stage[1], stack)
    await models.embedder.embed_query("hello")  # what a first call asks of names and limits is no wait for a turn
    fake.seen.clear()
    backfill = [asyncio.create_task(models.embedder.embed_passages(TEXTS)) for _ in range(6)]
    while len(fake.posted(path)) < BATCHES:
        await asyncio.sleep(0.001)
    before = len(fake.posted(path))
    await models.embedder.embed_query("why does the valve leak?")
    sent = [body[field] for body in fake.posted(path)]
    on_their_way = fake.most_at_once  # as many may have been sent that the server had not seen yet
    assert sent.index(["why does the valve leak?"]) <= before + on_their_way, "6 x 10 batches wait; it goes before them"
    made = await asyncio.gather(*backfill)
    assert [len(one) for one in made] == [len(TEXTS)] * 6


async def test_a_generation_does_not_wait_for_a_backfill_nor_the_backfill_for_it(
    stage: tuple[Stage, str], stack: AsyncExitStack
) -> None:
    """Ollama runs each model on its own; the model's turns are its own too."""
    fake = fake_of("ollama")
    stage[0].on = fake
    models = wired("ollama", stage[1], stack)
    client = await stack.enter_async_context(ollama_client(stage[1], timeout_seconds=5))
    chat = ollama_chat(client, Access(Turns(1), Breaker("chat")), OllamaChatOptions("qwen3:30b-a3b-q6k"))
    backfill = asyncio.create_task(models.embedder.embed_passages(TEXTS))
    while len(fake.posted("/api/embed")) < 2:
        await asyncio.sleep(0.001)
    before = len(fake.posted("/api/embed"))
    await chat.complete([ChatMessage(Role.USER, "Why?")], max_tokens=50, temperature=0, timeout_seconds=5)
    paths = [path for path, _ in fake.seen]
    assert paths.index("/api/chat") <= before + 1
    assert not backfill.done()
    assert len(await backfill) == len(TEXTS)


async def test_a_draft_is_written_with_the_names_of_the_public_categories(
    stage: tuple[Stage, str], stack: AsyncExitStack, pool: Pool
) -> None:
    fake = fake_of("ollama")
    stage[0].on = fake
    corpus = CorpusStore(pool)
    await corpus.put_categories(
        [
            Category(CategoryId(4), "Pots", "pots", None, read_restricted=False),
            Category(CategoryId(3), "Staff", "staff", None, read_restricted=True),
            Category(CategoryId(1), "Plants", "plants", None, read_restricted=False),
        ]
    )
    answerer = {"kind": "ollama", "url": stage[1], "model": "qwen3:30b-a3b-q6k"}
    settings = ModelSettings.model_validate({"answerer": answerer})
    made = unproved_models(settings, stack)
    names = CategoryNames(corpus)
    opening = open_models(settings, made, ReferenceStore(pool), names, source_chars=1250, prove_bundled=False)
    models = await stack.enter_async_context(opening)
    when = datetime(2023, 5, 1, tzinfo=UTC)
    source = Source(1, PostId(1), TopicId(1), 1, "Pots", "pots", "Water often.", "zoe", when, 0.9, 1.0)
    await models.answerer.draft(Question("How often?", ENGLISH), [source], Zone.NORMAL)
    [body] = fake.posted("/api/chat")
    assert body["messages"][1]["content"].startswith("=== categories of the forum\n- Plants\n- Pots\n=== end of")
