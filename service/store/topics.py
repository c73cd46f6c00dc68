"""What is kept of whole topics: the length of their text, and under each profile their mean vector and first post's.

Who calls these functions holds the row locks of the posts concerned, and has done with document frequencies; topics are
locked after them, in the order of their ids.
"""

from collections.abc import Collection, Iterable

from service.domain import PostId, TopicId
from service.store.pool import Connection

_OF_POSTS = "SELECT DISTINCT topic_id FROM posts WHERE post_id = ANY(%s) AND topic_id IS NOT NULL"

_LOCK = "SELECT FROM topics WHERE topic_id = ANY(%s) ORDER BY topic_id FOR NO KEY UPDATE"

_LENGTHS = """
UPDATE topics SET length = now.length FROM (
    SELECT topic_id, coalesce(sum(posts.length) FILTER (WHERE refusal IS NULL), 0) AS length
    FROM posts WHERE topic_id = ANY(%s) GROUP BY topic_id
) AS now WHERE topics.topic_id = now.topic_id AND topics.length <> now.length
"""

WHOLE_POST = "CASE count(*) WHEN 1 THEN avg(embedding) ELSE l2_normalize(avg(embedding)) END"
"""The vector of a whole post: that of its only passage, or the mean of several made as long as one, so that each post
of a topic counts alike."""

_VECTORS = (
    "DELETE FROM topic_embeddings WHERE topic_id = ANY(%s)",
    # One average takes half the time of two, and a topic may have thousands of posts.
    """
INSERT INTO topic_embeddings (profile_id, grain, topic_id, embedding)
SELECT profile_id, 'mean', topic_id, l2_normalize(avg(embedding))
FROM embeddings JOIN posts USING (post_id) JOIN embedding_profiles USING (profile_id)
WHERE topic_id = ANY(%s) AND passage_tokens = 0 GROUP BY profile_id, topic_id HAVING l2_norm(avg(embedding)) > 0
""",
    f"""
INSERT INTO topic_embeddings (profile_id, grain, topic_id, embedding)
SELECT profile_id, 'mean', topic_id, l2_normalize(avg(embedding)) FROM (
    SELECT profile_id, topic_id, {WHOLE_POST} AS embedding
    FROM embeddings JOIN posts USING (post_id) JOIN embedding_profiles USING (profile_id)
    WHERE topic_id = ANY(%s) AND passage_tokens > 0 GROUP BY profile_id, topic_id, post_id
) AS of_posts GROUP BY profile_id, topic_id HAVING l2_norm(avg(embedding)) > 0
""",  # noqa: S608 - made of constants
    """
INSERT INTO topic_embeddings (profile_id, grain, topic_id, embedding)
SELECT DISTINCT ON (profile_id, topic_id) profile_id, 'first', topic_id, embedding
FROM embeddings JOIN posts USING (post_id)
WHERE topic_id = ANY(%s) AND post_number = 1 ORDER BY profile_id, topic_id, post_id, passage
""",
)


async def topics_of(conn: Connection, post_ids: Iterable[PostId]) -> set[TopicId]:
    """The topics that these posts are in, as stored."""
    return {row[0] async for row in await conn.execute(_OF_POSTS, (list(post_ids),))}


async def refresh_topics(
    conn: Connection, *, lengths: Collection[TopicId] = (), vectors: Collection[TopicId] = ()
) -> None:
    """Make these lengths, and these vectors under every profile, agree with the topics' posts.

    Call it once in a transaction: a second call would break the order of the locks.
    """
    both = sorted({*lengths, *vectors})
    if not both:
        return
    # A statement of its own: what another transaction wrote into these topics is seen by those that follow.
    await conn.execute(_LOCK, (both,))
    if lengths:
        await conn.execute(_LENGTHS, (list(lengths),))
    if vectors:
        for statement in _VECTORS:
            await conn.execute(statement, (list(vectors),))
