"""The bench of searches: every system on the real SQL in one run, with nothing left behind."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from service.bench.search import Build, bench_search
from service.bench.vectors import read_profile, synthetic
from service.commands.bench import command
from service.domain import IndexKind
from service.errors import Rejected
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from tests.integration.scratch import is_gone, named
from tests.integration.store_data import PROFILE, PUBLIC, TOPIC, indexed, passage, post

KINDS = (IndexKind.HNSW_HALFVEC, IndexKind.HNSW_BINARY)


async def test_all_systems_find_the_same_where_an_index_can_see_everything(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, name = list[str](), named(monkeypatch)
    result = await bench_search(
        database_url,
        synthetic(700, 32, 6, within=0.65, between=0.45),
        sizes=[300, 700],
        kinds=KINDS,
        category_percent=40,
        build=Build(0, "64MB"),
        about={"vectors": "made"},
        say=said.append,
    )
    assert result["bench"] == "search"
    assert result["settings"]["shared_buffers"]
    assert result["settings"]["dimensions"] == 32
    rows = {(row["system"], row["posts"]): row for row in result["rows"]}
    for size in (300, 700):
        for system in ("numpy, brute force", "exact scan", "exact scan, category"):
            assert rows[system, size]["recall"] == pytest.approx(1, abs=0.01)  # posts of one cosine, within a rounding
        assert rows["hnsw_halfvec, ef_search 1000", size]["recall"] >= 0.99
        assert rows["hnsw_binary, 1000 rescored", size]["recall"] >= 0.99  # more than there are
        assert rows["hnsw_halfvec, ef_search 400, category", size]["least_found"] == 25
        assert rows["hnsw_binary, 200 rescored", size]["index_mb"] > 0
    assert all(0 < row["p50_ms"] <= row["p95_ms"] for row in result["rows"])
    chosen = [row for row in result["rows"] if row.get("chosen")]
    assert [(row["posts"], row["recall"] >= 0.99) for row in chosen] == [(700, True)]
    assert result["ratio"] == pytest.approx(chosen[0]["exact_p50_ms"] / chosen[0]["p50_ms"], abs=0.01)
    assert any("hnsw_binary built in" in line for line in said)
    assert is_gone(name, database_url)


async def test_the_vectors_of_a_stored_profile_can_be_measured(pool: Pool) -> None:
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    await corpus.put_posts([indexed(post(n), "red") for n in range(1, 31)])
    chance = np.random.default_rng(5)
    made = [passage(post(n), *chance.standard_normal(4), ordinal=m) for n in range(1, 31) for m in range(2)]
    await corpus.put_passages(PROFILE, made)
    vectors = await read_profile(pool, PROFILE.name, 5)
    assert (len(vectors.stored), len(vectors.questions), set(vectors.topics)) == (25, 5, {TOPIC.id})
    with pytest.raises(Rejected, match="other/1"):
        await read_profile(pool, "other/1.1", 5)


def run(database_url: str, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["search", *arguments], env={"ARIANE_DATABASE__URL": database_url})


def test_the_command_prints_one_object_and_draws(database_url: str, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    made = ("--posts", "300", "--dimensions", "16", "--queries", "3", "--like", "mild")
    ended = run(database_url, *made, "--plot", str(plot), "--json")
    assert ended.exit_code == 0, ended.stderr
    assert json.loads(ended.stdout)["settings"]["vectors"] == "made, cosines 0.65 within topics, 0.45 between"
    assert plot.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--sizes", "5,x"), "--sizes '5,x'"),
        (("--within", "0.5"), "--within and --between"),
        (("--within", "0.5", "--between", "0.6", "--posts", "100"), "between <= within"),
    ],
)
def test_bad_input_is_told_in_one_line(database_url: str, arguments: tuple[str, ...], says: str) -> None:
    ended = run(database_url, *arguments)
    assert isinstance(ended.exception, Rejected)
    assert says in str(ended.exception)
