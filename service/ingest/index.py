"""Keep the index current: one function for each kind of change on the forum."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.discourse.cooked import plain_text
from service.domain import Category, CategoryId, InboxId, Post, PostId, Topic, TopicId
from service.ingest.eligibility import IndexRules, public_part, refusal
from service.ingest.embed import embed_posts
from service.ingest.ports import Corpus, ForumReader, Inbox, IndexedPost, PassageEmbedder, TopicPost
from service.lexer import term_counts
from service.telemetry import INDEXED


@dataclass(frozen=True, slots=True)
class Indexer:
    """What every function here works with."""

    corpus: Corpus
    forum: ForumReader
    inbox: Inbox
    embedder: PassageEmbedder
    rules: IndexRules


def prepare(post: Post, topic: Topic, category: Category | None, rules: IndexRules) -> IndexedPost:
    """Decide on a post and, if it is eligible, clean its text and count its terms."""
    refused = refusal(post, topic, category, rules)
    if refused is not None:
        return IndexedPost(post, refused, None, {}, 0)
    body = plain_text(post.cooked)
    terms, length = term_counts(f"{topic.title}\n{body}")
    return IndexedPost(post, None, body, terms, length)


async def index_post(inbox_id: InboxId, at: Indexer) -> None:
    """Bring one delivered post into the index, or out of it; its text is read again where it was not kept."""
    delivery = await at.inbox.delivery(inbox_id)
    if delivery is None:
        return
    if delivery.has_text:
        await _put_post(delivery.post, at)
    else:
        await refresh_post(delivery.post.id, at)
    await at.inbox.done(inbox_id, "index_post")


async def remove_post(inbox_id: InboxId, at: Indexer) -> None:
    """Take a post that its author, a moderator or a private place removed out of the index, at once."""
    delivery = await at.inbox.delivery(inbox_id)
    if delivery is None:
        return
    await at.corpus.remove_post(delivery.post.id, updated_at=delivery.post.updated_at)
    await at.inbox.done(inbox_id, "remove_post")


async def refresh_post(post_id: PostId, at: Indexer) -> None:
    """Read a post again as an anonymous reader and make the index agree."""
    post = await at.forum.public_post(post_id)
    if post is None:
        await at.corpus.withdraw_post(post_id)
    else:
        await _put_post(post, at, just_read=True)


async def refresh_topic(topic_id: TopicId, at: Indexer) -> None:
    """Read a topic again as an anonymous reader: gone means out of the index, changed means all its posts again.

    Title, category and tags are part of every post's text, and an edit of them sends no post (docs/discourse, 3).
    """
    before = await at.corpus.topic(topic_id)
    topic = await at.forum.public_topic(topic_id)
    if topic is None or not topic.visible:
        await at.corpus.remove_topic(topic_id)
        return
    category = await _category(topic, at)
    kept = public_part(topic, category, at.rules)
    await at.corpus.put_topics([kept])
    if before != kept:
        posts = await at.forum.public_posts_of(topic_id)
        await _put_all(posts, topic, category, at, just_read=True)


async def refresh_categories(at: Indexer) -> None:
    """Read the public categories again; what is no longer among them leaves the index."""
    await at.corpus.put_categories(await at.forum.public_categories())
    await at.corpus.withdraw_private()


async def _put_post(post: Post, at: Indexer, *, just_read: bool = False) -> None:
    topic = await at.corpus.topic(post.topic_id)
    # A topic without a title is one that the public didn't see when it was stored.
    retitled = topic is not None and post.post_number == 1 and post.topic_title not in ("", topic.title)
    if topic is None or topic.deleted or not topic.title or retitled:
        topic = await at.forum.public_topic(post.topic_id)
        if topic is None:
            await at.corpus.remove_topic(post.topic_id)
            INDEXED.labels("topic_gone").inc()
            return
        await at.corpus.put_topics([public_part(topic, await _category(topic, at), at.rules)])
    await _put_all([post], topic, await _category(topic, at), at, just_read=just_read)


async def _put_all(
    posts: Sequence[Post], topic: Topic, category: Category | None, at: Indexer, *, just_read: bool
) -> None:
    indexed = [prepare(post, topic, category, at.rules) for post in posts]
    stored = await at.corpus.put_posts(indexed, just_read=just_read)
    INDEXED.labels("stale").inc(len(indexed) - stored)
    for one in indexed:
        INDEXED.labels(one.refusal or "indexed").inc()
    if stored:
        await embed_posts(embeddable(indexed, topic, category), at.corpus, at.embedder)


def embeddable(indexed: Sequence[IndexedPost], topic: Topic, category: Category | None) -> list[TopicPost]:
    """What embedding needs of the eligible posts of one topic."""
    name = category.name if category else ""
    return [TopicPost(one.post.id, topic.title, name, topic.tags, one.body) for one in indexed if one.body is not None]


async def _category(topic: Topic, at: Indexer) -> Category | None:
    """The topic's category; an unknown one is looked for on the forum before it counts as private."""
    known = await at.corpus.categories()
    if topic.category_id is not None and topic.category_id not in known:
        await refresh_categories(at)
        known = await at.corpus.categories()
    return known.get(topic.category_id or CategoryId(0))
