"""Runs on disk: read back as written, cut lines dropped, bad folders refused in one line, one writer at a time."""

import json
from datetime import UTC, datetime
from math import isnan, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.domain import Answered, Hit, Interval, Measured, Retrieved
from eval.runs import DatasetUsed, Run, new_run, open_run, settings_fingerprint
from eval.runs.lines import as_line, cut_to_whole_lines, read_lines
from eval.runs.record import Measures, RunRecord, read_entry
from service.domain import TopicId
from service.errors import Rejected
from service.settings import DatabaseSettings, ModelSettings, RetrievalSettings, Settings
from service.settings.models import EmbedderSettings

pytestmark = pytest.mark.usefixtures("no_environment")

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
FOUND = Retrieved(
    "Q-1",
    (Hit(TopicId(7), 2, 0.1 + 0.2), Hit(TopicId(8), 1, -3.5e-7)),
    ("how?",),
    "reranked",
    "weak",
    (1.5, None),
    (None, 0.25),
    {"rerank": 1.25},
)

finite = st.floats(allow_nan=False, allow_infinity=False)
hits = st.builds(Hit, st.integers(1, 2**62), st.integers(1, 2**31), finite)
retrieved = st.builds(
    Retrieved,
    st.text(min_size=1),
    st.lists(hits, max_size=4).map(tuple),
    st.lists(st.text(), max_size=2).map(tuple),
    st.text(),
    st.text(),
    st.lists(st.none() | finite, max_size=3).map(tuple),
    st.lists(st.none() | finite, max_size=3).map(tuple),
    st.dictionaries(st.text(), finite, max_size=3),
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path)


def make_run(home: Path) -> Run:
    return new_run(
        Settings(home=home),
        command="retrieve",
        dataset=DatasetUsed(name="forum", checksum="0" * 64),
        labels=["questions"],
        systems={"bm25": {"k1": 1.5}, "dense": {}},
        seed=1,
        options={"followups": "full"},
        now=NOW,
    )


def test_what_is_appended_is_read_back(run: Run) -> None:
    with run:
        run.append("questions", "bm25", FOUND)
    again = open_run(run.folder)
    assert again.record == run.record
    assert again.retrieved("questions", "bm25") == {"Q-1": FOUND}
    assert again.retrieved("questions", "dense") == {}


def test_two_runs_of_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    assert [make_run(tmp_path).record.id for _ in range(2)] == [
        "20261130-120000-retrieve",
        "20261130-120000-retrieve-2",
    ]


def test_a_cut_line_is_dropped_and_the_next_starts_on_its_own(run: Run) -> None:
    path = run.folder / "questions.bm25.jsonl"
    path.write_bytes(as_line(FOUND) + as_line(FOUND)[:-9])
    assert list(run.retrieved("questions", "bm25")) == ["Q-1"]
    with run:
        run.append("questions", "bm25", Retrieved("Q-2", ()))
    assert list(run.retrieved("questions", "bm25")) == ["Q-1", "Q-2"]
    assert path.read_bytes() == as_line(FOUND) + as_line(Retrieved("Q-2", ()))


@given(whole=st.lists(st.binary(max_size=30), max_size=4), cut=st.binary(max_size=30))
def test_only_whole_lines_are_kept(tmp_path_factory: pytest.TempPathFactory, whole: list[bytes], cut: bytes) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.jsonl"
    lines = b"".join(line.replace(b"\n", b"") + b"\n" for line in whole)
    path.write_bytes(lines + cut.replace(b"\n", b""))
    cut_to_whole_lines(path)
    assert path.read_bytes() == lines


def test_of_a_case_that_is_there_twice_the_first_counts(run: Run) -> None:
    (run.folder / "questions.bm25.jsonl").write_bytes(as_line(FOUND) + as_line(Retrieved("Q-1", ())))
    assert run.retrieved("questions", "bm25") == {"Q-1": FOUND}


def test_measures_are_stored_and_the_run_is_finished(run: Run) -> None:
    rows = [Measured("questions", "bm25", "all", "topic Hit@5", 96, Interval(0.302, 0.21, 0.4))]
    run.finish(rows, now=NOW)
    again = open_run(run.folder)
    assert again.measures() == rows
    assert again.record.finished == NOW


def test_an_end_that_nothing_is_known_of_stays_unknown(run: Run) -> None:
    run.finish([Measured("questions", "bm25", "all", "post Hit@1", 1, Interval(1.0, nan, nan))], now=NOW)
    interval = open_run(run.folder).measures()[0].interval
    assert (interval.value, isnan(interval.low), isnan(interval.high)) == (1.0, True, True)


def test_trec_files_are_as_the_field_reads_them(run: Run) -> None:
    run.write_trec("questions", "bm25", [FOUND])
    assert (run.folder / "questions.bm25.trec").read_text() == (
        "Q-1 Q0 7.2 1 0.30000000000000004 20261130-120000-retrieve.bm25\n"
        "Q-1 Q0 8.1 2 -3.5e-07 20261130-120000-retrieve.bm25\n"
    )


def test_a_run_has_one_writer(run: Run) -> None:
    with run, pytest.raises(Rejected, match="another process is writing"), open_run(run.folder):
        pass
    with open_run(run.folder) as again:
        again.append("questions", "bm25", FOUND)


def test_nothing_is_written_outside_the_block(run: Run) -> None:
    with pytest.raises(RuntimeError):
        run.append("questions", "bm25", FOUND)


def test_a_system_the_run_lacks_is_refused(run: Run) -> None:
    with pytest.raises(Rejected, match="no questions of rrf"):
        run.retrieved("questions", "rrf")


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (None, "no run"),
        ("", "run.json"),
        ("[1]", "run.json"),
        ('{"schema": 2}', "run.json, schema"),
        ("{", "run.json"),
    ],
)
def test_a_bad_folder_is_refused_in_one_line(head: str | None, says: str, tmp_path: Path) -> None:
    if head is not None:
        (tmp_path / "run.json").write_text(head)
    with pytest.raises(Rejected, match=says) as caught:
        open_run(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "-x"])
def test_a_name_never_leads_out_of_the_folder(name: str, run: Run) -> None:
    head = json.loads((run.folder / "run.json").read_text())
    head["systems"] = {name: {}}
    (run.folder / "run.json").write_text(json.dumps(head))
    with pytest.raises(Rejected, match="systems"):
        open_run(run.folder)


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b"\n",
        b'{"case_id": "a", "hits": [[1, 2, NaN]]}\n',
        b'{"case_id": "a", "hits": [{"topic_id": 1, "post_number": 1, "score": NaN}]}\n',
        b'{"case_id": "a", "hits": [], "timings_ms": {"x": Infinity}}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_bad_line_is_named(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(as_line(FOUND) + line)
    with pytest.raises(Rejected, match=r"x\.jsonl, line 2"):
        read_lines(path, Retrieved)


@given(st.lists(retrieved, max_size=3))
def test_any_result_is_read_back_as_it_was(items: list[Retrieved]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        path.write_bytes(b"".join(map(as_line, items)))
        assert read_lines(path, Retrieved) == items


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_readers_refuse_or_read_whatever_is_in_a_file(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_bytes(content)
        for model in (RunRecord, Measures):
            with pytest.raises(Rejected):
                read_entry(path, model)
        for kind in (Retrieved, Answered):
            try:
                read_lines(path, kind)
            except Rejected as exc:
                assert str(path) in str(exc)


def test_the_fingerprint_knows_what_decides_figures_and_no_secret(tmp_path: Path) -> None:
    base = settings_fingerprint(Settings(home=tmp_path))
    assert settings_fingerprint(Settings(home=tmp_path / "x", database=DatabaseSettings(pool_max_size=3))) == base
    keyed = ModelSettings(embedder=EmbedderSettings(url="http://a", api_key="secret"))
    assert settings_fingerprint(Settings(home=tmp_path, models=keyed)) == base
    assert settings_fingerprint(Settings(home=tmp_path, retrieval=RetrievalSettings(rrf_k=61))) != base
    other = ModelSettings(embedder=EmbedderSettings(profile="bge-m3"))
    assert settings_fingerprint(Settings(home=tmp_path, models=other)) != base
