"""Profiles: side by side, one active, each with the index of its kind."""

from dataclasses import replace

import pytest

from service.domain import IndexKind
from service.errors import Misconfigured, Rejected
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.profiles import ProfileStore
from tests.integration.store_data import POST, PROFILE, PUBLIC, TOPIC, indexed, passage, rows

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
