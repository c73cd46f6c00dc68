"""Who may be a source: each reason alone refuses, and nothing else does."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from service.discourse.names import folded_name
from service.domain import Category, CategoryId, Post, PostId, PostType, Topic, TopicId, UserId
from service.ingest.eligibility import IndexRules, public_part, refusal
from service.ingest.ports import Refusal

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = IndexRules(bots={folded_name("Ariane"), folded_name("Zoé_Bot")}, index_banners=False)
CATEGORY = Category(CategoryId(4), "Sowing", "sowing", None, read_restricted=False)
TOPIC = Topic(TopicId(10), "When to sow", "when-to-sow", CATEGORY.id, "regular", tags=("seeds",))
POST = Post(
    PostId(12), TOPIC.id, 1, PostType.REGULAR, UserId(7), "member", "<p>In March.</p>", NOW, NOW, archetype="regular"
)


def test_a_public_post_is_eligible() -> None:
    assert refusal(POST, TOPIC, CATEGORY, RULES) is None


@pytest.mark.parametrize(
    ("post", "topic", "category", "reason"),
    [
        (replace(POST, deleted=True), TOPIC, CATEGORY, Refusal.DELETED),
        (replace(POST, user_deleted=True), TOPIC, CATEGORY, Refusal.USER_DELETED),
        (replace(POST, hidden=True), TOPIC, CATEGORY, Refusal.HIDDEN),
        (replace(POST, post_type=PostType.WHISPER), TOPIC, CATEGORY, Refusal.POST_TYPE),
        (replace(POST, post_type=PostType.SMALL_ACTION), TOPIC, CATEGORY, Refusal.POST_TYPE),
        (replace(POST, post_type=PostType.MODERATOR_ACTION), TOPIC, CATEGORY, Refusal.POST_TYPE),
        (replace(POST, post_type=99), TOPIC, CATEGORY, Refusal.POST_TYPE),
        (POST, replace(TOPIC, deleted=True), CATEGORY, Refusal.TOPIC_DELETED),
        (POST, replace(TOPIC, visible=False), CATEGORY, Refusal.TOPIC_UNLISTED),
        (POST, replace(TOPIC, archetype="private_message"), CATEGORY, Refusal.ARCHETYPE),
        (POST, replace(TOPIC, archetype="banner"), CATEGORY, Refusal.ARCHETYPE),
        (POST, TOPIC, None, Refusal.CATEGORY_UNKNOWN),
        (POST, TOPIC, replace(CATEGORY, read_restricted=True), Refusal.CATEGORY_PRIVATE),
        (replace(POST, username="ARIANE"), TOPIC, CATEGORY, Refusal.BOT_AUTHOR),
        (replace(POST, username="zoe\u0301_bot"), TOPIC, CATEGORY, Refusal.BOT_AUTHOR),
        (replace(POST, user_id=UserId(-1)), TOPIC, CATEGORY, Refusal.BOT_AUTHOR),
        (replace(POST, user_id=UserId(0)), TOPIC, CATEGORY, Refusal.BOT_AUTHOR),
    ],
)
def test_each_reason_refuses(post: Post, topic: Topic, category: Category | None, reason: Refusal) -> None:
    assert refusal(post, topic, category, RULES) is reason


@pytest.mark.parametrize(
    ("opted_out", "refused"), [({UserId(7)}, True), ({"member"}, True), ({UserId(8), "members"}, False)]
)
def test_who_opted_out_is_not_quoted(opted_out: set[UserId | str], refused: bool) -> None:
    rules = replace(RULES, opted_out=opted_out)
    reason = refusal(replace(POST, username="MEMBER"), TOPIC, CATEGORY, rules)
    assert reason is (Refusal.OPTED_OUT if refused else None)
    assert refusal(replace(POST, hidden=True), TOPIC, CATEGORY, rules) is Refusal.HIDDEN


def test_banners_by_setting() -> None:
    rules = replace(RULES, index_banners=True)
    assert refusal(POST, replace(TOPIC, archetype="banner"), CATEGORY, rules) is None
    assert refusal(POST, replace(TOPIC, archetype="private_message"), CATEGORY, rules) is Refusal.ARCHETYPE


def test_an_account_without_id_is_judged_by_its_name() -> None:
    assert refusal(replace(POST, user_id=None), TOPIC, CATEGORY, RULES) is None


@pytest.mark.parametrize(
    ("topic", "category"),
    [
        (TOPIC, None),
        (TOPIC, replace(CATEGORY, read_restricted=True)),
        (replace(TOPIC, visible=False), CATEGORY),
        (replace(TOPIC, deleted=True), CATEGORY),
        (replace(TOPIC, archetype="private_message"), CATEGORY),
    ],
)
def test_a_topic_the_public_does_not_see_loses_its_words(topic: Topic, category: Category | None) -> None:
    kept = public_part(topic, category, RULES)
    assert (kept.title, kept.slug, kept.tags) == ("", "", ())
    assert (kept.id, kept.visible, kept.deleted, kept.archetype) == (
        topic.id,
        topic.visible,
        topic.deleted,
        topic.archetype,
    )


def test_a_public_topic_is_stored_whole() -> None:
    assert public_part(TOPIC, CATEGORY, RULES) == TOPIC
