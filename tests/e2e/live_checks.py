"""What must hold of an index beside a changing forum: at any moment, and once both were reconciled."""

from service.domain import PostId
from service.ingest.ports import TopicPost
from service.ingest.text import DISCOURSE, digest, embedded_text
from service.lexer import query_lexemes, term_counts
from service.simulator.forum import STUB
from service.store.pool import Pool
from service.store.search import SearchStore
from tests.changing_forum import EVERYWHERE, Seen, is_public, seen_of
from tests.e2e.live_kit import ENOUGH, PROFILE, Life
from tests.integration.store_data import frequencies_are_exact, rows, unit


async def found(pool: Pool, *, vectors: bool = True) -> dict[int, tuple[int, int]]:
    """What search gives, by words and by `vectors`: each post's topic, and that topic's category, as stored."""
    search, lexemes = SearchStore(pool), query_lexemes(f"{EVERYWHERE} {STUB}")
    worded = await search.keyword_posts(lexemes, ENOUGH)
    near = await search.nearest_posts(PROFILE, unit(1, 1, 1, 1), ENOUGH) if vectors else []
    topics = dict(await rows(pool, "SELECT topic_id, category_id FROM topics"))
    return {one.post_id: (one.topic_id, topics[one.topic_id]) for one in [*worded, *near]}


async def check_nothing_told_is_found(at: Life, *, vectors: bool = True) -> None:
    """What an event said to be private is not found while it is."""
    told = {kind: {number for one, number in at.told if one == kind} for kind in ("post", "topic", "category")}
    for post_id, (topic_id, category_id) in (await found(at.pool, vectors=vectors)).items():
        assert post_id not in told["post"], f"post {post_id}"
        assert topic_id not in told["topic"], f"post {post_id} of topic {topic_id}"
        assert category_id not in told["category"], f"post {post_id} of category {category_id}"


async def check_agreement(at: Life) -> None:
    """The index holds what the public sees of the forum, each post under its title, and not a word more."""
    pool, seen = at.pool, seen_of(at.forum)
    stored = {
        post_id: Seen(topic, number, text, title, category, tuple(tags))
        for post_id, topic, number, text, title, category, tags in await rows(
            pool,
            "SELECT post_id, topic_id, post_number, body, title, category_id, tags"
            " FROM public_posts JOIN topics USING (topic_id, title)",
        )
    }
    assert stored.keys() ^ seen.keys() == set()
    assert stored == seen
    assert await rows(pool, "SELECT count(*) FROM posts WHERE body IS NOT NULL") == [(len(seen),)]
    titles = dict(await rows(pool, "SELECT topic_id, title FROM topics WHERE title <> ''"))
    topics = at.forum.topics
    assert {one: topics[one].title for one in titles if is_public(at.forum, topics[one])} == titles
    terms = {post_id: term_counts(f"{one.title}\n{one.text}") for post_id, one in seen.items()}
    postings = await rows(pool, "SELECT post_id, topic_id, lexeme, tf, length FROM postings")
    assert sorted(postings) == sorted(
        (post_id, seen[post_id].topic_id, lexeme, tf, length)
        for post_id, (counts, length) in terms.items()
        for lexeme, tf in counts.items()
    )
    assert await frequencies_are_exact(pool)
    names = {one.id: one.name for one in at.forum.categories.values()}
    texts = {
        post_id: TopicPost(PostId(post_id), one.title, names[one.category_id], one.tags, one.text)
        for post_id, one in seen.items()
    }
    made_of = {
        post_id: digest(at.indexer.embedder.truncate(embedded_text(text, DISCOURSE))) for post_id, text in texts.items()
    }
    assert dict(await rows(pool, "SELECT post_id, digest FROM embeddings")) == made_of
