"""An embedder and a reranker that are used only while they prove to be the models that they are taken for."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from service.domain import Candidate, Embedded, EmbeddingProfile, RerankerProfile, Vector
from service.errors import Busy, Misconfigured, Transient
from service.inference.references import Proof, Verdict
from service.telemetry import log

RECHECK_SECONDS = 300.0
"""How old a proof may be before it is made again, beside the work: somebody may serve another model meanwhile."""
RETRY_SECONDS = 30.0
"""How old a bad verdict may be: somebody may have mended it."""
PROOF_SECONDS = 60.0
"""Longest time of a proof; its calls are many, and each of them may take as long as a server likes to be waited for."""

R = TypeVar("R")


class Embedder(Protocol):
    """Both ports of embedding, which every adapter matches."""

    @property
    def profile(self) -> EmbeddingProfile: ...
    def truncate(self, text: str) -> str: ...
    def tokens(self, text: str) -> float: ...
    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Embedded]: ...
    async def embed_query(self, text: str) -> Vector: ...


class Reranker(Protocol):
    @property
    def profile(self) -> RerankerProfile: ...
    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]: ...


class Proving:
    """The last verdict on one model, made anew when it is old or the model was away; `prove` never raises."""

    def __init__(
        self,
        name: str,
        prove: Callable[[], Awaitable[Verdict]],
        *,
        enough: frozenset[Proof],
        proof_seconds: float = PROOF_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`enough` are the proofs under which the model is used; one that takes over `proof_seconds` has failed."""
        self._name = name
        self._prove = prove
        self._enough = enough
        self._proof_seconds = proof_seconds
        self._clock = clock
        self._verdict: Verdict | None = None
        self._old_at = 0.0
        self._left_alone_until = 0.0
        self._made = 0
        self._alone = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None

    @property
    def used(self) -> bool | None:
        """Whether the last verdict lets the model be used; None before the first."""
        return None if self._verdict is None else self._verdict.proof in self._enough

    async def require(self) -> None:
        """Return when the model may be used.

        Raises Transient when it can't be reached to tell (Busy when it is full), Misconfigured when it is another one.
        Who comes first, or first after the model was unreachable, waits for the proof; it is renewed in the background
        later on. Those who come while a proof is made share what it says: a server that hangs costs each of them its
        timeout once. A proof that took too long is not begun anew for as long as it took.
        """
        if self._is_missing():
            made = self._made
            async with self._alone:
                if self._is_missing() and self._made == made:
                    await self._renew()
        elif self._clock() >= self._old_at and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())
        verdict = self._verdict
        if verdict is not None and verdict.proof not in self._enough:
            kind = {Proof.UNREACHABLE: Transient, Proof.BUSY: Busy}.get(verdict.proof, Misconfigured)
            raise kind(f"{self._name} is not used: {verdict.detail}")

    def doubt(self, why: str) -> None:
        """Have it proved anew before it is used again: what answers next may be another model."""
        self._verdict = Verdict(Proof.UNREACHABLE, why)

    async def aclose(self) -> None:
        """Stop a renewal that is under way."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)

    def _is_missing(self) -> bool:
        if self._verdict is None:
            return True
        return self._verdict.proof in (Proof.UNREACHABLE, Proof.BUSY) and self._clock() >= self._left_alone_until

    async def _renew(self) -> None:
        alone = 0.0
        try:
            async with asyncio.timeout(self._proof_seconds):
                verdict = await self._prove()
        except TimeoutError:
            verdict = Verdict(Proof.UNREACHABLE, f"its proof took more than {self._proof_seconds:g} s")
            alone = self._proof_seconds
        self._made += 1
        good = verdict.proof in self._enough
        now = self._clock()
        self._left_alone_until = now + alone
        self._old_at = now + max(alone, RECHECK_SECONDS if good else RETRY_SECONDS)
        if verdict.proof is Proof.PROVED:
            log.info("model_proved", model=self._name, detail=verdict.detail)
        else:
            log.warning("model_not_proved", model=self._name, proof=verdict.proof, detail=verdict.detail)
        if not (verdict.proof is Proof.BUSY and self.used):  # it lives, and was proved before: it stays so
            self._verdict = verdict


class ProvedEmbedder:
    """PassageEmbedder and QueryEmbedder that raise Misconfigured unless they reproduce the profile's references.

    A wrong model thus neither searches the index nor writes to it.
    """

    def __init__(
        self,
        embedder: Embedder,
        prove: Callable[[], Awaitable[Verdict]],
        *,
        proof_seconds: float = PROOF_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.proving = Proving(
            f"embedder {embedder.profile.name}",
            prove,
            enough=frozenset({Proof.PROVED}),
            proof_seconds=proof_seconds,
            clock=clock,
        )
        self._embedder = embedder

    @property
    def profile(self) -> EmbeddingProfile:
        return self._embedder.profile

    def truncate(self, text: str) -> str:
        return self._embedder.truncate(text)

    def tokens(self, text: str) -> float:
        return self._embedder.tokens(text)

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Embedded]:
        return await _used(self.proving, lambda: self._embedder.embed_passages(texts))

    async def embed_query(self, text: str) -> Vector:
        return await _used(self.proving, lambda: self._embedder.embed_query(text))


class ProvedReranker:
    """Reranker that raises Misconfigured when it scores its reference pairs otherwise than its thresholds suppose.

    One without reference pairs is used: `ariane doctor` warns of it.
    """

    def __init__(
        self,
        reranker: Reranker,
        prove: Callable[[], Awaitable[Verdict]],
        *,
        proof_seconds: float = PROOF_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.proving = Proving(
            f"reranker {reranker.profile.name}",
            prove,
            enough=frozenset({Proof.PROVED, Proof.NO_REFERENCES}),
            proof_seconds=proof_seconds,
            clock=clock,
        )
        self._reranker = reranker

    @property
    def profile(self) -> RerankerProfile:
        return self._reranker.profile

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        return await _used(self.proving, lambda: self._reranker.rerank(question, candidates))


async def _used(proving: Proving, call: Callable[[], Awaitable[R]]) -> R:
    await proving.require()
    try:
        return await call()
    except Busy:
        raise
    except (Transient, Misconfigured) as exc:
        proving.doubt(f"when it was last used: {exc}")
        raise
