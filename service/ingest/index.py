"""Keep the index current: one function for each kind of change on the forum."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.discourse.cooked import plain_text
from service.domain import Category, InboxId, Post, PostId, PostType, Topic, TopicId
from service.errors import Transient
from service.ingest.eligibility import IndexRules, public_part, refusal
from service.ingest.embed import embed_under_each
from service.ingest.ports import Corpus, ForumReader, Inbox, IndexedPost, PassageEmbedder, TopicPost
from service.lexer import term_counts
from service.telemetry import INDEXED

FOLLOWED = 20
"""Posts that are looked for elsewhere when they are no longer in a topic: one finds all that moved along with it."""
MAX_TURNS = 3
"""How often a topic is read again because it was stored anew meanwhile."""


@dataclass(frozen=True, slots=True)
class Indexer:
    """What every function here works with; `others` embed each post too."""

    corpus: Corpus
    forum: ForumReader
    inbox: Inbox
    embedder: PassageEmbedder
    rules: IndexRules
    others: Sequence[PassageEmbedder] = ()


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
        await _put_delivered(delivery.post, at)
    else:
        await refresh_post(delivery.post.id, at)
    await at.inbox.done(inbox_id, "index_post")


async def remove_post(inbox_id: InboxId, at: Indexer) -> None:
    """Take a post that its author, a moderator or a private place removed out of the index, at once.

    Deliveries come in any order: where its topic is public as far as is known, the post is read again then.
    """
    delivery = await at.inbox.delivery(inbox_id)
    if delivery is None:
        return
    post = delivery.post
    await at.corpus.remove_post(post.id, updated_at=post.updated_at)
    topic = await at.corpus.topic(post.topic_id)
    if topic is not None and topic.title:
        if post.post_number == 1 or _elsewhere(post, topic):  # with its first post a topic goes, and where it is moves
            await refresh_topic(post.topic_id, at)
        elif post.post_type == PostType.REGULAR:
            await refresh_post(post.id, at)
    await at.inbox.done(inbox_id, "remove_post")


async def refresh_post(post_id: PostId, at: Indexer) -> None:
    """Read a post again as an anonymous reader and make the index agree."""
    read_at = await at.corpus.now()
    post = await at.forum.public_post(post_id)
    if post is None:
        await at.corpus.withdraw_posts([post_id], read_at=read_at)
        return
    if not await _put_read(post, at, read_at=read_at):
        await refresh_topic(post.topic_id, at)


async def refresh_topic(topic_id: TopicId, at: Indexer) -> None:
    """Read a topic again as an anonymous reader, and those that its posts moved to, and make the index agree.

    Title, category and tags are part of every post's text, and an edit of them sends no post (docs/discourse, 3).
    """
    seen, lost = {topic_id}, await _read_topic(topic_id, at)
    for _ in range(FOLLOWED):
        if not lost:
            return
        read_at = await at.corpus.now()
        post = await at.forum.public_post(lost[0])
        if post is None or post.topic_id in seen:
            if post is not None:  # the list of a topic's posts can be older than a post
                await _put_read(post, at, read_at=read_at)
            lost = lost[1:]
        else:
            seen.add(post.topic_id)
            more = await _read_topic(post.topic_id, at)
            found = await at.corpus.eligible_posts(post.topic_id)
            lost = [one for one in lost[1:] if one not in found] + more


async def refresh_categories(at: Indexer) -> None:
    """Read the public categories again; what is no longer among them leaves the index."""
    read_at = await at.corpus.now()
    await at.corpus.put_categories(await at.forum.public_categories(), read_at=read_at)
    await at.corpus.withdraw_private()


async def _read_topic(topic_id: TopicId, at: Indexer) -> list[PostId]:
    """Make the index agree with one topic; the posts that were in it and are no longer, which have left the index."""
    for _ in range(MAX_TURNS):
        read_at = await at.corpus.now()
        thread = await at.forum.public_thread(topic_id)
        if thread is None or not thread.topic.visible:
            await at.corpus.remove_topic(topic_id, read_at=read_at)
            INDEXED.labels("topic_gone").inc()
            return []
        topic, category = thread.topic, await _category(thread.topic, at)
        if await at.corpus.put_topics([public_part(topic, category, at.rules)], read_at=read_at):
            lost = sorted(await at.corpus.eligible_posts(topic_id) - thread.ids)
            await at.corpus.withdraw_posts(lost, read_at=read_at)
            await _put_all(thread.posts, topic, category, at, read_at=read_at)
            return lost
    raise Transient(f"topic {topic_id} changes faster than it can be read")


async def _put_read(post: Post, at: Indexer, *, read_at: datetime) -> bool:
    """Store a post that was read alone; False where its topic must be read first."""
    topic = await at.corpus.topic(post.topic_id)
    if topic is None or topic.deleted or not topic.title:
        return False
    await _put_all([post], topic, await _category(topic, at), at, read_at=read_at)
    return True


async def _put_delivered(post: Post, at: Indexer) -> None:
    """Store a snapshot; where it, or what is stored, can't be trusted to be the newer one, the forum is read."""
    topic = await at.corpus.topic(post.topic_id)
    # A topic without a title is one that the public didn't see when it was stored.
    if topic is None or topic.deleted or not topic.title or _elsewhere(post, topic) or _retitled(post, topic):
        await refresh_topic(post.topic_id, at)
        topic = await at.corpus.topic(post.topic_id)
        if topic is None or topic.deleted or not topic.title:
            return
    if not await _put_all([post], topic, await _category(topic, at), at):
        await refresh_post(post.id, at)


def _elsewhere(post: Post, topic: Topic) -> bool:
    """Whether a delivered post says that its topic is of another kind or category than the stored one."""
    return post.archetype is not None and (post.archetype, post.category_id) != (topic.archetype, topic.category_id)


def _retitled(post: Post, topic: Topic) -> bool:
    return post.topic_title not in ("", topic.title)


async def _put_all(
    posts: Sequence[Post],
    topic: Topic,
    category: Category | None,
    at: Indexer,
    *,
    read_at: datetime | None = None,
) -> int:
    indexed = [prepare(post, topic, category, at.rules) for post in posts]
    stored = await at.corpus.put_posts(indexed, read_at=read_at)
    INDEXED.labels("stale").inc(len(indexed) - stored)
    for one in indexed:
        INDEXED.labels(one.refusal or "indexed").inc()
    if stored:
        await embed_under_each(embeddable(indexed, topic, category), at.corpus, [at.embedder, *at.others])
    return stored


def embeddable(indexed: Sequence[IndexedPost], topic: Topic, category: Category | None) -> list[TopicPost]:
    """What embedding needs of the eligible posts of one topic."""
    name = category.name if category else ""
    return [TopicPost(one.post.id, topic.title, name, topic.tags, one.body) for one in indexed if one.body is not None]


async def _category(topic: Topic, at: Indexer) -> Category | None:
    """The topic's category; one that isn't known as public is looked for on the forum before it counts as private."""
    category_id = topic.category_id
    if category_id is None:
        return None
    known = (await at.corpus.categories()).get(category_id)
    if known is None or known.read_restricted:
        await refresh_categories(at)
        known = (await at.corpus.categories()).get(category_id)
    return known
