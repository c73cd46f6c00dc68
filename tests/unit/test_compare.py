"""How an index differs from a page of the forum: each difference by its name, and nothing where there is none."""

from dataclasses import replace
from typing import Any

import pytest

from service.domain import Category, CategoryId, EmbeddingProfile, Post, PostId, Topic, TopicId
from service.ingest.compare import Difference, Drift, Stored, compare_posts, compare_topics
from service.ingest.eligibility import IndexRules
from service.ingest.index import embeddable, prepare
from service.ingest.reconcile_ports import StoredPost
from service.ingest.text import digest, embedded_text, passage_texts
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import POST, PRIVATE, PUBLIC, TOPIC

EMBEDDER = HashEmbedder(EmbeddingProfile("toy", 1, 1, dimensions=4, window_tokens=512))
RULES = IndexRules(frozenset({"ariane"}), index_banners=False)
LISTED = replace(POST, archetype=None)
BANNER = replace(TOPIC, archetype="banner", title="", slug="", tags=())


def stored_post(post: Post = LISTED, topic: Topic = TOPIC, category: Category = PUBLIC) -> StoredPost:
    """The post as indexing it would leave it."""
    ready = prepare(post, topic, category, RULES)
    [text] = embeddable([ready], topic, category)
    made_of = digest(EMBEDDER.truncate(embedded_text(text, EMBEDDER.profile.strategy)))
    return StoredPost(post.id, post.topic_id, post.post_number, None, ready.body, ready.terms, made_of)


def stored(*posts: StoredPost, topic: Topic | None = TOPIC, category: Category = PUBLIC) -> Stored:
    topics = {} if topic is None else {topic.id: topic}
    return Stored({one.post_id: one for one in posts}, topics, {category.id: category, PRIVATE.id: PRIVATE})


def kinds(listed: list[Post], have: Stored, expected: tuple[PostId, ...] = (POST.id,)) -> list[Difference]:
    return compare_posts(listed, expected, have, RULES, EMBEDDER)


def test_no_difference() -> None:
    assert kinds([LISTED], stored(stored_post())) == []
    assert kinds([LISTED], stored(replace(stored_post(), digest=None))) == []  # not embedded yet
    assert kinds([], stored(), expected=()) == []
    assert kinds([replace(LISTED, category_id=None, topic_title="")], stored(stored_post())) == []  # it doesn't say


def test_of_a_post_in_several_passages_the_first_is_compared() -> None:
    split = HashEmbedder(replace(EMBEDDER.profile, strategy=101, window_tokens=40, passage_tokens=16, overlap_tokens=2))
    long = replace(LISTED, cooked="".join(f"<p>Line {n} of a story.</p>" for n in range(9)))
    ready = prepare(long, TOPIC, PUBLIC, RULES)
    [text] = embeddable([ready], TOPIC, PUBLIC)
    first, *others = passage_texts(text, split)
    assert others
    for made_of, differs in ((first, False), (others[0], True)):
        have = replace(stored_post(long), digest=digest(made_of.text))
        assert bool(compare_posts([long], (long.id,), stored(have), RULES, split)) == differs


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"refusal": "deleted", "body": None, "terms": {}, "digest": None}, Drift.POST_MISSING),
        ({"topic_id": TopicId(99)}, Drift.POST_MOVED),
        ({"post_number": 9}, Drift.POST_MOVED),
        ({"body": "older"}, Drift.POST_CHANGED),
        ({"terms": {"older": 1}}, Drift.POST_CHANGED),
        ({"digest": b"older"}, Drift.POST_CHANGED),
    ],
)
def test_what_is_stored_of_a_post_differs(changes: dict[str, Any], kind: Drift) -> None:
    assert kinds([LISTED], stored(replace(stored_post(), **changes))) == [Difference(kind, TOPIC.id, POST.id)]


def test_a_post_that_is_not_stored_is_missing_but_not_if_it_is_a_bots() -> None:
    assert kinds([LISTED], stored()) == [Difference(Drift.POST_MISSING, TOPIC.id, POST.id)]
    assert kinds([replace(LISTED, username="Ariane")], stored()) == []


@pytest.mark.parametrize("listed", [[], [replace(LISTED, hidden=True)], [replace(LISTED, username="ARIANE")]])
def test_a_stored_post_that_is_not_to_be_found_is_gone(listed: list[Post]) -> None:
    assert kinds(listed, stored(stored_post())) == [Difference(Drift.POST_GONE, TOPIC.id, POST.id)]


def test_what_the_page_does_not_cover_is_not_missed() -> None:
    assert kinds([], stored(stored_post()), expected=()) == []
    assert kinds([], stored(replace(stored_post(), refusal="hidden", body=None))) == []


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        (None, Drift.TOPIC_MISSING),
        (replace(TOPIC, deleted=True, title=""), Drift.TOPIC_MISSING),
        (replace(TOPIC, title=""), Drift.TOPIC_MISSING),
        (replace(TOPIC, title="An older title"), Drift.TOPIC_CHANGED),
        (replace(TOPIC, category_id=PRIVATE.id), Drift.TOPIC_CHANGED),
    ],
)
def test_a_listed_post_tells_of_its_topic(topic: Topic | None, kind: Drift) -> None:
    assert kinds([LISTED], stored(stored_post(), topic=topic)) == [Difference(kind, TOPIC.id)]
    listed = replace(TOPIC)
    assert [one.kind for one in compare_topics([listed], stored(topic=topic), RULES)] == [kind]


@pytest.mark.parametrize("changes", [{"tags": ("rain",)}, {"closed": True}, {"archived": True}, {"slug": "other"}])
def test_a_topics_own_state_differs(changes: dict[str, Any]) -> None:
    assert compare_topics([replace(TOPIC, **changes)], stored(), RULES) == [Difference(Drift.TOPIC_CHANGED, TOPIC.id)]


def test_the_order_of_tags_is_no_difference() -> None:
    tagged = replace(TOPIC, tags=("soil", "rain"))
    assert compare_topics([replace(TOPIC, tags=("rain", "soil"))], stored(topic=tagged), RULES) == []


def test_a_kind_of_topic_that_is_not_indexed_is_never_missing() -> None:
    assert kinds([LISTED], stored(topic=BANNER), expected=()) == []
    assert compare_topics([replace(TOPIC, archetype="banner")], stored(topic=BANNER), RULES) == []
    open_rules = replace(RULES, index_banners=True)
    banner = replace(TOPIC, archetype="banner")
    assert compare_topics([banner], stored(topic=BANNER), open_rules) == [Difference(Drift.TOPIC_MISSING, TOPIC.id)]


def test_a_topic_of_a_category_that_is_not_known_is_looked_at() -> None:
    elsewhere = replace(TOPIC, category_id=CategoryId(77))
    assert compare_topics([elsewhere], stored(), RULES) == [Difference(Drift.TOPIC_CHANGED, TOPIC.id)]
