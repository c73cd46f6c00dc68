"""Put what was read of a forum into the index beside a live service: what that wrote meanwhile is newer and stays."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from service.domain import CategoryId, Post, Topic, TopicId
from service.ingest.backfill import Backfill
from service.ingest.eligibility import public_part
from service.ingest.index import prepare

MAX_TURNS = 5
"""How often posts are put again since their topics or categories changed meanwhile."""


class StoredTopics(Protocol):
    async def topics_stored(self, topic_ids: Collection[TopicId]) -> dict[TopicId, Topic]: ...


async def put_topics_read(topics: Sequence[Topic], at: Backfill, *, read_at: datetime) -> None:
    """Store what the public sees of topics whose reading began at `read_at`, unless they were stored since."""
    known = await at.corpus.categories()
    public = [public_part(topic, known.get(topic.category_id or CategoryId(0)), at.rules) for topic in topics]
    await at.corpus.put_topics(public, read_at=read_at)


async def put_posts_read(posts: Sequence[Post], state: StoredTopics, at: Backfill, *, read_at: datetime) -> None:
    """Store these posts, decided on by the stored state of their topics and categories as it is afterwards.

    A topic made private while its posts are put would else get them back: its webhook changes no post's date.
    """
    ids = {post.topic_id for post in posts}
    stored = await state.topics_stored(ids), await at.corpus.categories()
    for _ in range(MAX_TURNS):
        topics, categories = stored
        ready = [
            prepare(post, topic, categories.get(topic.category_id or CategoryId(0)), at.rules)
            for post in posts
            if (topic := topics.get(post.topic_id))
        ]
        await at.corpus.put_posts(ready, read_at=read_at)
        stored = await state.topics_stored(ids), await at.corpus.categories()
        if stored == (topics, categories):
            return
