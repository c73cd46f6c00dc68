"""A dataset drafted from an index on a real Postgres: an index filled from it is the same, nothing private is in it."""

import gzip
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.datasets import load_dataset, read_cases
from eval.datasets.archive import read_archive
from eval.demo import FOLDER
from eval.demo.build import BASE_URL
from eval.domain import Labels
from eval.new.asked import Wanted
from eval.new.from_forum import Made, Order, draft_dataset
from service.answer.pipeline import Stages
from service.domain import CategoryId, EmbeddingProfile
from service.errors import Misconfigured, Rejected
from service.inference.language import LanguageDetector
from service.ingest.archive import read_categories
from service.ingest.backfill import Backfill, backfill_archive
from service.ingest.eligibility import IndexRules
from service.settings import ForumSettings, RetrievalSettings, Settings
from service.store.corpus import CorpusStore
from service.store.flags import FlagStore
from service.store.migrate import migrate
from service.store.pool import Pool, open_pool
from service.store.search import SearchStore
from service.wiring.answering import Answering
from service.wiring.embedders import Embedders
from tests.fakes.answering import FakeAnswerer, FakeReranker
from tests.fakes.embedder import HashEmbedder
from tests.integration.store_data import rows

PROFILE = EmbeddingProfile("toy", 100, 1, dimensions=8, window_tokens=64)
ASKED = (Wanted(id="q1", question="When do I plant garlic?"), Wanted(id="q2", question="Comment semer les tomates ?"))
SHOWN = (
    "SELECT * FROM public_posts ORDER BY post_id",
    "SELECT post_id, user_id, post_type, updated_at, reply_to_post_number, length FROM posts JOIN public_posts"
    " USING (post_id) ORDER BY 1",
    "SELECT topic_id, title, slug, category_id, archetype, closed, archived, tags FROM topics WHERE title <> ''"
    " ORDER BY 1",
    "SELECT * FROM categories WHERE NOT read_restricted ORDER BY 1",
    "SELECT * FROM postings ORDER BY lexeme, post_id",
    "SELECT post_id, passage, digest, embedding::text FROM embeddings ORDER BY 1",
)


def answering(pool: Pool) -> Answering:
    embedder = HashEmbedder(PROFILE)
    return Answering(
        settings=Settings(forum=ForumSettings(base_url=BASE_URL)),
        pool=pool,
        corpus=CorpusStore(pool),
        embedder=embedder,
        stages=Stages(
            embedder=embedder,
            search=SearchStore(pool),
            reranker=FakeReranker(),
            answerer=FakeAnswerer(),
            detect_language=LanguageDetector(),
            settings=RetrievalSettings(),
            base_url=BASE_URL,
        ),
        up={},
        embedders=Embedders([embedder], FlagStore(pool)),
    )


def silent(step: str, done: int, total: int) -> None:
    pass


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def fill(at: Answering, folder: Path) -> None:
    dataset = load_dataset(folder)
    assert dataset.site
    backfill = Backfill(at.corpus, at.corpus, at.embedder, IndexRules(frozenset(), index_banners=False), silent)
    categories = read_categories(dataset.site)
    vectors = dataset.vectors if folder != FOLDER else None  # the demo's are of the real embedder
    await backfill_archive(dataset.topics, categories=categories, vectors=vectors, at=backfill)


@pytest.fixture
async def at(pool: Pool) -> Answering:
    """The index of the demo forum."""
    here = answering(pool)
    await fill(here, FOLDER)
    return here


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[Answering]:
    """An index with nothing in it."""
    await migrate(empty_database_url)
    async with open_pool(empty_database_url) as pool:
        yield answering(pool)


async def draft(at: Answering, folder: Path, **changes: Any) -> Made:
    order = Order(out=folder, archive=None, questions=ASKED, titles=3, depth=4)
    return await draft_dataset(at, replace(order, **changes), silent)


async def test_an_index_filled_from_the_draft_is_the_same(at: Answering, empty: Answering, tmp_path: Path) -> None:
    made = await draft(at, tmp_path / "plot")
    dataset = load_dataset(tmp_path / "plot")
    assert dataset.warnings == () and set(dataset.languages) == {"en", "fr"} and made.posts == made.vectors == 218
    await fill(empty, dataset.folder)
    for query in SHOWN:
        assert await rows(empty.pool, query) == await rows(at.pool, query), query
    again = await draft(empty, tmp_path / "again" / "plot")
    assert (again.posts, again.vectors) == (made.posts, made.vectors)
    second = load_dataset(tmp_path / "again" / "plot")
    assert gzip.decompress(second.topics.read_bytes()) == gzip.decompress(dataset.topics.read_bytes())


async def test_natural_labels_come_from_the_archive_what_was_written_out_from_the_index(
    at: Answering, tmp_path: Path
) -> None:
    alone = await draft(at, tmp_path / "alone")
    assert (alone.links, alone.accepted) == (2, 0)  # the demo's members write addresses out
    both = await draft(at, tmp_path / "both", archive=FOLDER / "topics.jsonl.gz")
    assert (both.links, both.accepted) == (2, 30)
    for labels in (Labels.LINKS, Labels.ACCEPTED):
        assert read_cases(load_dataset(tmp_path / "both"), labels) == read_cases(load_dataset(FOLDER), labels)


async def test_questions_wait_for_a_judge_with_their_candidates(at: Answering, tmp_path: Path) -> None:
    made = await draft(at, tmp_path / "plot")
    dataset = load_dataset(tmp_path / "plot")
    assert made.questions == 2 and made.notes == ()
    with pytest.raises(Rejected, match="2 questions wait for a person"):
        read_cases(dataset, Labels.QUESTIONS)
    text = dataset.files["questions.yml"].read_text()
    (dataset.folder / "questions.yml").write_text(text.replace("null}", "1}"))
    (dataset.folder / "manifest.yml").unlink()
    first, second = read_cases(load_dataset(dataset.folder), Labels.QUESTIONS)
    assert (first.lang, second.lang) == ("en", "fr")
    assert any(golden.topic_id == 109 for golden in first.golden)
    assert any(golden.topic_id == 112 for golden in second.golden)
    assert 4 <= len(first.golden) <= 12


async def test_without_questions_titles_are_a_start(at: Answering, tmp_path: Path) -> None:
    await draft(at, tmp_path / "a", questions=())
    await draft(at, tmp_path / "b", questions=())
    text = (tmp_path / "a" / "questions.yml").read_text()
    assert text == (tmp_path / "b" / "questions.yml").read_text()
    assert text.count("- id:") == 3 and "ask it in other words" in text


async def test_what_became_private_is_in_no_file(at: Answering, tmp_path: Path) -> None:
    categories = await at.corpus.categories()
    closed = [replace(one, read_restricted=one.id == 5) for one in categories.values()]
    await at.corpus.put_categories(closed)
    made = await draft(at, tmp_path / "plot", questions=(), titles=100, archive=FOLDER / "topics.jsonl.gz")
    dataset = load_dataset(tmp_path / "plot")
    private = {read.topic.id for read in read_archive(FOLDER / "topics.jsonl.gz") if read.topic.category_id == 5}
    kept = {read.topic.id for read in read_archive(dataset.topics)}
    assert private and kept and not private & kept
    assert CategoryId(5) not in {one.id for one in read_categories(dataset.folder / "site.json")}
    with np.load(dataset.folder / "vectors.npz") as vectors:
        assert len(vectors["topic_id"]) == made.posts and not private & set(vectors["topic_id"].tolist())
    accepted = read_cases(dataset, Labels.ACCEPTED)
    assert accepted and not private & {int(case.cluster) for case in accepted}
    drafted = dataset.files["questions.yml"].read_text()
    assert not any(f"topic: {topic_id}," in drafted or f"title-{topic_id}" in drafted for topic_id in private)


async def test_a_draft_is_written_whole_or_not_at_all(at: Answering, empty: Answering, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="fill it with `ariane backfill`"):
        await draft(empty, tmp_path / "plot")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\n")
    with pytest.raises(Rejected, match="line 1"):
        await draft(at, tmp_path / "plot", archive=broken)
    with pytest.raises(Rejected, match="can't be written: Not a directory: choose another"):
        await draft(at, broken / "plot")
    assert names_in(tmp_path) == {"broken.jsonl"}
    await draft(at, tmp_path / "plot")
    with pytest.raises(Rejected, match="is there already"):
        await draft(at, tmp_path / "plot")


async def test_a_draft_can_be_written_where_one_stands(
    at: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = await draft(at, Path())
    assert made.manifest.name == tmp_path.name and "questions.yml" in names_in(tmp_path)


async def test_without_vectors_there_is_no_file_of_them(at: Answering, tmp_path: Path) -> None:
    await rows(at.pool, "DELETE FROM embeddings RETURNING post_id")
    made = await draft(at, tmp_path / "plot")
    assert made.vectors == 0 and load_dataset(tmp_path / "plot").vectors is None
