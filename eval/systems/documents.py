"""The public posts of an index, as the baselines read them: texts, and the vectors of one profile."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.domain import Case, Hit
from eval.systems.system import DEPTH
from service.domain import EmbeddingProfile, TopicId
from service.store.pool import Pool, connection
from service.store.profiles import find_profile

_POSTS = "SELECT topic_id, post_number, title, body, post_id FROM public_posts ORDER BY topic_id, post_number"
_VECTORS = "SELECT post_id, embedding FROM embeddings WHERE profile_id = %s ORDER BY post_id, passage"


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """n posts in order of topic and number, as `topics` and `numbers`, shape (n,).

    `texts` are title and body. `vectors`, shape (passages, dimensions), belong to the rows `owners`, shape (passages,);
    those of one post follow each other.
    """

    topics: NDArray[np.int64]
    numbers: NDArray[np.int64]
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]

    def best(self, scores: NDArray[np.floating], case: Case) -> tuple[Hit, ...]:
        """The DEPTH posts of highest finite score, shape (n,), without what the case excludes; ties by row."""
        scores = scores.copy()
        if case.exclude_from is not None:
            topic_id, number = case.exclude_from
            scores[(self.topics == topic_id) & (self.numbers >= number)] = -np.inf
        if case.exclude_post is not None:
            topic_id, number = case.exclude_post
            scores[(self.topics == topic_id) & (self.numbers == number)] = -np.inf
        least = np.partition(scores, -DEPTH)[-DEPTH] if len(scores) > DEPTH else -np.inf
        likely = np.flatnonzero(scores >= least)
        order = likely[np.argsort(-scores[likely], kind="stable")][:DEPTH]
        return tuple(self._hit(int(row), float(scores[row])) for row in order if np.isfinite(scores[row]))

    def _hit(self, row: int, score: float) -> Hit:
        return Hit(TopicId(int(self.topics[row])), int(self.numbers[row]), score)


async def read_documents(pool: Pool, profile: EmbeddingProfile) -> Documents:
    """Every post that the public sees; raises Transient or Misconfigured."""
    async with connection(pool) as conn:
        posts = await (await conn.execute(_POSTS)).fetchall()
        profile_id = await find_profile(conn, profile)
        async with conn.cursor(binary=True) as cursor:
            await cursor.execute(_VECTORS, (profile_id,))
            passages = await cursor.fetchall()
    rows = {post[4]: row for row, post in enumerate(posts)}
    known = [(rows[post_id], vector) for post_id, vector in passages if post_id in rows]
    return Documents(
        topics=_numbers(post[0] for post in posts),
        numbers=_numbers(post[1] for post in posts),
        texts=tuple(f"{post[2]}\n\n{post[3]}" for post in posts),
        vectors=np.array([vector.to_numpy() for _, vector in known], dtype=np.float32).reshape(
            len(known), profile.dimensions
        ),
        owners=_numbers(row for row, _ in known),
    )


def _numbers(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)
