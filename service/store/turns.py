"""A member's own earlier posts of a topic, as everyone may read them."""

from service.domain import Post
from service.store.pool import Pool, connection

_RECENT = """
SELECT public_posts.body FROM posts JOIN public_posts USING (post_id)
WHERE posts.topic_id = %(topic_id)s AND posts.post_number < %(before)s AND posts.user_id = %(user_id)s
ORDER BY posts.post_number DESC LIMIT %(limit)s
"""


class TurnStore:
    """Matches `service.answer.gate.decline.Turns`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def before(self, post: Post, limit: int) -> tuple[str, ...]:
        """The texts of the last `limit` posts that the post's author wrote before it in its topic, oldest first."""
        wanted = {"topic_id": post.topic_id, "before": post.post_number, "user_id": post.user_id, "limit": limit}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_RECENT, wanted)).fetchall()
        return tuple(str(body) for (body,) in reversed(rows))
