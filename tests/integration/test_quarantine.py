"""A post that the model fails on: quarantined with its error, left alone until it changes, never in anybody's way."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from service.__main__ import ariane
from service.domain import PostId
from service.errors import Rejected
from service.ingest.embed import embed_posts
from service.ingest.ports import Census, EmbeddingFailure, Refusal, TopicPost
from service.ingest.share import Unshared, embed_part
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.quarantine import QuarantineStore
from tests.fakes.embedder import HashEmbedder
from tests.fakes.model_server import NAN_WORD
from tests.integration.store_data import POST, PROFILE, PUBLIC, TOPIC, indexed, later, post, rows

BAD = PostId(102)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    """Three posts, the second of which the model fails on."""
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(POST, "red"), indexed(post(2), f"a {NAN_WORD}"), indexed(post(3), "blue")])
    return store


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(PROFILE)


async def test_a_failing_post_costs_its_neighbours_nothing(
    corpus: CorpusStore, pool: Pool, embedder: HashEmbedder
) -> None:
    assert await embed_part(corpus, embedder, Unshared()) == 3
    assert await rows(pool, "SELECT post_id FROM embeddings ORDER BY post_id") == [(100,), (103,)]
    [failed] = await QuarantineStore(pool).latest(PROFILE, 10)
    assert (failed.post_id, failed.error, failed.attempts) == (BAD, "failed to encode response: NaN", 1)
    assert await corpus.census(PROFILE) == Census(1, 3, 3, {}, left_to_embed=0, unembeddable=1)


async def test_it_is_left_alone_while_its_text_is_the_same(corpus: CorpusStore, embedder: HashEmbedder) -> None:
    await embed_part(corpus, embedder, Unshared())
    embedder.embedded.clear()
    assert await embed_part(corpus, embedder, Unshared()) == 0
    again = TopicPost(BAD, TOPIC.title, PUBLIC.name, TOPIC.tags, f"a {NAN_WORD}")
    assert await embed_posts([again], corpus, embedder) == 0
    assert embedder.embedded == []


@pytest.mark.parametrize(
    ("body", "title", "left"),
    [("mended", TOPIC.title, 0), (f"a {NAN_WORD}", "New title", 1), (f"other {NAN_WORD}", TOPIC.title, 1)],
)
async def test_an_edit_of_post_or_topic_lets_it_try_again(
    corpus: CorpusStore, pool: Pool, embedder: HashEmbedder, body: str, title: str, left: int
) -> None:
    await embed_part(corpus, embedder, Unshared())
    await corpus.put_topics([replace(TOPIC, title=title)])
    await corpus.put_posts([indexed(post(2, updated_at=later(1)), body)])
    assert [one.post_id for one in await corpus.pending(PROFILE, 5)] == [BAD]
    assert await QuarantineStore(pool).count(PROFILE) == 0
    assert await embed_part(corpus, embedder, Unshared()) == 1
    assert await QuarantineStore(pool).count(PROFILE) == left
    assert await corpus.pending(PROFILE, 5) == []


async def test_a_text_that_fails_again_as_it_was_counts_its_attempts(
    corpus: CorpusStore, pool: Pool, embedder: HashEmbedder
) -> None:
    """A new tag is part of the source, not of the text under this strategy: the same text is tried once more."""
    await embed_part(corpus, profiled := replace(embedder, profile=replace(PROFILE, strategy=100)), Unshared())
    await corpus.put_topics([replace(TOPIC, tags=("rain",))])
    assert await embed_part(corpus, profiled, Unshared()) == 1
    assert [one.attempts for one in await QuarantineStore(pool).latest(profiled.profile, 5)] == [2]
    assert await embed_part(corpus, profiled, Unshared()) == 0


async def test_another_profile_tries_anew_and_a_release_too(
    corpus: CorpusStore, pool: Pool, embedder: HashEmbedder
) -> None:
    await embed_part(corpus, embedder, Unshared())
    assert len(await corpus.pending(replace(PROFILE, version=2), 5)) == 3
    assert await QuarantineStore(pool).release(replace(PROFILE, version=2)) == 0
    assert await QuarantineStore(pool).release(PROFILE) == 1
    assert [one.post_id for one in await corpus.pending(PROFILE, 5)] == [BAD]


@pytest.mark.parametrize("least_percent", [60, 70])
async def test_activating_its_profile_tries_it_again(
    corpus: CorpusStore,
    pool: Pool,
    embedder: HashEmbedder,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    least_percent: int,
) -> None:
    """Also where too few others have a vector for it to answer."""
    await embed_part(corpus, embedder, Unshared())
    own = tmp_path / "own.yml"
    own.write_text("embedders: {toy: {model: toy, strategy: 1, version: 1, dimensions: 4, window_tokens: 512}}")
    monkeypatch.setenv("ARIANE_DATABASE__URL", database_url)
    monkeypatch.setenv("ARIANE_MODELS__PROFILES_FILE", str(own))
    monkeypatch.setenv("ARIANE_MODELS__EMBEDDER__PROFILE", "toy")
    monkeypatch.setenv("ARIANE_ACTIVATION__LEAST_COVERAGE_PERCENT", str(least_percent))
    asked = ["profiles", "activate", PROFILE.name]
    result = await asyncio.to_thread(CliRunner().invoke, ariane, asked, standalone_mode=False)
    assert isinstance(result.exception, Rejected) == (least_percent > 66)
    assert [one.post_id for one in await corpus.pending(PROFILE, 5)] == [BAD]


async def test_the_vector_of_an_older_text_goes(corpus: CorpusStore, pool: Pool, embedder: HashEmbedder) -> None:
    await embed_part(corpus, embedder, Unshared())
    now_bad = TopicPost(POST.id, TOPIC.title, PUBLIC.name, TOPIC.tags, NAN_WORD)
    await embed_posts([now_bad], corpus, embedder)
    before = await rows(pool, "SELECT post_id FROM embeddings ORDER BY 1")
    assert before == [(POST.id,), (103,)]  # the post says something else now
    await corpus.put_posts([indexed(POST, NAN_WORD)], read_at=await corpus.now())
    await embed_posts([now_bad], corpus, embedder)
    assert await rows(pool, "SELECT post_id FROM embeddings") == [(103,)]
    await corpus.put_posts([indexed(POST, "good again")], read_at=await corpus.now())
    await embed_posts([replace(now_bad, body="good again")], corpus, embedder)
    assert await rows(pool, "SELECT post_id FROM embedding_failures") == [(102,)]


async def test_nothing_is_kept_of_a_post_that_left_the_index(
    corpus: CorpusStore, pool: Pool, embedder: HashEmbedder
) -> None:
    await embed_part(corpus, embedder, Unshared())
    await corpus.put_posts([indexed(post(2, updated_at=later(1)), refusal=Refusal.HIDDEN)])
    assert await QuarantineStore(pool).count(PROFILE) == 0
    failure = EmbeddingFailure(TopicPost(BAD, "", "", (), NAN_WORD), b"d", "too late")
    await corpus.put_failures(PROFILE, [failure])
    assert await QuarantineStore(pool).count(PROFILE) == 0


async def test_any_text_and_error_can_be_quarantined(corpus: CorpusStore, pool: Pool) -> None:
    odd = 'a\x00b \ud800 "quoted", {braces} \\ '
    await corpus.put_categories([replace(PUBLIC, name=odd)])
    await corpus.put_topics([replace(TOPIC, title=odd, tags=(odd, ""))], read_at=await corpus.now())
    await corpus.put_posts([replace(indexed(post(2), "odd"), body=odd * 100)], read_at=await corpus.now())
    post_of_odd = TopicPost(BAD, odd, odd, (odd, ""), odd * 100)
    await corpus.put_failures(PROFILE, [EmbeddingFailure(post_of_odd, b"d", odd * 100)])
    [failed] = await QuarantineStore(pool).latest(PROFILE, 5)
    assert failed.error.startswith("a\ufffdb")
    assert len(failed.error) == 500
