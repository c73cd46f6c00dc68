"""Long posts in several passages: embedded by the passage, found once, counted once, beside a profile without."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from service.domain import Embedded, EmbeddingProfile, IndexKind, PostId, TopicId
from service.errors import Transient
from service.ingest.backfill import Backfill, backfill_archive
from service.ingest.eligibility import IndexRules
from service.ingest.embed import embed_posts
from service.ingest.ports import KeptPassage, TopicPost
from service.ingest.share import Unshared, embed_part
from service.ingest.text import digest, passage_texts
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.profiles import ProfileStore
from service.store.quarantine import QuarantineStore
from service.store.search import SearchStore
from tests.fakes.embedder import HashEmbedder
from tests.fakes.model_server import NAN_WORD
from tests.integration.store_data import POST, PROFILE, PUBLIC, TOPIC, indexed, passage, post, rows, unit
from tests.unit.test_archive import archive, post_json, topic_json

SPLIT = EmbeddingProfile("toy", 101, 1, dimensions=8, window_tokens=50, passage_tokens=20, overlap_tokens=4)
WHOLE = replace(SPLIT, strategy=100, passage_tokens=0, overlap_tokens=0)
LINES = [f"Line {n} says what happened on day {n}, in some forty words or so.\n\n" for n in range(12)]
LONG = "".join(LINES).strip()


def text_of(body: str, post_id: PostId = POST.id) -> TopicPost:
    return TopicPost(post_id, TOPIC.title, PUBLIC.name, TOPIC.tags, body)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(POST, LONG), indexed(post(2), "short")])
    return store


async def edit(corpus: CorpusStore, embedder: HashEmbedder, body: str) -> None:
    await corpus.put_posts([indexed(POST, body)], read_at=await corpus.now())
    await embed_posts([text_of(body)], corpus, embedder)


async def stored(pool: Pool, profile: EmbeddingProfile = SPLIT) -> list[tuple[int, int, bytes]]:
    query = (
        "SELECT post_id, passage, digest FROM embeddings JOIN embedding_profiles USING (profile_id)"
        " WHERE strategy = %s ORDER BY 1, 2"
    )
    return [
        (post_id, ordinal, bytes(made_of)) for post_id, ordinal, made_of in await rows(pool, query, profile.strategy)
    ]


def expected(body: str, embedder: HashEmbedder, post_id: PostId = POST.id) -> list[tuple[int, int, bytes]]:
    texts = passage_texts(text_of(body, post_id), embedder)
    return [(post_id, n, digest(one.text)) for n, one in enumerate(texts)]


async def test_two_strategies_stand_side_by_side(corpus: CorpusStore, pool: Pool) -> None:
    split, whole = HashEmbedder(SPLIT), HashEmbedder(WHOLE)
    for embedder in (split, whole):
        assert await embed_part(corpus, embedder, Unshared()) == 2
        assert await embed_part(corpus, embedder, Unshared()) == 0
    assert len(split.embedded) > 8
    assert all(text.startswith(f"{TOPIC.title}\n\n") for text in split.embedded)
    short = PostId(102)
    assert await stored(pool) == expected(LONG, split) + expected("short", split, short)
    assert await stored(pool, WHOLE) == expected(LONG, whole) + expected("short", whole, short)
    assert [one.passages for one in await ProfileStore(pool).list_profiles()] == [len(split.embedded), 2]
    assert (await corpus.census(SPLIT)).left_to_embed == (await corpus.census(WHOLE)).left_to_embed == 0


async def test_an_edit_embeds_only_what_changed(corpus: CorpusStore, pool: Pool) -> None:
    embedder = HashEmbedder(SPLIT)
    await embed_part(corpus, embedder, Unshared())
    before = await stored(pool)
    for body, most in ((f"{LONG} One word more.", 2), (LONG.replace("day 6", "day 7"), 2), (LINES[0] + LINES[1], 1)):
        embedder.embedded.clear()
        await edit(corpus, embedder, body)
        assert len(embedder.embedded) <= most
        assert await stored(pool) == expected(body, embedder) + before[-1:]
        embedder.embedded.clear()
        await embed_posts([text_of(body)], corpus, embedder)
        assert embedder.embedded == []
    embedder.embedded.clear()
    await edit(corpus, embedder, LONG)
    assert len(embedder.embedded) == len(before) - 1 - len(set(before) & {*expected(LINES[0] + LINES[1], embedder)})
    assert await stored(pool) == before


async def test_vectors_stay_with_their_texts_where_passages_move(corpus: CorpusStore, pool: Pool) -> None:
    embedder = HashEmbedder(SPLIT)
    await embed_part(corpus, embedder, Unshared())
    query = "SELECT digest, embedding::text FROM embeddings WHERE post_id = 100"
    before = dict(await rows(pool, query))
    await edit(corpus, embedder, LONG.partition("\n\n")[2])  # without its first line
    after = dict(await rows(pool, query))
    assert len(before.keys() & after.keys()) >= len(after) - 2
    assert all(before[made_of] == after[made_of] for made_of in before.keys() & after.keys())


@pytest.mark.parametrize("kind", list(IndexKind))
async def test_a_long_post_at_the_top_starves_nobody_and_is_found_once(
    corpus: CorpusStore, pool: Pool, kind: IndexKind
) -> None:
    profile = replace(PROFILE, index_kind=kind)
    others = [post(n) for n in range(3, 13)]
    await corpus.put_posts([indexed(one, "red") for one in others])
    await corpus.put_passages(profile, [passage(POST, 1, n / 1e4, 0, 0, ordinal=n) for n in range(500)])
    await corpus.put_passages(profile, [passage(one, 1, 1 + n / 9, 0, 0) for n, one in enumerate(others)])
    await ProfileStore(pool).activate(profile.name)
    found = await SearchStore(pool).nearest_posts(profile, unit(1, 0, 0, 0), 8)
    assert [one.post_id for one in found] == [POST.id, *(one.id for one in others[:7])]
    assert found[0].cosine == pytest.approx(1, abs=1e-3)


async def test_each_post_of_a_topic_counts_alike(corpus: CorpusStore, pool: Pool) -> None:
    profile = replace(PROFILE, strategy=101, passage_tokens=40)
    await corpus.put_passages(profile, [passage(POST, 1, n / 10, 0, 0, ordinal=n) for n in range(5)])
    await corpus.put_passages(profile, [passage(post(2), 0, 0, 1, 0)])
    mean = np.sum([unit(1, n / 10, 0, 0) for n in range(5)], axis=0)
    want = unit(*(unit(*mean) + unit(0, 0, 1, 0)))
    [(kept,)] = await rows(pool, "SELECT embedding::text FROM topic_embeddings WHERE grain = 'mean'")
    assert np.fromstring(kept.strip("[]"), sep=",") == pytest.approx(want, abs=2e-3)
    [(first,)] = await rows(pool, "SELECT embedding::text FROM topic_embeddings WHERE grain = 'first'")
    assert first == "[1,0,0,0]"  # how the post begins: there is the question
    search = SearchStore(pool)
    asked = unit(0, 1, 1, 0)
    [whole] = await search.mean_topics(profile, asked, 5)
    [own] = await search.mean_topics(
        profile, asked, 5, exclude_from=(TopicId(10), 9)
    )  # counted anew, of the same posts
    assert own.score == pytest.approx(whole.score, abs=2e-3) == pytest.approx(float(want @ asked), abs=2e-3)
    [best] = await search.best_posts([TOPIC.id], profile, asked, ["short"], exclude_from=(TopicId(10), 9))
    assert best.topic is not None
    assert best.topic.mean == pytest.approx(whole.score, abs=2e-3)


async def test_a_passage_that_the_model_fails_on_costs_its_post_only_that(corpus: CorpusStore, pool: Pool) -> None:
    embedder = HashEmbedder(SPLIT)
    bad = LONG.replace("day 6", NAN_WORD)
    await edit(corpus, embedder, bad)
    texts = passage_texts(text_of(bad), embedder)
    failed = [n for n, one in enumerate(texts) if NAN_WORD in one.text]
    assert 0 < len(failed) < len(texts)
    assert [ordinal for _, ordinal, _ in await stored(pool)] == [n for n in range(len(texts)) if n not in failed]
    assert await QuarantineStore(pool).count(SPLIT) == 0
    assert [one.post_id for one in await corpus.pending(SPLIT, 5)] == [102]
    await edit(corpus, embedder, LONG)
    assert await stored(pool) == expected(LONG, embedder)


async def test_vectors_of_an_older_text_never_take_the_place_of_newer_ones(corpus: CorpusStore, pool: Pool) -> None:
    newer = f"{LINES[0]}And then it was over."

    class EditedMeanwhile(HashEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> list[Embedded]:
            await edit(corpus, HashEmbedder(SPLIT), newer)
            return await super().embed_passages(texts)

    await embed_posts([text_of(LONG)], corpus, EditedMeanwhile(SPLIT))
    assert await stored(pool) == expected(newer, HashEmbedder(SPLIT))


async def test_what_cannot_be_stored_as_it_is_gets_its_vectors(corpus: CorpusStore, pool: Pool) -> None:
    body = "red \0"
    await corpus.put_posts([replace(indexed(POST, "red"), body=body)], read_at=await corpus.now())
    await embed_posts([text_of(body)], corpus, HashEmbedder(SPLIT))
    assert [post_id for post_id, _, _ in await stored(pool)] == [POST.id]


async def test_a_post_that_the_model_fails_on_altogether_is_quarantined_once(corpus: CorpusStore, pool: Pool) -> None:
    body = " ".join([NAN_WORD] * 40)
    await corpus.put_posts([indexed(post(3), body)])
    embedder = HashEmbedder(SPLIT)
    await embed_part(corpus, embedder, Unshared())
    assert await QuarantineStore(pool).count(SPLIT) == 1
    embedder.embedded.clear()
    await embed_posts([text_of(body, PostId(103))], corpus, embedder)
    assert embedder.embedded == []


async def test_what_was_replaced_meanwhile_is_not_kept(corpus: CorpusStore, pool: Pool) -> None:
    await corpus.put_passages(SPLIT, [passage(POST, *[1] * 8, digest=b"new")])
    with pytest.raises(Transient, match="passages of 1 posts, 100 first, were replaced"):
        await corpus.put_passages(SPLIT, [passage(POST, *[1] * 8, ordinal=1)], [KeptPassage(POST.id, 0, b"old")])
    assert await stored(pool) == [(100, 0, b"new")]
    await corpus.withdraw_posts([POST.id], read_at=await corpus.now())
    await corpus.put_passages(SPLIT, [], [KeptPassage(POST.id, 0, b"old")])  # it left the index: nothing to keep
    assert await stored(pool) == []


async def test_writers_at_once_of_the_same_posts_leave_the_passages_of_one(corpus: CorpusStore, pool: Pool) -> None:
    posts = [POST, post(2)]
    await asyncio.gather(
        *(
            corpus.put_passages(
                SPLIT,
                [passage(one, *[1] * 8, ordinal=n, digest=bytes([writer])) for one in posts for n in range(writer + 1)],
            )
            for writer in range(6)
        )
    )
    left = await stored(pool)
    [writer] = {made_of[0] for _, _, made_of in left}
    assert [(post_id, ordinal) for post_id, ordinal, _ in left] == [
        (one.id, n) for one in posts for n in range(writer + 1)
    ]


async def test_given_vectors_are_those_of_posts_in_one_passage(corpus: CorpusStore, pool: Pool, tmp_path: Path) -> None:
    """One vector is not what a longer post needs: the worker makes its passages."""
    bodies = ("short", LONG)
    posts = [post_json(n, id=900 + n, topic_id=90, cooked=f"<p>{body}</p>") for n, body in enumerate(bodies, start=1)]
    vectors = tmp_path / "vectors.npz"
    np.savez(
        vectors,
        topic_id=np.array([90, 90], dtype=np.int32),
        post_number=np.array([1, 2], dtype=np.int32),
        embedding=np.eye(2, 8, dtype=np.float16),
        profile=np.array("toy"),
    )
    at = Backfill(corpus, corpus, HashEmbedder(SPLIT), IndexRules(frozenset(), index_banners=False), lambda *_: None)
    path = archive(tmp_path, topic_json(id=90, post_stream={"posts": posts}))
    await backfill_archive(path, categories=None, vectors=vectors, at=at)
    assert [(post_id, ordinal) for post_id, ordinal, _ in await stored(pool)] == [(901, 0)]
    assert 902 in [one.post_id for one in await corpus.pending(SPLIT, 9)]
