"""The questions that moderators made tests of, as a dataset's questions.yml has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from service.domain import PostId, UserId
from service.store.pool import Connection, Pool, connection
from service.store.values import storable

_PUT = """
INSERT INTO test_questions AS known
    (post_id, slice, lang, question, golden, note, made_by, made_by_user_id, made_at)
VALUES (%(post_id)s, %(slice)s, %(lang)s, %(question)s, %(golden)s, %(note)s, %(by)s, %(by_user_id)s, %(now)s)
ON CONFLICT (post_id) DO UPDATE SET slice = excluded.slice, lang = excluded.lang, question = excluded.question,
    golden = excluded.golden, note = excluded.note, made_by = excluded.made_by,
    made_by_user_id = excluded.made_by_user_id, made_at = excluded.made_at
"""


Golden = Sequence[tuple[int, Sequence[int]]]
"""Topics, and in each the numbers of the posts that answer."""


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A question, made of the one in this post, with the posts that answer it: none where nothing does."""

    post_id: PostId
    slice: str
    lang: str
    question: str
    golden: Golden
    note: str


async def put(conn: Connection, one: CheckedQuestion, *, by: str, user_id: UserId | None, now: datetime) -> None:
    """Keep the question in place of an earlier one made of the same post."""
    values = {
        "post_id": one.post_id,
        "slice": one.slice,
        "lang": one.lang,
        "question": storable(one.question),
        "golden": Jsonb([{"topic": topic, "posts": list(posts), "grade": 2} for topic, posts in one.golden]),
        "note": storable(one.note),
        "by": storable(by),
        "by_user_id": user_id,
        "now": now,
    }
    await conn.execute(_PUT, values)


class CheckedQuestionStore:
    """Gives the questions to who writes them out."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def all(self) -> list[CheckedQuestion]:
        """Every question, by its post."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "SELECT post_id, slice, lang, question, golden, note FROM test_questions ORDER BY post_id"
            )
            return [
                CheckedQuestion(post_id, slice_, lang, question, _golden(golden), note)
                async for post_id, slice_, lang, question, golden, note in cursor
            ]


def _golden(stored: Sequence[dict[str, Any]]) -> Golden:
    return [(one["topic"], one["posts"]) for one in stored]
