"""Leaving the index by parts: no transaction grows with what leaves, be it a category or all that somebody wrote."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from service.domain import CategoryId, PostId, TopicId, UserId
from service.ingest.ports import IndexedPost
from service.store import corpus as corpus_store
from service.store import posts as posts_store
from service.store import removal
from service.store.corpus import CorpusStore
from service.store.members import Account, MemberStore
from service.store.personal import erase
from service.store.pool import Pool
from tests.integration.store_data import NOON, PRIVATE, PUBLIC, TOPIC, frequencies_are_exact, indexed, post, rows

PART = 3
INES = Account(UserId(7), "ines")
POSTS = [post(n) for n in range(1, 11)]


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC, PRIVATE])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(one, f"words number {one.post_number}") for one in POSTS])
    return store


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many posts left the index in each transaction; three at most may."""
    seen: list[int] = []
    drop = removal._drop

    async def dropped(conn: object, post_ids: Sequence[PostId], **rest: object) -> None:
        seen.append(len(post_ids))
        await drop(conn, post_ids, **rest)  # type: ignore[arg-type]  # as they were given

    monkeypatch.setattr(removal, "_drop", dropped)
    monkeypatch.setattr(removal, "PART", PART)
    return seen


Leave = Callable[[CorpusStore, Pool], Awaitable[int]]


async def _category(corpus: CorpusStore, _: Pool) -> int:
    await corpus.close_category(CategoryId(PUBLIC.id))
    return await corpus.withdraw_private()


async def _read(corpus: CorpusStore, _: Pool) -> int:
    return await corpus.withdraw_posts([one.id for one in POSTS], read_at=await corpus.now())


async def _topic(corpus: CorpusStore, _: Pool) -> int:
    return await corpus.remove_topic(TopicId(TOPIC.id))


async def _opted_out(_: CorpusStore, pool: Pool) -> int:
    return await MemberStore(pool).opt_out([INES], by="Zoé", reason="he asked", now=NOON)


async def _erased(_: CorpusStore, pool: Pool) -> int:
    return await erase(pool, [INES], pseudonym="member-1", gone=True, by="Zoé", reason="he asked", now=NOON)


@pytest.mark.parametrize("leave", [_category, _read, _topic, _opted_out, _erased])
async def test_what_leaves_goes_in_parts_until_nothing_is_left(
    corpus: CorpusStore, pool: Pool, parts: list[int], leave: Leave
) -> None:
    assert await leave(corpus, pool) == len(POSTS)
    assert sum(parts) == len(POSTS) and max(parts) <= PART
    assert await rows(pool, "SELECT count(*) FROM posts WHERE body IS NOT NULL") == [(0,)]
    assert await rows(pool, "SELECT count(*) FROM postings") == [(0,)]
    assert await frequencies_are_exact(pool)
    assert await rows(pool, "SELECT length FROM topics") == [(0,)]


async def test_what_was_opened_again_meanwhile_stays(
    corpus: CorpusStore, pool: Pool, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is private is decided anew for each part."""
    withdraw = removal.withdraw_private

    async def opened_again(conn: object, topic_id: TopicId | None = None) -> int:
        if parts:
            await corpus.put_topics([TOPIC], read_at=await corpus.now())
        return await withdraw(conn, topic_id)  # type: ignore[arg-type]  # a connection

    monkeypatch.setattr(removal, "withdraw_private", opened_again)
    assert await corpus.remove_topic(TOPIC.id) == PART
    assert parts == [PART, 0]
    assert await rows(pool, "SELECT count(*) FROM posts WHERE body IS NOT NULL") == [(len(POSTS) - PART,)]


async def test_posts_of_a_long_topic_are_stored_in_parts(
    corpus: CorpusStore, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []
    put = posts_store.put_posts

    async def seen(conn: object, part: Sequence[IndexedPost], **rest: object) -> int:
        stored.append(len(part))
        return await put(conn, part, **rest)  # type: ignore[arg-type]  # as they were given

    monkeypatch.setattr(corpus_store, "put_posts", seen)
    monkeypatch.setattr(corpus_store, "PUT_AT_ONCE", 4)
    again = [indexed(one, f"other words {one.post_number}") for one in POSTS]
    assert await corpus.put_posts(again, read_at=await corpus.now()) == len(POSTS)
    assert stored == [4, 4, 2]
    assert await rows(pool, "SELECT count(*) FROM posts WHERE body LIKE 'other%%'") == [(len(POSTS),)]
