"""Backfill from a forum's own Postgres: what is private or deleted there never appears here, vectors included."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.discourse import forum_sql
from service.discourse.database import ForumDatabase, open_forum_database
from service.discourse.names import folded_name
from service.domain import Category, CategoryId, EmbeddingProfile, Post, PostId, Topic, TopicId, UserId, Vector
from service.errors import Misconfigured, Rejected, Transient
from service.ingest.backfill import Backfill
from service.ingest.crawl_ports import Stage
from service.ingest.eligibility import IndexRules, refusal
from service.ingest.forum_database import DatabaseBackfill
from service.ingest.ports import IndexedPost
from service.store.corpus import CorpusStore
from service.store.crawl import CrawlStore
from service.store.pool import Pool
from tests.fakes.embedder import HashEmbedder
from tests.integration.crawl_kit import stored
from tests.integration.discourse_database import DiscourseDatabase
from tests.integration.store_data import NOON, frequencies_are_exact, later, rows
from tests.integration.test_backfill import everything_stored

PROFILE = EmbeddingProfile("bge-m3", 1, 1, dimensions=8, window_tokens=400)
RULES = IndexRules(frozenset({"ariane"}), index_banners=False)
SOURCE = "the forum's database"
PUBLIC = (101, 102, 111, 180)
"""Posts of the database below that the public sees."""
PRIVATE = (103, 104, 105, 106, 107, 120, 130, 140, 150, 160, 170)
SECRETS = [f"Words of {post_id}." for post_id in PRIVATE] + [f"Title {number}" for number in (12, 13, 14, 15, 16, 17)]
LONG = "<p>" + "A long text that no window of so few tokens holds. " * 20 + "</p>"


@pytest.fixture
def forum(empty_database_url: str) -> Iterator[DiscourseDatabase]:
    """A public topic with every kind of post, and a topic of every kind that the public doesn't see."""
    made = DiscourseDatabase(empty_database_url)
    made.put("users", id=8, username="Ariane")
    made.put("users", id=9, username="Zoé")
    for number, values in (
        (10, {}),
        (11, {"closed": True, "archived": True}),
        (12, {"deleted_at": NOON}),
        (13, {"visible": False}),
        (14, {"archetype": "private_message", "category_id": None}),
        (15, {"category_id": 2}),
        (16, {"category_id": 99}),
        (17, {"archetype": "banner"}),
        (18, {}),
    ):
        made.topic(number, **values)
    made.post(101, 10, 1)
    made.post(102, 10, 2, reply_to_post_number=1, user_id=9)
    made.post(103, 10, 3, deleted_at=NOON)
    made.post(104, 10, 4, hidden=True)
    made.post(105, 10, 5, user_deleted=True)
    made.post(106, 10, 6, post_type=4)
    made.post(107, 10, 7, user_id=8)
    for post_id, topic_id in ((111, 11), (120, 12), (130, 13), (140, 14), (150, 15), (160, 16), (170, 17), (180, 18)):
        made.post(post_id, topic_id)
    made.tag(1, "soil", 10)
    made.tag(2, "apples", 10)
    made.tag(3, "secret-project", 10, seen_by=3)
    made.tag(4, "open-group", 10, seen_by=0)
    yield made
    made.close()


class Filling:
    """Backfills from one forum's database into one index."""

    def __init__(self, forum: DiscourseDatabase, pool: Pool, profile: EmbeddingProfile = PROFILE) -> None:
        self.forum = forum
        self.pool = pool
        self.corpus = CorpusStore(pool)
        self.embedder = WindowedEmbedder(profile)

    @asynccontextmanager
    async def opened(self, corpus: CorpusStore | None = None) -> AsyncIterator[DatabaseBackfill]:
        corpus = corpus or self.corpus
        crawls = CrawlStore(self.pool)
        at = Backfill(corpus, corpus, self.embedder, RULES, lambda *_: None, crawls)
        async with opened_database(self.forum.url) as database:
            yield DatabaseBackfill(SOURCE, database, crawls, at)

    async def run(self, *, model_id: int | None = None, corpus: CorpusStore | None = None) -> DatabaseBackfill:
        async with self.opened(corpus) as backfill:
            await backfill.run(model_id=model_id)
        return backfill

    async def vectors(self) -> dict[int, str]:
        return {
            post: str(vector) for post, vector in await rows(self.pool, "SELECT post_id, embedding FROM embeddings")
        }


class WindowedEmbedder(HashEmbedder):
    """Its window holds what the shortest texts need; what is longer is cut by the character."""

    def truncate(self, text: str) -> str:
        return text[: self.profile.window_tokens]

    def of(self, text: str) -> Vector:
        """The vector of a text, as a forum of the same model has it."""
        made = self._vector("passage", self.truncate(text))
        self.embedded.pop()
        assert isinstance(made, np.ndarray)
        return made


def opened_database(url: str) -> AbstractAsyncContextManager[ForumDatabase]:
    return open_forum_database(
        url, bots=RULES.bots, banners=False, statement_timeout_seconds=30, connect_timeout_seconds=5
    )


@pytest.fixture
def filling(forum: DiscourseDatabase, pool: Pool) -> Filling:
    return Filling(forum, pool)


async def indexed_ids(pool: Pool) -> list[int]:
    return [row[0] for row in await rows(pool, "SELECT post_id FROM posts WHERE refusal IS NULL ORDER BY 1")]


async def test_what_the_public_sees_is_stored_and_of_the_rest_nothing(filling: Filling, pool: Pool) -> None:
    backfill = await filling.run()
    assert await indexed_ids(pool) == list(PUBLIC)
    everything = await everything_stored(pool)
    assert not [secret for secret in (*SECRETS, "Staff room", "secret-project") if secret in everything]
    assert await rows(pool, "SELECT post_id FROM posts WHERE post_id = ANY(%s)", list(PRIVATE)) == []
    assert await rows(pool, "SELECT category_id, name FROM categories") == [(1, "Garden")]
    assert await rows(pool, "SELECT topic_id, tags, closed, archived FROM topics ORDER BY 1") == [
        (10, ["apples", "open-group", "soil"], False, False),
        (11, [], True, True),
        (18, [], False, False),
    ]
    columns = "username, user_id, topic_id, post_number, reply_to_post_number, created_at"
    assert await rows(pool, f"SELECT {columns} FROM posts WHERE post_id = 102") == [("Zoé", 9, 10, 2, 1, NOON)]
    assert backfill.refused == {
        "archetype": 2,
        "bot_author": 1,
        "category_private": 1,
        "category_unknown": 1,
        "deleted": 1,
        "hidden": 1,
        "post_type": 1,
        "topic_deleted": 1,
        "topic_unlisted": 1,
        "user_deleted": 1,
    }
    assert await frequencies_are_exact(pool)


async def test_running_twice_changes_nothing(filling: Filling, pool: Pool) -> None:
    await filling.run()
    before, embedded = await stored(pool), len(filling.embedder.embedded)
    backfill = await filling.run()
    assert (await stored(pool), len(filling.embedder.embedded), backfill.withdrawn) == (before, embedded, 0)


async def test_what_the_public_no_longer_sees_is_taken_out(filling: Filling, pool: Pool) -> None:
    await filling.run()
    filling.forum.run("UPDATE posts SET hidden = true WHERE id = 102")
    filling.forum.run("UPDATE topics SET visible = false WHERE id = 11")
    filling.forum.run("UPDATE topics SET category_id = 2 WHERE id = 18")
    backfill = await filling.run()
    assert (await indexed_ids(pool), backfill.withdrawn) == ([101], 3)
    everything = await everything_stored(pool)
    assert not [gone for gone in ("Words of 102", "Title 11", "Title 18") if gone in everything]
    filling.forum.run("UPDATE categories SET read_restricted = true WHERE id = 1")
    await filling.run()
    assert await indexed_ids(pool) == []
    assert "Title 10" not in await everything_stored(pool)


async def test_what_comes_after_the_snapshot_is_read_in_the_next(filling: Filling, pool: Pool) -> None:
    class Late(CorpusStore):
        async def put_posts(self, indexed: Sequence[IndexedPost], *, read_at: datetime | None = None) -> int:
            if not filling.forum.run("SELECT id FROM posts WHERE id = 200"):
                filling.forum.post(200, 10, 8)
            return await super().put_posts(indexed, read_at=read_at)

    await filling.run(corpus=Late(pool))
    assert await indexed_ids(pool) == [*PUBLIC, 200]


async def test_an_interrupted_run_goes_on_above_the_last_post_read(filling: Filling, pool: Pool) -> None:
    class Watched(CorpusStore):
        async def put_posts(self, indexed: Sequence[IndexedPost], *, read_at: datetime | None = None) -> int:
            assert [one.post.id for one in indexed] == [200]
            return await super().put_posts(indexed, read_at=read_at)

    async with filling.opened() as backfill:
        cursor = await CrawlStore(pool).cursor(SOURCE)
        assert cursor is None
        await backfill.read()
        cursor = await CrawlStore(pool).cursor(SOURCE)
        assert cursor is not None
        assert cursor.floor == 180
    await CrawlStore(pool).keep_cursor(SOURCE, replace(cursor, stage=Stage.POSTS))
    filling.forum.post(200, 10, 8)
    await filling.run(corpus=Watched(pool))
    assert await indexed_ids(pool) == [*PUBLIC, 200]


async def test_a_row_that_can_not_be_read_sinks_nothing(filling: Filling, pool: Pool) -> None:
    filling.forum.run("UPDATE posts SET post_number = 0 WHERE id = 101")
    backfill = await filling.run()
    assert (backfill.unreadable, await indexed_ids(pool)) == (1, [102, 111, 180])


@pytest.mark.parametrize("column", ["created_at", "updated_at", "cooked"])
async def test_a_row_of_another_schema_that_lacks_something_sinks_nothing(
    filling: Filling, pool: Pool, column: str
) -> None:
    filling.forum.run(f"ALTER TABLE posts ALTER {column} DROP NOT NULL")
    filling.forum.run(f"UPDATE posts SET {column} = NULL WHERE id = 101")
    backfill = await filling.run()
    assert (backfill.unreadable, await indexed_ids(pool)) == (1, [102, 111, 180])


async def test_the_forum_is_never_written_to(filling: Filling) -> None:
    async with opened_database(filling.forum.url) as forum, forum.snapshot() as snapshot:
        assert await snapshot.newest_post() == 180
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await forum._conn.execute("DELETE FROM posts")
    assert filling.forum.run("SELECT count(*) FROM posts") == [(15,)]


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("postgresql://nobody@127.0.0.1:1/x", Transient, "can't do this now"),
        ("no address at all", Misconfigured, "backfill.forum_database_url"),
    ],
)
async def test_a_database_that_can_not_be_reached_says_so(url: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        async with opened_database(url):
            pass


async def test_another_database_is_refused_by_its_tables(empty_database_url: str) -> None:
    with pytest.raises(Misconfigured, match=r'forum_database_url.*relation "users" does not exist'):
        async with opened_database(empty_database_url) as forum, forum.snapshot():
            pass


# vectors


@pytest.fixture
def with_vectors(filling: Filling) -> Filling:
    """The forum's vectors, the private and deleted posts' too, each of them right."""
    filling.forum.with_model(dimensions=PROFILE.dimensions)
    for post_id in (*PUBLIC, *PRIVATE):
        filling.forum.vector(post_id, filling.embedder.of(filling.forum.whole_text(post_id)))
    return filling


async def test_compared_vectors_are_copied_and_nothing_of_them_is_embedded(with_vectors: Filling, pool: Pool) -> None:
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.verified, backfill.copied.unverified, backfill.copied.note) == (len(PUBLIC), 0, "")
    assert len(with_vectors.embedder.embedded) == backfill.copied.checked == len(PUBLIC)
    found = await rows(pool, "SELECT post_id FROM embeddings ORDER BY 1")
    assert [row[0] for row in found] == list(PUBLIC)
    for post_id, vector in (await with_vectors.vectors()).items():
        theirs = with_vectors.embedder.of(with_vectors.forum.whole_text(post_id))
        ours = np.array(vector.strip("HalfVector([])").split(","), dtype=np.float32)
        assert float(ours @ theirs) > 0.999
    again = await with_vectors.run()
    assert again.copied is not None
    assert (again.copied.verified, len(with_vectors.embedder.embedded)) == (0, len(PUBLIC))


@pytest.mark.parametrize("column", ["digest", "updated_at"])
async def test_a_vector_that_lacks_something_is_left_and_the_post_embedded(with_vectors: Filling, column: str) -> None:
    with_vectors.forum.run(f"ALTER TABLE ai_posts_embeddings ALTER {column} DROP NOT NULL")
    with_vectors.forum.run(f"UPDATE ai_posts_embeddings SET {column} = NULL WHERE post_id = 101")
    backfill = await with_vectors.run()
    assert backfill.copied is not None and backfill.copied.verified == len(PUBLIC) - 1


async def test_a_vector_of_another_text_is_left_and_the_post_embedded(with_vectors: Filling) -> None:
    with_vectors.forum.run("UPDATE ai_posts_embeddings SET digest = repeat('0', 40) WHERE post_id = 102")
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.verified, backfill.copied.other_text) == (3, 1)
    assert len(await with_vectors.vectors()) == len(PUBLIC)


@pytest.mark.parametrize(
    "vector",
    [[1.0] * 8, [0.0] * 8, [1.0, 0, 0, 0, 0, 0, 0], [0.6, 0, 0, 0, 0, 0, 0, 0]],
    ids=["too long", "zero", "of other dimensions", "too short"],
)
async def test_what_is_no_unit_vector_of_ours_is_refused(with_vectors: Filling, vector: list[float]) -> None:
    with_vectors.forum.run("DELETE FROM ai_posts_embeddings WHERE post_id = 102")
    with_vectors.forum.vector(102, vector)
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.verified, backfill.copied.malformed) == (3, 1)
    assert len(await with_vectors.vectors()) == len(PUBLIC)


@pytest.mark.parametrize(
    ("column", "value"), [("model_id", 41), ("model_version", 2), ("strategy_id", 2), ("strategy_version", 2)]
)
async def test_another_model_strategy_or_version_is_not_copied(with_vectors: Filling, column: str, value: int) -> None:
    with_vectors.forum.run(f"UPDATE ai_posts_embeddings SET {column} = {value}")
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.verified, backfill.copied.malformed) == (0, 0)


async def long_posts(filling: Filling, *, of: int) -> None:
    for number in range(of):
        post_id = 300 + number
        filling.forum.post(post_id, 18, 10 + number, cooked=LONG.replace("A long", f"The {number}. long"))
        text = filling.forum.whole_text(post_id)
        filling.forum.vector(post_id, filling.embedder.of(text), digest=f"{number:040}")


async def test_vectors_of_long_texts_are_copied_where_the_sample_is_the_same(with_vectors: Filling) -> None:
    await long_posts(with_vectors, of=30)
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.unverified, backfill.copied.verified, backfill.copied.note) == (30, len(PUBLIC), "")
    assert len(with_vectors.embedder.embedded) == backfill.copied.checked == len(PUBLIC) + 5


async def test_all_long_ones_are_left_when_one_of_the_sample_is_another(with_vectors: Filling) -> None:
    await long_posts(with_vectors, of=30)
    with_vectors.forum.run("DELETE FROM ai_posts_embeddings WHERE post_id = 302")
    with_vectors.forum.vector(302, with_vectors.embedder.of("something else"), digest="2" * 40)
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.unverified, backfill.copied.verified) == (0, len(PUBLIC))
    assert backfill.copied.note.startswith("30 vectors of long texts were left")
    assert len(await with_vectors.vectors()) == len(PUBLIC) + 30


@pytest.mark.parametrize("table", ["posts", "topics"])
async def test_a_long_text_that_changed_after_its_vector_was_made_is_embedded(
    with_vectors: Filling, table: str
) -> None:
    await long_posts(with_vectors, of=6)
    where = "id = 300" if table == "posts" else "id = 18"
    with_vectors.forum.run(f"UPDATE {table} SET updated_at = %s WHERE {where}", later(9))
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert backfill.copied.older == (1 if table == "posts" else 6)
    assert len(await with_vectors.vectors()) == len(PUBLIC) + 6


async def test_a_model_that_only_has_our_models_name_is_found_out(with_vectors: Filling) -> None:
    with_vectors.embedder.model = "another"
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert (backfill.copied.verified, backfill.copied.checked) == (0, 1)
    assert "is not our model" in backfill.copied.note
    assert len(await with_vectors.vectors()) == len(PUBLIC)


async def test_which_of_several_models_is_ours_must_be_said(with_vectors: Filling) -> None:
    with_vectors.forum.define(43, "bge-m3 quantised", dimensions=PROFILE.dimensions)
    backfill = await with_vectors.run()
    assert backfill.copied is not None
    assert backfill.copied.verified == 0
    assert "42: BGE-M3 (our server), 8 dimensions; 43: bge-m3 quantised, 8 dimensions" in backfill.copied.note
    with pytest.raises(Rejected, match="no embedding model 44"):
        await with_vectors.run(model_id=44)
    with_vectors.forum.define(45, "small", dimensions=4)
    with pytest.raises(Rejected, match="has 4 dimensions, ours 8"):
        await with_vectors.run(model_id=45)


async def test_a_model_is_chosen_by_its_id_whatever_its_name(filling: Filling) -> None:
    filling.forum.with_model("Embeddings", dimensions=PROFILE.dimensions)
    for post_id in PUBLIC:
        filling.forum.vector(post_id, filling.embedder.of(filling.forum.whole_text(post_id)))
    backfill = await filling.run(model_id=42)
    assert backfill.copied is not None
    assert backfill.copied.verified == len(PUBLIC)


@pytest.mark.parametrize("profile", [replace(PROFILE, strategy=100), replace(PROFILE, version=2)])
async def test_vectors_go_only_into_a_profile_of_the_same_text(
    forum: DiscourseDatabase, pool: Pool, profile: EmbeddingProfile
) -> None:
    filling = Filling(forum, pool, profile)
    forum.with_model(dimensions=PROFILE.dimensions)
    forum.vector(101, filling.embedder.of(forum.whole_text(101)))
    backfill = await filling.run()
    assert backfill.copied is not None
    assert (backfill.copied.verified, backfill.copied.checked) == (0, 0)
    assert "embeds another text" in backfill.copied.note


async def test_a_prompt_before_every_text_is_another_model(filling: Filling) -> None:
    filling.forum.with_model(dimensions=PROFILE.dimensions, prompt="passage: ")
    backfill = await filling.run()
    assert backfill.copied is not None
    assert "puts a prompt before" in backfill.copied.note


# the predicate

NAMES = ("ines", "Ariane", "ARIANE", "zoe\u0301_bot", "Zoé_Bot", "system", "arianes")
CASES = st.fixed_dictionaries(
    {
        "deleted": st.booleans(),
        "user_deleted": st.booleans(),
        "hidden": st.booleans(),
        "post_type": st.sampled_from([1, 1, 1, 2, 3, 4, 99]),
        "topic_deleted": st.booleans(),
        "visible": st.booleans(),
        "archetype": st.sampled_from(["regular", "regular", "banner", "private_message", "", "Regular"]),
        "category": st.sampled_from([None, 1, 1, 2, 3]),
        "user_id": st.sampled_from([None, -2, -1, 0, *range(1, len(NAMES) + 1)]),
    }
)
MOSTLY_PUBLIC = {"deleted": False, "user_deleted": False, "hidden": False, "topic_deleted": False, "visible": True}


@pytest.fixture
def predicate(empty_database_url: str) -> Iterator[DiscourseDatabase]:
    made = DiscourseDatabase(empty_database_url)
    for user_id, name in enumerate(NAMES, start=1):
        if user_id != 7:
            made.put("users", id=user_id, username=name)
    made.run("UPDATE users SET username = %s WHERE id = 7", NAMES[6])
    yield made
    made.close()


@given(st.lists(CASES | CASES.map(lambda case: case | MOSTLY_PUBLIC), min_size=1, max_size=30), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_predicate_says_what_the_pure_function_says(
    predicate: DiscourseDatabase, cases: list[dict[str, Any]], banners: bool
) -> None:
    bot_names = frozenset(map(folded_name, ("Ariane", "zoé_bot", "system")))
    rules = IndexRules(bot_names, index_banners=banners, opted_out={UserId(1)})
    names = dict(enumerate(NAMES, start=1)) | {-1: "system"}
    categories = {
        1: Category(CategoryId(1), "Garden", "garden", None, read_restricted=False),
        2: Category(CategoryId(2), "Staff room", "staff", None, read_restricted=True),
    }
    predicate.run("TRUNCATE posts, topics")
    expected: dict[int, str | None] = {}
    for number, case in enumerate(cases, start=1):
        topic = Topic(
            TopicId(number),
            f"Title {number}",
            "t",
            case["category"],
            case["archetype"],
            visible=case["visible"],
            deleted=case["topic_deleted"],
        )
        post = Post(
            PostId(number),
            topic.id,
            1,
            case["post_type"],
            case["user_id"],
            names.get(case["user_id"], ""),
            "",
            NOON,
            NOON,
            hidden=case["hidden"],
            deleted=case["deleted"],
            user_deleted=case["user_deleted"],
        )
        expected[number] = refusal(post, topic, categories.get(case["category"]), rules)
        predicate.topic(
            number,
            category_id=case["category"],
            archetype=case["archetype"],
            visible=case["visible"],
            deleted_at=NOON if case["topic_deleted"] else None,
        )
        predicate.post(
            number,
            number,
            user_id=case["user_id"],
            post_type=case["post_type"],
            hidden=case["hidden"],
            user_deleted=case["user_deleted"],
            deleted_at=NOON if case["deleted"] else None,
        )
    bots = [user_id for user_id, name in names.items() if folded_name(name) in rules.bots]
    found = predicate.rows(forum_sql.REFUSAL_OF_EACH, {"bots": bots, "opted_out": [1], "banners": banners})
    assert dict(found) == expected
    values = {"bots": bots, "opted_out": [1], "banners": banners, "hidden_tags": [], "after": 0}
    public = predicate.rows(forum_sql.PUBLIC_POSTS, values)
    assert [row[0] for row in public] == [number for number, reason in expected.items() if reason is None]
    topics = predicate.rows(forum_sql.PUBLIC_TOPICS_AMONG, {"topic_ids": list(expected), "banners": banners})
    of_topics = {"topic_deleted", "topic_unlisted", "archetype", "category_unknown", "category_private"}
    assert {row[0] for row in topics}.isdisjoint(n for n, reason in expected.items() if reason in of_topics)
    assert {row[0] for row in topics}.issuperset(n for n, reason in expected.items() if reason is None)


def test_what_a_forum_leaves_unsaid_is_private(predicate: DiscourseDatabase) -> None:
    for table, column in (
        ("posts", "user_deleted"),
        ("posts", "hidden"),
        ("posts", "post_type"),
        ("topics", "visible"),
        ("topics", "archetype"),
        ("categories", "read_restricted"),
    ):
        predicate.run(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
    columns = ("user_deleted", "hidden", "post_type", "visible", "archetype")
    for number, column in enumerate(columns, start=1):
        predicate.topic(number)
        predicate.post(number, number)
        predicate.run(f"UPDATE {'topics' if number > 3 else 'posts'} SET {column} = NULL WHERE id = {number}")
    predicate.put("categories", id=9, name="Unsaid", slug="unsaid", read_restricted=None)
    predicate.topic(6, category_id=9)
    predicate.post(6, 6)
    predicate.post(7, 77)
    found = dict(predicate.rows(forum_sql.REFUSAL_OF_EACH, {"bots": [], "opted_out": [], "banners": True}))
    assert list(found.values()) == [
        "user_deleted",
        "hidden",
        "post_type",
        "topic_unlisted",
        "archetype",
        "category_private",
        "topic_deleted",
    ]
    assert predicate.rows(forum_sql.CATEGORIES, {}) == [(1, "Garden", "garden", None, False)]
