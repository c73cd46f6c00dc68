"""The posts of a topic over REST: all of them, or the newest after one."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from service.discourse.shapes import post_from_json, readable_posts_of, stream_of, topic_from_json
from service.domain import Post, PostId, Thread, Topic, TopicId
from service.errors import Rejected
from service.remote import Params
from service.telemetry import log

CHUNK = 20
"""Posts that Discourse gives by `/t/ID/posts.json`, and by one page of replies (docs/discourse, section 5)."""


class Read(Protocol):
    """A GET; None where the forum shows its reader nothing."""

    async def __call__(self, path: str, params: Params | None = None) -> object | None: ...


async def whole_thread(topic_id: TopicId, read: Read, patiently: Read) -> Thread | None:
    """The topic and every post of it; `patiently` reads all but the first page. A bad post is logged and left out."""
    value = await read(f"t/{topic_id}.json")
    if value is None:
        return None
    topic, stream = asked_topic(value, topic_id), stream_of(value)
    posts = _readable(value, topic)
    for chunk in chunks(sorted(set(stream) - {post.id for post in posts})):
        value = await patiently(f"t/{topic_id}/posts.json", {"post_ids[]": chunk})
        if value is None:  # gone since the first call
            return None
        posts += _readable(value, topic)
    return Thread(topic, tuple(posts), frozenset(stream).union(post.id for post in posts))


def asked_topic(value: object, topic_id: TopicId) -> Topic:
    """The topic of an answer, which must be the one asked for: of another one, all posts would seem to have gone."""
    topic = topic_from_json(value)
    if topic.id != topic_id:
        raise Rejected(f"topic: asked for {topic_id}, got {topic.id}")
    return topic


def asked_post(value: object, post_id: PostId) -> Post:
    """The post of an answer, which must be the one asked for."""
    post = post_from_json(value)
    if post.id != post_id:
        raise Rejected(f"post: asked for {post_id}, got {post.id}")
    return post


async def newest_after(post: Post, read: Read) -> list[Post]:
    """The last CHUNK posts of its topic that are newer than this one; none of a topic that isn't seen."""
    value = await read(f"t/{post.topic_id}.json")
    if value is None:
        return []
    newest = sorted(other for other in stream_of(value) if other > post.id)[-CHUNK:]
    chunk = await read(f"t/{post.topic_id}/posts.json", {"post_ids[]": list(map(int, newest))}) if newest else None
    return [] if chunk is None else _readable(chunk, asked_topic(value, post.topic_id))


def chunks(post_ids: Sequence[PostId]) -> Iterator[list[int]]:
    """The ids as one call may name them."""
    for start in range(0, len(post_ids), CHUNK):
        yield [int(post_id) for post_id in post_ids[start : start + CHUNK]]


def _readable(value: object, topic: Topic) -> list[Post]:
    posts, faults = readable_posts_of(value, topic)
    for fault in faults:
        log.warning("post_unreadable", topic_id=topic.id, fault=str(fault))
    return posts
