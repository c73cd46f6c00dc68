"""The corpus: newer states win, removals hold, frequencies are exact, nothing private stays."""

import asyncio
import random
from dataclasses import replace

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain import Category, CategoryId, Post, PostId, Topic, TopicId
from service.ingest.ports import Census, Refusal, TopicPost
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from tests.integration.store_data import (
    NOON,
    POST,
    PRIVATE,
    PROFILE,
    PUBLIC,
    TOPIC,
    frequencies_are_exact,
    indexed,
    later,
    passage,
    post,
    rows,
)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC, PRIVATE])
    await store.put_topics([TOPIC])
    return store


async def state_of(pool: Pool, one: Post = POST) -> tuple[str | None, str | None]:
    [(refusal, body)] = await rows(pool, "SELECT refusal, body FROM posts WHERE post_id = %s", one.id)
    return refusal, body


async def nothing_is_left(pool: Pool) -> bool:
    """Whether no word and no vector of any post is stored."""
    return await rows(
        pool,
        "SELECT (SELECT count(*) FROM postings), (SELECT count(*) FROM document_frequencies),"
        " (SELECT count(*) FROM embeddings), (SELECT count(*) FROM posts WHERE body IS NOT NULL)",
    ) == [(0, 0, 0, 0)]


async def test_categories_are_replaced(corpus: CorpusStore) -> None:
    assert await corpus.categories() == {PUBLIC.id: PUBLIC, PRIVATE.id: PRIVATE}
    child = Category(CategoryId(3), "Herbs", "herbs", PUBLIC.id, read_restricted=False)
    await corpus.put_categories([PUBLIC, child])
    assert await corpus.categories() == {PUBLIC.id: PUBLIC, child.id: child}


async def test_a_list_of_categories_is_not_stored_over_a_later_reading(corpus: CorpusStore) -> None:
    began = await corpus.now()
    assert await corpus.put_categories([], read_at=await corpus.now())
    assert not await corpus.put_categories([PUBLIC], read_at=began)
    assert await corpus.categories() == {}
    assert await corpus.put_categories([PUBLIC], read_at=await corpus.now())
    assert await corpus.categories() == {PUBLIC.id: PUBLIC}


async def test_a_reading_that_began_before_a_category_was_closed_does_not_open_it(corpus: CorpusStore) -> None:
    began = await corpus.now()
    await corpus.close_category(PUBLIC.id)
    assert not await corpus.put_categories([PUBLIC], read_at=began)
    assert (await corpus.categories())[PUBLIC.id].read_restricted
    assert await corpus.put_categories([PUBLIC], read_at=await corpus.now())
    assert not (await corpus.categories())[PUBLIC.id].read_restricted


async def test_a_category_that_is_not_stored_counts_as_closed_all_the_same(corpus: CorpusStore) -> None:
    began = await corpus.now()
    await corpus.close_category(CategoryId(3))
    assert not await corpus.put_categories([PUBLIC, replace(PUBLIC, id=CategoryId(3))], read_at=began)


async def test_categories_are_added_but_none_that_is_known_changes(corpus: CorpusStore) -> None:
    fresh = replace(PUBLIC, id=CategoryId(3), name="Herbs")
    await corpus.add_categories([replace(PRIVATE, read_restricted=False), fresh])
    assert await corpus.categories() == {PUBLIC.id: PUBLIC, PRIVATE.id: PRIVATE, fresh.id: fresh}


async def test_a_topic_comes_back_as_it_was_last_put(corpus: CorpusStore) -> None:
    changed = replace(TOPIC, title="Cracks \N{TOMATO}", closed=True, tags=(), category_id=None)
    other = Topic(TopicId(11), "Basil", "basil", PUBLIC.id, "banner", visible=False, archived=True, deleted=True)
    await corpus.put_topics([other, changed])
    assert await corpus.topic(TOPIC.id) == changed
    assert await corpus.topic(other.id) == other
    assert await corpus.topic(TopicId(99)) is None


async def test_a_newer_snapshot_wins_and_an_older_one_changes_nothing(corpus: CorpusStore, pool: Pool) -> None:
    edited = replace(POST, updated_at=later(5))
    assert await corpus.put_posts([indexed(POST, "red red fruit")]) == 1
    assert await corpus.put_posts([indexed(edited, "green fruit")]) == 1
    assert await corpus.put_posts([indexed(POST, "red red fruit")]) == 0
    assert await corpus.put_posts([indexed(POST, refusal=Refusal.HIDDEN)]) == 0
    assert await state_of(pool) == (None, "green fruit")
    assert await rows(pool, "SELECT lexeme, tf, length FROM postings ORDER BY 1") == [("fruit", 1, 2), ("green", 1, 2)]
    assert await frequencies_are_exact(pool)


async def test_the_newest_of_one_batch_counts(corpus: CorpusStore, pool: Pool) -> None:
    edited = replace(POST, updated_at=later(5))
    assert await corpus.put_posts([indexed(edited, "new"), indexed(POST, "old")]) == 1
    assert await state_of(pool) == (None, "new")


async def test_an_unchanged_post_keeps_its_postings_untouched(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red fruit"), indexed(post(2), "red")])
    before = await rows(pool, "SELECT ctid::text, lexeme, post_id FROM postings ORDER BY 2, 3")
    await corpus.put_posts([indexed(replace(POST, updated_at=later(1)), "red fruit")])
    assert await rows(pool, "SELECT ctid::text, lexeme, post_id FROM postings ORDER BY 2, 3") == before


async def test_a_new_title_changes_the_postings_of_an_unchanged_body(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red", title="a b")])
    await corpus.put_posts([indexed(POST, "red", title="a c")])
    assert await rows(pool, "SELECT lexeme, posts FROM document_frequencies ORDER BY 1") == [
        ("a", 1), ("c", 1), ("red", 1)
    ]  # fmt: skip


async def test_a_removed_post_comes_back_only_by_a_reading_that_began_later(corpus: CorpusStore, pool: Pool) -> None:
    """Discourse deletes and recovers a post without touching its date, and an edit's delivery may come after both."""
    await corpus.put_posts([indexed(POST, "red")])
    before = await corpus.now()
    assert await corpus.remove_post(POST.id, updated_at=POST.updated_at)
    assert await nothing_is_left(pool)
    newer = indexed(replace(POST, updated_at=later(1)), "back")
    assert await corpus.put_posts([newer]) == 0
    assert await corpus.put_posts([newer], read_at=before) == 0
    assert await state_of(pool) == ("deleted", None)
    assert await corpus.put_posts([indexed(POST, "red")], read_at=await corpus.now()) == 1
    assert await state_of(pool) == (None, "red")


async def test_what_was_read_stands_against_a_snapshot_of_the_same_date(corpus: CorpusStore, pool: Pool) -> None:
    """Moving a post changes no date: a late delivery would move it back."""
    await corpus.put_topics([replace(TOPIC, id=TopicId(11))])
    moved = replace(POST, topic_id=TopicId(11), post_number=7)
    await corpus.put_posts([indexed(POST, "red")])
    assert await corpus.put_posts([indexed(moved, "red")], read_at=await corpus.now()) == 1
    assert await corpus.put_posts([indexed(POST, "red")]) == 0
    assert await corpus.put_posts([indexed(POST, "red")], read_at=NOON) == 0
    assert await rows(pool, "SELECT topic_id, post_number FROM posts") == [(11, 7)]
    assert await corpus.put_posts([indexed(replace(moved, updated_at=later(1)), "green")]) == 1
    assert await state_of(pool) == (None, "green")


async def test_a_reading_withdraws_what_it_did_not_show_unless_something_newer_is_there(
    corpus: CorpusStore, pool: Pool
) -> None:
    began = await corpus.now()
    await corpus.put_posts([indexed(POST, "red"), indexed(post(2), "blue")])
    await corpus.put_posts([indexed(POST, "red")], read_at=await corpus.now())
    assert await corpus.withdraw_posts([POST.id, PostId(102), PostId(999)], read_at=began) == 2
    assert [await state_of(pool), await state_of(pool, post(2))] == [(None, "red"), ("deleted", None)]
    assert (
        await corpus.put_posts([indexed(replace(POST, id=PostId(999)), "late")]) == 0
    )  # it was gone before we knew it


async def test_a_topic_is_not_stored_over_a_newer_state(corpus: CorpusStore) -> None:
    began = await corpus.now()
    assert await corpus.put_topics([replace(TOPIC, title="New")]) == 1
    assert await corpus.put_topics([TOPIC], read_at=began) == 0
    assert await corpus.remove_topic(TOPIC.id, read_at=began) == 0
    assert (await corpus.topic(TOPIC.id)) == replace(TOPIC, title="New")
    assert await corpus.put_topics([TOPIC], read_at=await corpus.now()) == 1


@pytest.mark.parametrize("refusal", [Refusal.HIDDEN, Refusal.TOPIC_DELETED])
async def test_at_the_same_moment_any_other_refusal_is_stored_again(
    corpus: CorpusStore, pool: Pool, refusal: Refusal
) -> None:
    await corpus.put_posts([indexed(POST, refusal=refusal)])
    assert await corpus.put_posts([indexed(POST, "red")]) == 1
    assert await state_of(pool) == (None, "red")


async def test_a_removal_that_comes_before_its_post_is_found_by_it(corpus: CorpusStore, pool: Pool) -> None:
    assert await corpus.remove_post(POST.id, updated_at=later(1))
    assert await corpus.put_posts([indexed(POST, "red")]) == 0
    assert await nothing_is_left(pool)
    assert (await corpus.census(PROFILE)).posts == 0
    assert await corpus.put_posts([indexed(replace(POST, updated_at=later(2)), "red")]) == 0
    assert await corpus.put_posts([indexed(replace(POST, updated_at=later(2)), "red")], read_at=await corpus.now()) == 1
    assert await state_of(pool) == (None, "red")


async def test_an_older_removal_does_not_undo_a_newer_post(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(replace(POST, updated_at=later(1)), "red")])
    assert not await corpus.remove_post(POST.id, updated_at=NOON)
    assert await state_of(pool) == (None, "red")


async def test_a_refused_post_loses_its_words_and_vectors(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red"), indexed(post(2), "red green")])
    await corpus.put_passages(PROFILE, [passage(POST, 1, 0, 0, 0), passage(post(2), 0, 1, 0, 0)])
    await corpus.put_posts([indexed(POST, refusal=Refusal.HIDDEN)])
    assert await state_of(pool) == ("hidden", None)
    assert await rows(pool, "SELECT post_id FROM embeddings") == [(102,)]
    assert await rows(pool, "SELECT lexeme, posts FROM document_frequencies ORDER BY 1") == [("green", 1), ("red", 1)]


async def test_a_removed_topic_keeps_its_state_and_no_word(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red"), indexed(post(2), refusal=Refusal.HIDDEN), indexed(post(3), "blue")])
    await corpus.put_passages(PROFILE, [passage(POST, 1, 0, 0, 0)])
    assert await corpus.remove_topic(TOPIC.id) == 2
    assert await nothing_is_left(pool)
    assert await corpus.topic(TOPIC.id) == replace(TOPIC, title="", slug="", tags=(), deleted=True)
    assert await state_of(pool, post(3)) == ("topic_deleted", None)
    assert await corpus.remove_topic(TOPIC.id) == 0
    assert await corpus.put_posts([indexed(POST, "red")]) == 1


async def test_a_topic_put_as_hidden_keeps_its_posts_until_it_is_removed(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red")])
    await corpus.put_topics([replace(TOPIC, visible=False)])
    assert await state_of(pool) == (None, "red")


async def test_a_category_that_turned_private_takes_its_words_along(corpus: CorpusStore, pool: Pool) -> None:
    open_topic = replace(TOPIC, id=TopicId(11), category_id=CategoryId(3))
    await corpus.put_categories([PUBLIC, replace(PUBLIC, id=CategoryId(3))])
    await corpus.put_topics([open_topic])
    await corpus.put_posts([indexed(POST, "red"), indexed(post(2, topic_id=open_topic.id), "blue")])
    assert await corpus.withdraw_private() == 0
    await corpus.put_categories([replace(PUBLIC, read_restricted=True), replace(PUBLIC, id=CategoryId(3))])
    assert await corpus.withdraw_private() == 1
    assert await state_of(pool) == ("category_private", None)
    assert await rows(pool, "SELECT lexeme FROM document_frequencies") == [("blue",)]
    assert await corpus.topic(TOPIC.id) == replace(TOPIC, title="", slug="", tags=())
    await corpus.put_categories([])
    assert await corpus.withdraw_private() == 1
    assert await nothing_is_left(pool)


async def test_pending_digests_and_census_follow_the_vectors(corpus: CorpusStore) -> None:
    await corpus.put_posts([indexed(POST, "red"), indexed(post(2), "blue"), indexed(post(3), refusal=Refusal.HIDDEN)])
    assert await corpus.pending(PROFILE, 5) == [
        TopicPost(PostId(101 if body == "x" else number), TOPIC.title, PUBLIC.name, TOPIC.tags, body)
        for number, body in ((100, "red"), (102, "blue"))
    ]
    assert len(await corpus.pending(PROFILE, 1)) == 1
    await corpus.put_passages(PROFILE, [passage(POST, 1, 0, 0, 0, digest=b"1")])
    assert [one.post_id for one in await corpus.pending(PROFILE, 5)] == [102]
    assert len(await corpus.pending(replace(PROFILE, version=2), 5)) == 2
    assert await corpus.digests(PROFILE, [POST.id, PostId(102)]) == {POST.id: (b"1",)}
    assert await corpus.census(PROFILE) == Census(1, 3, 2, {"hidden": 1}, 1)


async def test_passages_are_replaced_and_a_post_that_left_gets_none(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_posts([indexed(POST, "red"), indexed(post(2), refusal=Refusal.DELETED)])
    await corpus.put_passages(PROFILE, [passage(POST, 1, 0, 0, 0, ordinal=n) for n in range(3)])
    await corpus.put_passages(PROFILE, [passage(POST, 0, 1, 0, 0, digest=b"2"), passage(post(2), 1, 0, 0, 0)])
    assert await rows(pool, "SELECT post_id, passage, digest, embedding::text FROM embeddings") == [
        (100, 0, b"2", "[0,1,0,0]")
    ]


async def test_vectors_of_another_length_or_dimension_are_refused_by_the_table(corpus: CorpusStore) -> None:
    await corpus.put_posts([indexed(POST, "red")])
    with pytest.raises(psycopg.errors.CheckViolation):
        await corpus.put_passages(PROFILE, [replace(passage(POST, 1, 0, 0, 0), vector=2 * passage(POST, 1).vector)])
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        await corpus.put_passages(PROFILE, [passage(POST, 1, 0, 0)])


async def test_backfills_remember_where_they_stopped(corpus: CorpusStore) -> None:
    assert await corpus.topics_read("archive") == 0
    await corpus.mark_read("archive", 100)
    await corpus.mark_read("archive", 200)
    assert (await corpus.topics_read("archive"), await corpus.topics_read("other")) == (200, 0)


async def test_frequencies_stay_exact_under_writers_at_once(corpus: CorpusStore, pool: Pool) -> None:
    """Eight writers put, edit, refuse and remove the same posts, with overlapping words, in random order."""
    words = [f"w{n}" for n in range(40)]

    async def write(seed: int) -> None:
        chance = random.Random(seed)
        for step in range(15):
            minute = step * 8 + seed
            batch = [
                indexed(post(number, updated_at=later(minute)), " ".join(chance.choices(words, k=12)))
                for number in chance.sample(range(1, 30), 6)
            ]
            await corpus.put_posts(batch)
            gone = PostId(100 + chance.randrange(1, 30))
            match step % 5:
                case 1:
                    await corpus.remove_post(gone, updated_at=later(minute))
                case 2:
                    await corpus.put_posts(
                        [indexed(post(gone - 100, updated_at=later(minute)), refusal=Refusal.HIDDEN)]
                    )
                case 4:
                    await corpus.remove_topic(TOPIC.id)

    await asyncio.gather(*map(write, range(8)))
    assert await frequencies_are_exact(pool)
    assert await rows(
        pool, "SELECT count(*) FROM postings WHERE post_id NOT IN (SELECT post_id FROM posts WHERE refusal IS NULL)"
    ) == [(0,)]


async def test_writers_of_different_posts_never_wait_in_a_circle(corpus: CorpusStore, pool: Pool) -> None:
    """Their posts have the same words, each in another order: the frequencies are all that they share."""

    async def write(writer: int) -> None:
        chance = random.Random(writer)
        for step in range(12):
            words = [f"w{n}" for n in range(150)]
            chance.shuffle(words)
            await corpus.put_posts([indexed(post(writer, updated_at=later(step)), " ".join(words[: 75 + step % 2]))])

    await asyncio.gather(*map(write, range(1, 7)))
    assert await frequencies_are_exact(pool)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=()), min_size=1))
async def test_any_text_can_be_indexed(corpus: CorpusStore, pool: Pool, text: str) -> None:
    await corpus.put_topics([replace(TOPIC, title=text, tags=(text,))])
    await corpus.put_posts([replace(indexed(replace(POST, username=text), "red"), body=text)])
    await corpus.withdraw_private()
    assert (await state_of(pool))[0] is None
