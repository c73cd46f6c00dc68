"""When a model is used: the proof before the first answer, again when it is old or the model was away."""

import asyncio
from collections.abc import Sequence

import pytest

from service.answer.retrieve import retrieve
from service.domain import ENGLISH, Candidate, EmbeddingProfile, Mode, Question, Trace
from service.errors import Busy, Misconfigured, Transient
from service.inference.proved import ProvedEmbedder, ProvedReranker
from service.inference.references import Proof, Verdict
from service.settings import RetrievalSettings
from tests.fakes.answering import FakeReranker, FakeSearch, candidate
from tests.fakes.embedder import HashEmbedder

EMBEDDER = EmbeddingProfile("toy", 100, 1, dimensions=16, window_tokens=512)


class Prover:
    """Gives the verdict it is told and counts how often it was asked."""

    def __init__(self, proof: Proof = Proof.PROVED) -> None:
        self.proof = proof
        self.asked = 0
        self.now = 0.0

    async def __call__(self) -> Verdict:
        self.asked += 1
        await asyncio.sleep(0)
        return Verdict(self.proof, "as told")

    def clock(self) -> float:
        return self.now

    def embedder(self, inner: HashEmbedder | None = None) -> ProvedEmbedder:
        return ProvedEmbedder(inner or HashEmbedder(EMBEDDER), self, clock=self.clock)

    def reranker(self, inner: FakeReranker | None = None) -> ProvedReranker:
        return ProvedReranker(inner or FakeReranker(), self, clock=self.clock)


async def test_many_first_callers_wait_for_one_proof() -> None:
    prover = Prover()
    embedder = prover.embedder()
    await asyncio.gather(*(embedder.embed_query("q") for _ in range(20)), embedder.embed_passages(["p"]))
    assert prover.asked == 1
    assert embedder.profile is EMBEDDER
    assert embedder.truncate("x" * 300) == "x" * 200


@pytest.mark.parametrize(
    ("proof", "error"),
    [
        (Proof.DIFFERENT, Misconfigured),
        (Proof.NO_REFERENCES, Misconfigured),
        (Proof.UNREACHABLE, Transient),
    ],
)
async def test_without_proof_an_embedder_is_not_even_asked(proof: Proof, error: type[Exception]) -> None:
    inner = HashEmbedder(EMBEDDER)
    embedder = Prover(proof).embedder(inner)
    with pytest.raises(error, match=r"embedder toy/100\.1 is not used: as told"):
        await embedder.embed_query("q")
    with pytest.raises(error):
        await embedder.embed_passages(["p"])
    assert inner.embedded == []


@pytest.mark.parametrize(("proof", "used"), [(Proof.NO_REFERENCES, True), (Proof.DIFFERENT, False)])
async def test_a_reranker_without_references_is_used_and_another_one_is_not(proof: Proof, used: bool) -> None:
    reranker = Prover(proof).reranker()
    found: Sequence[Candidate] = [candidate(1)]
    if used:
        assert await reranker.rerank("q", found) == [1.0]
    else:
        with pytest.raises(Misconfigured, match="reranker fake is not used"):
            await reranker.rerank("q", found)
    assert reranker.profile.name == "fake"


async def test_an_old_proof_is_renewed_beside_the_work() -> None:
    prover = Prover()
    embedder = prover.embedder()
    await embedder.embed_query("q")
    prover.now, prover.proof = 299.0, Proof.DIFFERENT
    await embedder.embed_query("q")
    assert prover.asked == 1
    prover.now = 300.0
    await embedder.embed_query("this one still counts on the old proof")
    await asyncio.sleep(0.01)
    assert prover.asked == 2
    with pytest.raises(Misconfigured):
        await embedder.embed_query("q")
    prover.now, prover.proof = 600.0, Proof.PROVED
    with pytest.raises(Misconfigured):
        await embedder.embed_query("q")
    await asyncio.sleep(0.01)
    await embedder.embed_query("served rightly again")
    await embedder.proving.aclose()


async def test_a_model_that_was_away_proves_itself_anew_before_it_is_used() -> None:
    prover, inner = Prover(), HashEmbedder(EMBEDDER)
    embedder = prover.embedder(inner)
    await embedder.embed_query("q")
    inner.down = Busy("full")
    with pytest.raises(Busy):
        await embedder.embed_query("q")
    inner.down = Transient("gone")
    with pytest.raises(Transient, match="gone"):
        await embedder.embed_query("q")
    assert prover.asked == 1
    inner.down, prover.proof = None, Proof.DIFFERENT
    with pytest.raises(Misconfigured):
        await embedder.embed_query("back, as somebody else")
    assert prover.asked == 2


async def test_a_full_server_stays_proved_and_one_never_proved_is_not_used() -> None:
    prover, inner = Prover(Proof.BUSY), HashEmbedder(EMBEDDER)
    embedder = prover.embedder(inner)
    with pytest.raises(Busy, match="is not used"):
        await embedder.embed_query("q")
    prover.proof = Proof.PROVED
    await embedder.embed_query("q")
    prover.now, prover.proof = 300.0, Proof.BUSY
    await embedder.embed_query("q")
    await asyncio.sleep(0.01)
    assert (prover.asked, used(embedder)) == (3, True)
    await embedder.embed_query("q")
    prover.now, prover.proof = 330.0, Proof.DIFFERENT
    await embedder.embed_query("q")
    await asyncio.sleep(0.01)
    assert (prover.asked, used(embedder)) == (4, False)
    await embedder.proving.aclose()


async def test_a_model_that_turns_out_to_be_another_is_proved_anew_and_again_soon() -> None:
    prover, inner = Prover(), HashEmbedder(EMBEDDER)
    embedder = prover.embedder(inner)
    await embedder.embed_query("q")
    inner.down = Misconfigured("it gives 1024 numbers")
    with pytest.raises(Misconfigured, match="1024"):
        await embedder.embed_query("q")
    assert used(embedder) is False
    inner.down, prover.proof = None, Proof.DIFFERENT
    with pytest.raises(Misconfigured, match="as told"):
        await embedder.embed_query("q")
    prover.now, prover.proof = 30.0, Proof.PROVED
    with pytest.raises(Misconfigured, match="as told"):
        await embedder.embed_query("mended, but not looked at yet")
    await asyncio.sleep(0.01)
    await embedder.embed_query("q")
    assert prover.asked == 3
    await embedder.proving.aclose()


async def test_a_proof_without_end_costs_its_time_once_and_a_while_nothing() -> None:
    now, asked = [0.0], 0

    async def endless() -> Verdict:
        nonlocal asked
        asked += 1
        await asyncio.sleep(60)
        raise AssertionError("it is cut before")

    embedder = ProvedEmbedder(HashEmbedder(EMBEDDER), endless, proof_seconds=0.05, clock=lambda: now[0])
    made = await asyncio.gather(*(embedder.embed_query("q") for _ in range(5)), return_exceptions=True)
    assert {type(one) for one in made} == {Transient}
    with pytest.raises(Transient, match=r"its proof took more than 0\.05 s"):
        await embedder.embed_query("q")
    assert asked == 1
    now[0] = 0.06
    with pytest.raises(Transient):
        await embedder.embed_query("q")
    assert asked == 2


async def test_a_proof_that_took_too_long_is_not_begun_anew_for_as_long_as_it_took() -> None:
    """Neither before its callers nor beside them, though it took longer than a bad verdict is kept."""
    now, begun, ended = [0.0], 0, False

    async def prove() -> Verdict:
        nonlocal begun
        begun += 1
        if not ended:
            raise TimeoutError  # what the limit of its time makes of it
        return Verdict(Proof.PROVED, "as told")

    embedder = ProvedEmbedder(HashEmbedder(EMBEDDER), prove, proof_seconds=60, clock=lambda: now[0])
    for now[0] in (0.0, 30.0, 59.0):
        with pytest.raises(Transient, match="more than 60 s"):
            await embedder.embed_query("q")
        await asyncio.sleep(0.01)
        assert begun == 1
    now[0], ended = 60.0, True
    await embedder.embed_query("q")
    assert begun == 2
    await embedder.proving.aclose()


def used(embedder: ProvedEmbedder) -> bool | None:
    return embedder.proving.used


async def test_those_who_wait_for_a_proof_share_what_it_says() -> None:
    prover = Prover(Proof.UNREACHABLE)
    embedder = prover.embedder()
    assert used(embedder) is None
    made = await asyncio.gather(*(embedder.embed_query("q") for _ in range(5)), return_exceptions=True)
    assert {type(one) for one in made} == {Transient}
    assert (prover.asked, used(embedder)) == (1, False)
    prover.proof = Proof.PROVED
    await embedder.embed_query("q")
    assert (prover.asked, used(embedder)) == (2, True)


async def test_an_unreachable_model_is_asked_again_by_the_next_caller() -> None:
    prover = Prover(Proof.UNREACHABLE)
    embedder = prover.embedder()
    with pytest.raises(Transient):
        await embedder.embed_query("q")
    prover.proof = Proof.PROVED
    await embedder.embed_query("q")
    assert prover.asked == 2


async def test_a_question_to_another_embedder_is_answered_by_words_alone() -> None:
    search = FakeSearch(nearest=[candidate(1)], worded=[candidate(2)])
    trace = Trace()
    found = await retrieve(
        Question("how to water tomatoes", ENGLISH),
        Prover(Proof.DIFFERENT).embedder(),
        search,
        RetrievalSettings(),
        trace,
    )
    assert [one.post_id for one in found] == [2]
    assert trace.mode is Mode.KEYWORD
