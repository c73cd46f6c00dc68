"""Where the index and the forum differ, told by a page of the forum's lists; what is to be done is not decided here."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId
from service.ingest.eligibility import IndexRules, archetype_allowed, public_part
from service.ingest.index import embeddable, prepare
from service.ingest.ports import PassageEmbedder
from service.ingest.reconcile_ports import StoredPost
from service.ingest.text import digest, passage_texts


class Drift(StrEnum):
    """How the index differs from the forum; the same words in metrics and reports."""

    CATEGORY = "category"
    TOPIC_MISSING = "topic_missing"
    TOPIC_CHANGED = "topic_changed"
    POST_MISSING = "post_missing"
    POST_GONE = "post_gone"
    POST_MOVED = "post_moved"
    POST_CHANGED = "post_changed"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class Difference:
    """One post, or one topic where `post_id` is None, that is not what it should be."""

    kind: Drift
    topic_id: TopicId
    post_id: PostId | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of everything that a page names, or should name."""

    posts: Mapping[PostId, StoredPost]
    topics: Mapping[TopicId, Topic]
    categories: Mapping[CategoryId, Category]


def compare_posts(
    listed: Sequence[Post], expected: Collection[PostId], stored: Stored, rules: IndexRules, embedder: PassageEmbedder
) -> list[Difference]:
    """The differences of a page of posts; `expected` are ids that it shows if the public sees them."""
    found = [one for post in listed if (one := _difference(post, stored, rules, embedder)) is not None]
    shown = {post.id for post in listed}
    for post_id in sorted(set(expected) - shown):
        known = stored.posts.get(post_id)
        if known is not None and known.refusal is None and known.topic_id is not None:
            found.append(Difference(Drift.POST_GONE, known.topic_id, post_id))
    return found


def compare_topics(listed: Sequence[Topic], stored: Stored, rules: IndexRules) -> list[Difference]:
    """The differences of a page of topics; that a topic is missing from a list means nothing."""
    found = []
    for topic in listed:
        if not archetype_allowed(topic.archetype, rules):
            continue
        known = stored.topics.get(topic.id)
        public = public_part(topic, stored.categories.get(topic.category_id or CategoryId(0)), rules)
        if known is None or known.deleted or not known.title:
            found.append(Difference(Drift.TOPIC_MISSING, topic.id))
        elif _ordered(known) != _ordered(public):
            found.append(Difference(Drift.TOPIC_CHANGED, topic.id))
    return found


def _ordered(topic: Topic) -> Topic:
    return replace(topic, tags=tuple(sorted(topic.tags)))  # lists may order them otherwise


def _difference(post: Post, stored: Stored, rules: IndexRules, embedder: PassageEmbedder) -> Difference | None:
    topic = stored.topics.get(post.topic_id)
    if topic is not None and not archetype_allowed(topic.archetype, rules):
        return None
    if topic is None or topic.deleted or not topic.title:
        return Difference(Drift.TOPIC_MISSING, post.topic_id)
    if post.topic_title not in ("", topic.title) or post.category_id not in (None, topic.category_id):
        return Difference(Drift.TOPIC_CHANGED, post.topic_id)
    category, known = stored.categories.get(topic.category_id or CategoryId(0)), stored.posts.get(post.id)
    wanted = prepare(post, topic, category, rules)
    if known is None or known.refusal is not None:
        kind = None if wanted.refusal else Drift.POST_MISSING
    elif wanted.refusal:
        kind = Drift.POST_GONE
    elif (known.topic_id, known.post_number) != (post.topic_id, post.post_number):
        kind = Drift.POST_MOVED
    elif known.body != wanted.body or known.terms != wanted.terms:
        kind = Drift.POST_CHANGED
    else:
        [text] = embeddable([wanted], topic, category)
        made_of = digest(passage_texts(text, embedder)[0].text)
        kind = None if known.digest in (None, made_of) else Drift.POST_CHANGED
    return None if kind is None else Difference(kind, post.topic_id, post.id)
