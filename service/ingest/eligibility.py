"""Which posts an anonymous reader sees and may be answered with (spec P4): one pure function.

Its twin in SQL is the view public_posts: a stored refusal is this function's, and the view decides anew on what changes
without the post, the states of topics and categories.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from service.discourse.names import folded_name
from service.domain import Category, Post, PostType, Topic, UserId
from service.ingest.ports import Refusal

PUBLIC_ARCHETYPE = "regular"
BANNER = "banner"


@dataclass(frozen=True, slots=True)
class IndexRules:
    """What the operator decides: `bots` are folded usernames whose posts are never a source.

    `opted_out` are members who are not to be quoted, by id and by folded name.
    """

    bots: Collection[str]
    index_banners: bool
    opted_out: Collection[UserId | str] = field(default_factory=frozenset)


def public_part(topic: Topic, category: Category | None, rules: IndexRules) -> Topic:
    """The topic as it may be stored: what the public doesn't see keeps its state and loses its words."""
    public = (
        topic.visible
        and not topic.deleted
        and archetype_allowed(topic.archetype, rules)
        and category is not None
        and not category.read_restricted
    )
    return topic if public else replace(topic, title="", slug="", tags=())


def refusal(post: Post, topic: Topic, category: Category | None, rules: IndexRules) -> Refusal | None:
    """Why this post may not be in the index, or None when it may; an unknown category means private."""
    verdicts = (
        (post.deleted, Refusal.DELETED),
        (post.user_deleted, Refusal.USER_DELETED),
        (post.hidden, Refusal.HIDDEN),
        (post.post_type != PostType.REGULAR, Refusal.POST_TYPE),
        (topic.deleted, Refusal.TOPIC_DELETED),
        (not topic.visible, Refusal.TOPIC_UNLISTED),
        (not archetype_allowed(topic.archetype, rules), Refusal.ARCHETYPE),
        (category is None, Refusal.CATEGORY_UNKNOWN),
        (category is not None and category.read_restricted, Refusal.CATEGORY_PRIVATE),
        (_by_bot(post, rules), Refusal.BOT_AUTHOR),
        (_opted_out(post, rules), Refusal.OPTED_OUT),
    )
    return next((reason for refused, reason in verdicts if refused), None)


def archetype_allowed(archetype: str, rules: IndexRules) -> bool:
    """Whether topics of this kind are indexed at all: regular ones, and banners where the operator wants them."""
    return archetype == PUBLIC_ARCHETYPE or (rules.index_banners and archetype == BANNER)


def _by_bot(post: Post, rules: IndexRules) -> bool:
    core_bot = post.user_id is not None and post.user_id <= 0
    return core_bot or folded_name(post.username) in rules.bots


def _opted_out(post: Post, rules: IndexRules) -> bool:
    return post.user_id in rules.opted_out or folded_name(post.username) in rules.opted_out
