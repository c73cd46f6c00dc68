"""The vectors that searches are measured on: made to order, or read from a file, with questions held out of them."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.errors import Rejected
from service.store.pool import Pool, connection

LIKE = {"mild": (0.65, 0.45), "e5": (0.906, 0.827)}
"""Mean cosines within a topic and between topics: of a mild model, and as e5 was measured on a real forum."""

TOPIC_POSTS = 10
"""Posts of a made topic on average; their numbers are log-normal with SIZE_SIGMA, as on a real forum (0.9)."""

SIZE_SIGMA = 1.0

SUBJECTS = 16
"""Directions that all topics are mixed of, so that some are closer than others: cosines between topics then differ by
0.02, as on a real forum (0.025), where 27 % of a post's nearest 25 are of its own topic."""

SEED = 7
"""Of all that a bench draws: two runs ask the same of the same posts."""

_UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, MemoryError, SyntaxError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip
"""What numpy and zipfile raise for a damaged file (TypeError for a lone array, which is no archive)."""

_CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Vectors:
    """Unit vectors as halfvec keeps them: `stored` float32[n, d] with the topic of each, `questions` float32[q, d].

    `lengths`, float32[n], are what the rounding made of 1: near neighbours differ by less.
    """

    stored: NDArray[np.float32]
    lengths: NDArray[np.float32]
    topics: NDArray[np.int64]
    questions: NDArray[np.float32]

    def first(self, posts: int) -> "Vectors":
        """The same with the first posts only: a smaller forum, asked the same questions."""
        return Vectors(self.stored[:posts], self.lengths[:posts], self.topics[:posts], self.questions)


def synthetic(posts: int, dimensions: int, questions: int, *, within: float, between: float) -> Vectors:
    """Vectors whose cosines are on average `within` a topic and `between` topics; a question is as a post of a topic.

    Each is the sum of a direction that all share, one of its topic (of few dimensions) and one of its own (of all), of
    squared lengths `between`, `within` - `between` and 1 - `within`. Raises Rejected unless 0 <= between <= within < 1.
    """
    if not 0 <= between <= within < 1:
        raise Rejected(f"cosines within topics ({within}) and between them ({between}) need 0 <= between <= within < 1")
    chance = np.random.default_rng(SEED)
    common = _unit(chance.standard_normal((1, dimensions), dtype=np.float32)) * np.float32(between**0.5)
    count = max(1, posts // TOPIC_POSTS)
    subjects, _ = np.linalg.qr(chance.standard_normal((dimensions, min(SUBJECTS, dimensions))))
    mixed = _unit(chance.standard_normal((count, subjects.shape[1]), dtype=np.float32))
    centres = mixed @ subjects.T.astype(np.float32) * np.float32((within - between) ** 0.5)
    centres += common

    def around(topics: NDArray[np.int64]) -> NDArray[np.float32]:
        made = np.empty((len(topics), dimensions), dtype=np.float32)
        for start in range(0, len(topics), _CHUNK):
            part = slice(start, start + _CHUNK)
            own = _unit(chance.standard_normal((len(topics[part]), dimensions), dtype=np.float32))
            made[part] = _as_stored(centres[topics[part]] + own * np.float32((1 - within) ** 0.5))
        return made

    sizes = chance.lognormal(sigma=SIZE_SIGMA, size=count)
    of_posts, of_questions = (chance.choice(count, size=n, p=sizes / sizes.sum()) for n in (posts, questions))
    asked = around(of_questions)
    stored = around(of_posts)
    return Vectors(stored, _lengths(stored), of_posts + 1, asked)


def read_vectors(path: Path, questions: int) -> Vectors:
    """A dataset's vectors.npz (docs: `topic_id`, `embedding`); raises Rejected for a file that isn't one."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            embedding, topics = file["embedding"], file["topic_id"]
    except _UNREADABLE as exc:
        raise Rejected(f"{path}: no vectors (an .npz with topic_id and embedding): {exc}") from exc
    return hold_out(embedding, topics, questions, origin=str(path))


async def read_profile(pool: Pool, name: str, questions: int) -> Vectors:
    """The first passages of the posts that are stored under the profile; raises Rejected when there is none."""
    async with connection(pool) as conn:
        cursor = await conn.execute(
            "SELECT topic_id, embedding FROM embeddings JOIN posts USING (post_id) JOIN embedding_profiles AS profile"
            " USING (profile_id) WHERE passage = 0 AND model || '/' || strategy || '.' || profile.version = %s",
            (name,),
        )
        rows = await cursor.fetchall()
    if not rows:
        raise Rejected(f"no vector is stored under a profile {name!r}", status=404)
    embedding = np.stack([row[1].to_numpy() for row in rows])
    return hold_out(embedding, np.array([row[0] for row in rows]), questions, origin=name)


def hold_out(embedding: NDArray[Any], topics: NDArray[Any], questions: int, *, origin: str) -> Vectors:
    """The vectors without a random choice of them, which ask; raises Rejected, naming the origin, for unusable ones."""
    if embedding.ndim != 2 or embedding.dtype.kind != "f" or topics.shape != embedding.shape[:1]:
        raise Rejected(f"{origin}: needs embedding float[n, d] and topic_id [n]")
    if topics.dtype.kind not in "iu" or len(topics) <= questions:
        raise Rejected(f"{origin}: {len(topics)} vectors with whole topic ids needed, more than {questions} questions")
    values = embedding.astype(np.float32)
    if not np.isfinite(values).all() or not np.linalg.norm(values, axis=1).all():
        raise Rejected(f"{origin}: a vector is zero or not finite")
    asking = np.zeros(len(values), dtype=np.bool_)
    asking[np.random.default_rng(SEED).choice(len(values), questions, replace=False)] = True
    values = _as_stored(values)
    stored = values[~asking]
    return Vectors(stored, _lengths(stored), topics[~asking].astype(np.int64), values[asking])


def _lengths(values: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", values, values))
    return lengths


def _unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return values


def _as_stored(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return _unit(values).astype(np.float16).astype(np.float32)
