"""The real forum, backfilled from the simulator's REST by a process that is killed three times: as from the file."""

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from service.ingest.backfill import Backfill, backfill_archive
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from tests.archived_forum import archived_forum
from tests.fakes.embedder import HashEmbedder
from tests.integration.crawl_kit import ServedForum, emptied, on_a_socket, stored
from tests.integration.crawl_process import PROFILE, RULES, FileClock
from tests.integration.store_data import frequencies_are_exact
from tests.shared import SHARED, needs_shared
from tests.simulated import START

ARCHIVE = SHARED / "data" / "urho3d" / "topics.jsonl.gz"
HEAD_TOPICS = 300
KILLS = 3
WINDOW = timedelta(seconds=10)


def head(folder: Path) -> Path:
    """The archive's first topics; their posts are numbered anew, without the gaps that the others leave."""
    with gzip.open(ARCHIVE) as lines:
        topics = [json.loads(line) for line in islice(lines, HEAD_TOPICS)]
    posts = [post for topic in topics for post in topic["post_stream"]["posts"]]
    for number, post in enumerate(sorted(posts, key=lambda post: int(post["id"])), start=1):
        post["id"] = number
    path = folder / "head.jsonl"
    path.write_text("\n".join(map(json.dumps, topics)), encoding="utf-8")
    return path


@needs_shared
@pytest.mark.heavy
@pytest.mark.chaos
async def test_the_first_topics_by_rest_and_by_file_are_the_same_rows(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    path = head(tmp_path)
    with path.open("rb") as lines:
        requests = await by_rest_as_by_file(path, lines, pool, database_url, tmp_path)
    assert requests < 100


@needs_shared
@pytest.mark.heavy
@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_the_whole_forum_by_rest_and_by_file_are_the_same_rows(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    with gzip.open(ARCHIVE) as lines:
        requests = await by_rest_as_by_file(ARCHIVE, lines, pool, database_url, tmp_path)
    assert requests < 1_500


async def by_rest_as_by_file(path: Path, lines: Iterable[bytes], pool: Pool, url: str, folder: Path) -> int:
    """How many requests the crawls took, after all was compared."""
    clock = FileClock(folder / "clock")
    forum = ServedForum(
        archived_forum(lines, base_url="http://127.0.0.1:4200"), lambda: START + timedelta(seconds=clock.now())
    )
    sent = []
    forum.watch = lambda count: sent.append(forum.clock())
    started = time.monotonic()
    with on_a_socket(forum) as base:
        for part in range(1, KILLS + 1):
            with crawling(base, url, clock) as running:
                after = len(forum.asked) + len(forum.forum.posts) // 50 // (KILLS + 1)
                while len(forum.asked) < after and running.poll() is None:
                    await asyncio.sleep(0.005)
                running.send_signal(signal.SIGKILL)
            assert running.returncode == -signal.SIGKILL, f"the crawl ended before it was killed for the {part}. time"
        with crawling(base, url, clock) as running:
            _, said = running.communicate(timeout=500)
        assert running.returncode == 0, said[-2000:]
    took = time.monotonic() - started
    print(f"{len(forum.asked)} requests in {took:.0f} s, of which the forum saw {clock.now():.0f} s pass")
    assert forum.refused == 0
    assert all(later - earlier > WINDOW for earlier, later in zip(sent, sent[50:], strict=False))
    by_rest = await stored(pool)
    assert await frequencies_are_exact(pool)
    await emptied(pool)
    corpus = CorpusStore(pool)
    at = Backfill(corpus, corpus, HashEmbedder(PROFILE), RULES, lambda *_: None)
    await backfill_archive(path, categories=None, vectors=None, at=at)
    by_file = await stored(pool)
    assert {table: len(rows) for table, rows in by_rest.items()} == {
        table: len(rows) for table, rows in by_file.items()
    }
    assert by_rest == by_file
    return len(forum.asked)


def crawling(forum: str, database: str, clock: FileClock) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "tests.integration.crawl_process", forum, database, str(clock.path)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("ARIANE_")}
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
