"""Eligibility in SQL says what the pure function says, whatever became of topics and categories meanwhile."""

from dataclasses import dataclass, replace
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.discourse.names import folded_name
from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId, UserId
from service.ingest.eligibility import IndexRules, public_part, refusal
from service.ingest.index import prepare
from service.store.corpus import CorpusStore
from service.store.pool import Pool, transaction
from tests.integration.store_data import POST, PUBLIC, TOPIC, later, rows

CATEGORIES = [CategoryId(1), CategoryId(2)]
TOPICS = [TopicId(10), TopicId(11)]
POSTS = [PostId(number) for number in range(101, 107)]
NAMES = ["ines", "Ariane", "ZOE\u0301_bot", "system"]
RULES = st.builds(
    IndexRules,
    bots=st.sets(st.sampled_from([folded_name(name) for name in NAMES[1:]])).map(frozenset),
    index_banners=st.booleans(),
)
rarely = st.sampled_from((False,) * 7 + (True,))

a_category = st.builds(replace, st.just(PUBLIC), id=st.sampled_from(CATEGORIES), read_restricted=rarely)
some_categories = st.lists(a_category, unique_by=lambda one: one.id)
a_topic = st.builds(
    replace,
    st.just(TOPIC),
    id=st.sampled_from(TOPICS),
    category_id=st.sampled_from([*CATEGORIES * 4, None, CategoryId(99)]),
    archetype=st.sampled_from(["regular"] * 4 + ["banner"] * 3 + ["private_message", "new_kind"]),
    visible=rarely.map(lambda unlisted: not unlisted),
    deleted=rarely,
    title=st.sampled_from(["Tomatoes", "Basil"]),
)
a_post = st.builds(
    replace,
    st.just(POST),
    id=st.sampled_from(POSTS),
    topic_id=st.sampled_from(TOPICS),
    post_type=st.sampled_from([1] * 8 + [2, 3, 4, 99]),
    user_id=st.sampled_from([UserId(7)] * 6 + [None, UserId(0), UserId(-1)]),
    username=st.sampled_from(NAMES[:1] * 5 + NAMES),
    deleted=rarely,
    hidden=rarely,
    user_deleted=rarely,
)


@dataclass(frozen=True, slots=True)
class Hidden:
    """An event's own body said that the topic is not public; nothing was read yet."""

    topic_id: TopicId


@dataclass(frozen=True, slots=True)
class Closed:
    """An event's own body said that the category is private; nothing was read yet."""

    category_id: CategoryId


told = st.one_of(st.sampled_from(TOPICS).map(Hidden), st.sampled_from(CATEGORIES).map(Closed))
a_step = st.one_of(some_categories, a_topic, a_post, told)


class State:
    """What the forum was last seen to be; every step of it is put into the corpus at once."""

    def __init__(self, corpus: CorpusStore, rules: IndexRules) -> None:
        self.corpus = corpus
        self.rules = rules
        self.categories: dict[CategoryId, Category] = {}
        self.topics: dict[TopicId, Topic] = {}
        self.posts: dict[PostId, Post] = {}
        self.minutes = count(1)

    def category(self, topic: Topic) -> Category | None:
        return self.categories.get(topic.category_id or CategoryId(0))

    async def put_categories(self, categories: list[Category]) -> None:
        self.categories = {one.id: one for one in categories}
        await self.corpus.put_categories(categories)
        await self.corpus.withdraw_private()

    async def put_topic(self, topic: Topic) -> None:
        self.topics[topic.id] = topic
        public = public_part(topic, self.category(topic), self.rules)
        await self.corpus.put_topics([public], read_at=await self.corpus.now())

    async def put_post(self, post: Post) -> None:
        topic = self.topics.get(post.topic_id)
        if topic is not None:
            self.posts[post.id] = post
            ready = prepare(post, topic, self.category(topic), self.rules)
            await self.corpus.put_posts([ready], read_at=await self.corpus.now())

    async def step(self, step: object) -> None:
        match step:
            case list():
                await self.put_categories(step)
            case Topic():
                await self.put_topic(step)
            case Post():
                await self.put_post(replace(step, updated_at=later(next(self.minutes))))
            case Closed(category_id=category_id):
                if category_id in self.categories:
                    self.categories[category_id] = replace(self.categories[category_id], read_restricted=True)
                await self.corpus.close_category(category_id)
            case Hidden(topic_id=topic_id):
                if topic_id in self.topics:
                    self.topics[topic_id] = replace(self.topics[topic_id], visible=False)
                await self.corpus.hide_topic(topic_id)

    def eligible(self) -> set[PostId]:
        """What the pure function says of everything as it is now."""
        found = set()
        for post in self.posts.values():
            topic = self.topics[post.topic_id]
            if refusal(post, topic, self.category(topic), self.rules) is None:
                found.add(post.id)
        return found


async def searchable(pool: Pool) -> set[PostId]:
    return {row[0] for row in await rows(pool, "SELECT post_id FROM public_posts")}


_WITH_WORDS = "SELECT post_id FROM posts JOIN topics USING (topic_id) WHERE body IS NOT NULL AND title <> ''"


async def empty(pool: Pool) -> None:
    async with transaction(pool) as conn:
        await conn.execute("TRUNCATE posts, topics, categories, postings, document_frequencies CASCADE")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rules=RULES,
    categories=some_categories,
    topics=st.tuples(a_topic, a_topic),
    steps=st.lists(a_step, min_size=8, max_size=30),
)
async def test_search_follows_the_pure_function_at_every_step(
    pool: Pool, rules: IndexRules, categories: list[Category], topics: tuple[Topic, Topic], steps: list[object]
) -> None:
    await empty(pool)
    state = State(CorpusStore(pool), rules)
    await state.put_categories(categories)
    for topic in topics:
        await state.put_topic(topic)
    for step in steps:
        await state.step(step)
        found, with_words = await searchable(pool), await rows(pool, _WITH_WORDS)
        # A post without text, or whose topic was stored without a title, comes back with a reading of it; what has both
        # is found exactly when it is eligible now.
        assert found == state.eligible() & {row[0] for row in with_words}
    for topic in list(state.topics.values()):
        await state.put_topic(topic)
    for post in list(state.posts.values()):
        await state.put_post(post)
    assert await searchable(pool) == state.eligible()
