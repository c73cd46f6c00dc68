"""What was said in a topic before a post: public posts by humans, and our replies as the ledger has them."""

from service.domain import Before, Post
from service.store.pool import Pool, connection

# Bots' posts are not in the index: what stands there was written by humans.
_HUMANS = """
SELECT post_number, body FROM public_posts
WHERE topic_id = %(topic_id)s AND post_number < %(before)s
ORDER BY post_number DESC LIMIT %(humans)s
"""
# A bot's post that everyone sees is refused for nothing but its author; one that no event told of yet is there to see.
# Retention empties a text.
_OURS = """
SELECT reply_post_number, raw FROM answers
WHERE topic_id = %(topic_id)s AND reply_post_number < %(before)s AND reply_post_number > %(since)s AND raw <> ''
  AND NOT EXISTS (SELECT FROM posts WHERE posts.post_id = reply_post_id AND refusal <> 'bot_author')
ORDER BY reply_post_number DESC LIMIT %(humans)s
"""


class ThreadStore:
    """Matches `service.answer.condense.condenser.Threads`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def before(self, post: Post, humans: int) -> Before:
        """The last `humans` posts by humans before this one in its topic, with our replies since the first of them.

        A reply that was deleted or hidden, or whose text is no longer kept, is left out.
        """
        wanted = {"topic_id": post.topic_id, "before": post.post_number, "humans": humans}
        async with connection(self._pool) as conn:
            said = await (await conn.execute(_HUMANS, wanted)).fetchall()
            first = said[-1][0] if said else None
            ours = await (await conn.execute(_OURS, {**wanted, "since": first or 0})).fetchall()
        turns = [(number, "user", text) for number, text in said] + [(number, "bot", text) for number, text in ours]
        return Before(tuple((role, str(text)) for _, role, text in sorted(turns)), first)
