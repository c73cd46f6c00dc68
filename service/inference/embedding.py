"""What embedders on a server have in common: prefixes, the window, and the check of every vector on arrival."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from service.domain import Embedded, EmbeddingProfile, TextFailure, TruncatedVector, Vector
from service.errors import Misconfigured, Rejected, Transient
from service.inference.batching import TooLong, in_batches
from service.inference.tokens import estimated_tokens, sendable
from service.telemetry import log

UNIT_TOLERANCE = 1e-3
CHARS_A_TOKEN = 16
"""No prose has tokens this long on average: what lies past the window times this is never read."""
MARKS = 2
"""Tokens that begin and end every text."""
PROBE = "A text that every model can read."


class Overflow(StrEnum):
    """What happens to a text longer than the model's window."""

    REFUSE = "refuse"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """What a profile says of its texts: the model's prefixes, and what happens to a text longer than its window."""

    query_prefix: str = ""
    passage_prefix: str = ""
    overflow: Overflow = Overflow.TRUNCATE


class Send(Protocol):
    """One request: the vectors as the server gave them, null for NaN.

    It ends by `until` (on the event loop's clock), or within its own timeout. Raises BatchRefused, or TooLong, when a
    text may be at fault; without `suspect` a doubtful failure is the server's.
    """

    async def __call__(
        self, texts: Sequence[str], *, truncate: bool, urgent: bool, suspect: bool, until: float | None = None
    ) -> Sequence[Sequence[float | None]]: ...


def fitting(text: str, profile: EmbeddingProfile, options: EmbedderOptions) -> str:
    """The text as it is sent: cut where no window reaches; the server counts tokens and tells of the rest."""
    if options.overflow is Overflow.TRUNCATE:
        text = text[: profile.window_tokens * CHARS_A_TOKEN]
    return sendable(text)


def counted(text: str, options: EmbedderOptions) -> float:
    """About how many tokens a server makes of a passage, with the prefix and the marks; rather too many."""
    return MARKS + estimated_tokens(options.passage_prefix) + estimated_tokens(sendable(text))


async def embed_passages(
    texts: Sequence[str], send: Send, profile: EmbeddingProfile, options: EmbedderOptions, *, limit: int
) -> list[Embedded]:
    """What became of each passage, in order, at most `limit` texts a request; raises as the port says."""

    async def call(batch: Sequence[str]) -> Sequence[Vector | TruncatedVector | TextFailure]:
        try:
            return _read(await send(batch, truncate=False, urgent=False, suspect=True), len(batch), profile)
        except TooLong:
            if len(batch) > 1 or options.overflow is Overflow.REFUSE:
                raise
        [made] = _read(await send(batch, truncate=True, urgent=False, suspect=True), 1, profile)
        cut: TruncatedVector | TextFailure = made if isinstance(made, TextFailure) else TruncatedVector(made)
        return [cut]

    async def probe() -> None:
        [made] = _read(await send([PROBE], truncate=False, urgent=False, suspect=False), 1, profile)
        if isinstance(made, TextFailure):
            raise Transient(f"{profile.model} fails on every text: {made.error}")

    prefixed = [options.passage_prefix + fitting(text, profile, options) for text in texts]
    made_of_each: list[Embedded] = list(await in_batches(prefixed, call, limit=limit, probe=probe))
    return made_of_each


async def embed_query(
    text: str, send: Send, profile: EmbeddingProfile, options: EmbedderOptions, *, until: float
) -> Vector:
    """The vector of a question, of its beginning (logged) when it is too long; raises Rejected when there is none."""
    query = options.query_prefix + fitting(text, profile, options)
    try:
        rows = await send([query], truncate=False, urgent=True, suspect=False, until=until)
    except TooLong:
        if options.overflow is Overflow.REFUSE:
            raise
        log.warning("question_truncated", profile=profile.name, chars=len(text))
        rows = await send([query], truncate=True, urgent=True, suspect=False, until=until)
    [made] = _read(rows, 1, profile)
    if isinstance(made, TextFailure):
        raise Rejected(f"{profile.model} can't embed this question: {made.error}")
    return made


def _read(
    rows: Sequence[Sequence[float | None]], expected: int, profile: EmbeddingProfile
) -> list[Vector | TextFailure]:
    if len(rows) != expected:
        raise Transient(f"{profile.model} gave {len(rows)} vectors for {expected} texts")
    return [read_vector(row, profile) for row in rows]


def read_vector(values: Sequence[float | None] | Vector, profile: EmbeddingProfile) -> Vector | TextFailure:
    """The vector, checked: a failure of this text when it isn't finite or is zero.

    Raises Misconfigured when it has another dimension or length: that is another model than the profile's.
    """
    try:
        with np.errstate(over="ignore"):  # what is past a float's range becomes infinite, and is refused below
            vector = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as exc:
        raise Transient(f"{profile.model} gave no vector: {exc}") from exc
    if vector.shape != (profile.dimensions,):
        raise Misconfigured(
            f"the embedder gives {vector.shape} numbers where profile {profile.name} has {profile.dimensions}: "
            "serve the profile's model, or activate the profile of the model that is served"
        )
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(norm) or norm == 0:
        return TextFailure("no finite vector (NaN, infinite or zero)")
    if abs(norm - 1.0) > UNIT_TOLERANCE:
        raise Misconfigured(f"the embedder's vectors have length {norm:.3f}, not 1: turn its normalisation on")
    return vector
