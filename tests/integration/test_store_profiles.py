"""Profiles: side by side, one active, each with the index of its kind."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from service.domain import Embedded, EmbeddingProfile, IndexKind
from service.errors import Misconfigured, Rejected
from service.ingest.ports import EmbeddingFailure, TopicPost
from service.ingest.share import Unshared, embed_part
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.profiles import ProfileStore
from service.store.search import SearchStore
from tests.integration.store_data import POST, PROFILE, PUBLIC, TOPIC, indexed, passage, post, rows, unit

HNSW = replace(PROFILE, version=2, index_kind=IndexKind.HNSW_HALFVEC)
BINARY = replace(PROFILE, version=3, dimensions=8, index_kind=IndexKind.HNSW_BINARY)


@pytest.fixture
async def profiles(pool: Pool) -> ProfileStore:
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    await corpus.put_posts([indexed(POST, "red")])
    for profile in (PROFILE, HNSW):
        await corpus.put_passages(profile, [passage(POST, 1, 0, 0, 0, ordinal=n) for n in range(2)])
    return ProfileStore(pool)


async def indexes(pool: Pool) -> list[str]:
    query = "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'embeddings\\_%%\\_hnsw%%' ORDER BY 1"
    return [name for (name,) in await rows(pool, query)]


async def test_profiles_stand_side_by_side(profiles: ProfileStore) -> None:
    assert await profiles.active_profile() is None
    await profiles.ensure_profile(BINARY)
    listed = await profiles.list_profiles()
    assert [(one.profile, one.active, one.posts, one.passages, one.index_built) for one in listed] == [
        (PROFILE, False, 1, 2, True),
        (HNSW, False, 1, 2, False),
        (BINARY, False, 0, 0, False),
    ]


async def test_a_profile_keeps_its_id_and_its_dimensions(profiles: ProfileStore) -> None:
    first = await profiles.ensure_profile(PROFILE)
    assert await profiles.ensure_profile(PROFILE) == first
    with pytest.raises(Misconfigured, match="new version"):
        await profiles.ensure_profile(replace(PROFILE, dimensions=5))
    with pytest.raises(Misconfigured, match="new version"):
        await profiles.ensure_profile(replace(PROFILE, window_tokens=5))
    with pytest.raises(
        Misconfigured, match=r"passage_tokens 0, overlap_tokens 0, not .* passage_tokens 9, overlap_tokens 1"
    ):
        await profiles.ensure_profile(replace(PROFILE, passage_tokens=9, overlap_tokens=1))


async def test_activating_builds_the_index_of_the_kind_and_leaves_one_active(
    profiles: ProfileStore, pool: Pool
) -> None:
    await profiles.ensure_profile(BINARY)
    for profile, built in ((PROFILE, []), (HNSW, ["embeddings_2_hnsw_halfvec"]), (HNSW, ["embeddings_2_hnsw_halfvec"])):
        await profiles.activate(profile.name)
        active = await profiles.active_profile()
        assert active is not None
        assert (active.profile, active.index_built) == (profile, True)
        assert await indexes(pool) == built
    await profiles.activate(BINARY.name)
    assert sum(one.active for one in await profiles.list_profiles()) == 1
    assert len(await indexes(pool)) == 2


async def test_a_changed_kind_replaces_the_index(profiles: ProfileStore, pool: Pool) -> None:
    await profiles.activate(HNSW.name)
    await profiles.ensure_profile(replace(HNSW, index_kind=IndexKind.HNSW_BINARY))
    assert not (await profiles.list_profiles())[1].index_built
    await profiles.activate(HNSW.name)
    assert await indexes(pool) == ["embeddings_2_hnsw_binary"]
    await profiles.ensure_profile(replace(HNSW, index_kind=IndexKind.EXACT))
    await profiles.activate(HNSW.name)
    assert await indexes(pool) == []


async def test_an_index_left_invalid_is_built_again(profiles: ProfileStore, pool: Pool) -> None:
    await profiles.activate(HNSW.name)
    await rows(
        pool,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'embeddings_2_hnsw_halfvec'::regclass RETURNING 1",
    )
    assert not (await profiles.list_profiles())[1].index_built
    await profiles.activate(HNSW.name)
    assert (await profiles.list_profiles())[1].index_built


async def test_a_build_leaves_the_connection_as_it_was(profiles: ProfileStore, pool: Pool) -> None:
    query = "SELECT current_setting('statement_timeout'), current_setting('maintenance_work_mem')"
    before = await rows(pool, query)
    await profiles.activate(HNSW.name)
    assert await rows(pool, query) == before
    assert before[0][0] == "30s"


async def test_an_unknown_profile_is_rejected_with_those_there_are(profiles: ProfileStore) -> None:
    with pytest.raises(Rejected, match=r"toy/1\.1, toy/1\.2"):
        await profiles.activate("other/1.1")


class Constant:
    """An embedder whose vector of every text is the same."""

    def __init__(self, profile: EmbeddingProfile) -> None:
        self.profile = profile

    def truncate(self, text: str) -> str:
        return text

    def tokens(self, text: str) -> float:
        return float(len(text))

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Embedded]:
        return [unit(0, 1, 0, 0) for _ in texts]


async def test_a_second_profile_is_filled_while_the_first_answers_then_replaces_it(
    profiles: ProfileStore, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ingest.share.PART_IDS", 8)
    corpus, search = CorpusStore(pool), SearchStore(pool)
    await corpus.put_posts([indexed(post(n), "red") for n in range(2, 40)])
    await profiles.activate(PROFILE.name)
    new = replace(PROFILE, model="better", strategy=100, index_kind=IndexKind.HNSW_HALFVEC)
    while await embed_part(corpus, Constant(new), Unshared()):
        [found] = await search.nearest_posts(PROFILE, unit(1, 0, 0, 0), 5)
        assert found.post_id == POST.id  # the only one that the old profile knows, all the time
    assert len(await search.nearest_posts(new, unit(0, 1, 0, 0), 50)) == 39
    await profiles.activate(new.name)
    assert [one.profile.name for one in await profiles.list_profiles() if one.active] == [new.name]
    assert len(await search.nearest_posts(PROFILE, unit(1, 0, 0, 0), 5)) == 1  # who still asks the old one is answered
    await profiles.drop(PROFILE.name)
    assert await search.nearest_posts(PROFILE, unit(1, 0, 0, 0), 5) == []
    assert len(await search.nearest_posts(new, unit(0, 1, 0, 0), 50)) == 39


async def test_no_one_ever_sees_none_or_two_active(profiles: ProfileStore) -> None:
    await profiles.activate(PROFILE.name)
    turns = asyncio.create_task(_turn(profiles, 6))
    seen = set()
    while not turns.done():
        seen.add(sum(one.active for one in await profiles.list_profiles()))
    await turns
    assert seen == {1}


async def _turn(profiles: ProfileStore, times: int) -> None:
    for n in range(times):
        await profiles.activate((HNSW, PROFILE)[n % 2].name)


async def test_dropping_leaves_nothing_of_a_profile_and_all_of_the_others(
    profiles: ProfileStore, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.store.profiles.DROPPED_AT_ONCE", 2)
    corpus = CorpusStore(pool)
    posts = [post(n) for n in range(2, 8)]
    await corpus.put_posts([indexed(one, "red") for one in posts])
    await corpus.put_passages(HNSW, [passage(one, 1, 0, 0, 0) for one in posts])
    failed = TopicPost(posts[0].id, TOPIC.title, PUBLIC.name, TOPIC.tags, "red")
    await corpus.put_failures(HNSW, [EmbeddingFailure(failed, b"d", "NaN")])
    await profiles.activate(HNSW.name)
    with pytest.raises(Rejected, match="activate another first"):
        await profiles.drop(HNSW.name)
    await profiles.activate(PROFILE.name)
    dropped = await profiles.drop(HNSW.name)
    assert (dropped.profile, dropped.posts, dropped.passages) == (HNSW, 6, 7)  # the failed one has none
    assert [one.profile for one in await profiles.list_profiles()] == [PROFILE]
    assert await indexes(pool) == []
    for table in ("embeddings", "topic_embeddings", "embedding_failures", "embedding_references"):
        assert await rows(pool, f"SELECT DISTINCT profile_id FROM {table} WHERE profile_id <> 1") == []
    assert await rows(pool, "SELECT count(*) FROM embeddings") == [(2,)]
    with pytest.raises(Rejected, match="there is no profile"):
        await profiles.drop(HNSW.name)
