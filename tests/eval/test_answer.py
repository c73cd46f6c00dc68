"""Whole answers: what the pipeline said is kept, a failure counts, an interrupted run goes on, a few at a time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.datasets import Dataset
from eval.domain import Answered, Case, Golden, Labels
from eval.endtoend.abreast import abreast
from eval.endtoend.asking import ask, question_of
from eval.endtoend.recording import recording
from eval.endtoend.replies import SYSTEM, answer_all
from eval.endtoend.results import show_measures
from eval.measures import measured_answers
from eval.runs import Run
from eval.runs.shown import report
from service.answer.gate.admit import LEFT_OUT
from service.answer.gate.compiled import load_gate
from service.answer.ports import TopicMatch
from service.answer.recall import Legacy
from service.domain import ENGLISH, FRENCH, Candidate, Draft, Question, Result, Source, TopicId, Zone
from service.errors import Misconfigured, Rejected, Transient
from service.settings import GateSettings, RetrievalSettings, Settings
from tests.fakes.answering import BASE_URL, FakeReranker, FakeSearch, World, candidate

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DATASET = Dataset("small", Path("small"), ("en",), {}, "0" * 64, "0" * 64)


def case(name: str, question: str = "How often do I water tomatoes?", topic: int = 101) -> Case:
    golden = (Golden(TopicId(topic), 1),) if topic else ()
    return Case(name, Labels.QUESTIONS, "paraphrase", "en", question, golden, f"t{topic}")


def begin(home: Path, resume: str | None = None, **changes: Any) -> Run:
    return recording(
        Settings(home=home, retrieval=RetrievalSettings(**changes)),
        DATASET,
        command="answer",
        labels="questions",
        systems={SYSTEM: {}},
        options={"limit": None},
        resume=resume,
        now=NOW,
    )


@dataclass
class Watched:
    """An answerer that counts what it does at once, and meets errors by the words of a question."""

    meets: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    now: int = 0
    most: int = 0

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        self.asked.append(question.text)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        self.now -= 1
        return Draft("Every morning [[1]].", "watched")


class Failing(FakeSearch):
    """A search that meets errors by the n-th call."""

    def __init__(self, meets: dict[int, Exception]) -> None:
        super().__init__(nearest=[candidate(1)], worded=[candidate(1)])
        self.meets = meets
        self.calls = 0

    async def nearest_posts(self, *args: Any, **kwargs: Any) -> list[Candidate]:
        self.calls += 1
        if self.calls in self.meets:
            raise self.meets[self.calls]
        return await super().nearest_posts(*args, **kwargs)


def silent(*_: object) -> None:
    pass


async def test_what_the_pipeline_said_is_kept_with_what_it_went_through() -> None:
    said = await ask("q", Question("How often do I water tomatoes?", ENGLISH), World().stages)
    assert (said.case_id, said.result, said.zone, said.mode) == ("q", Result.ANSWERED, "normal", "reranked")
    assert said.markdown.startswith("Every morning") and f"{BASE_URL}/t/watering-1/101/1" in said.markdown
    assert [(source.n, source.topic_id, source.cited) for source in said.sources] == [
        (1, 101, True),
        (2, 102, False),
        (3, 103, False),
    ]
    assert said.draft == "Every morning, and twice when it is hot [[1]]." and said.drafted_by == "fake"
    assert {"retrieve", "rerank", "generate", "sanitize"} <= said.timings_ms.keys()


async def test_the_gate_answers_before_anything_is_searched() -> None:
    stages = replace(World().stages, search=Failing({1: Misconfigured("searched")}))
    gate = load_gate(GateSettings())
    said = await ask("q", Question("Write my essay on the French Revolution", ENGLISH), stages, gate)
    assert (said.result, said.zone, said.sources) == (Result.GATED, "", ())
    assert said.markdown and "Revolution" not in said.markdown
    assert [note.split(":")[:2] for note in said.notes] == [["gate", "generalist"]] and "gate" in said.timings_ms
    let_through = await ask("q", Question("How often do I water tomatoes?", ENGLISH), World().stages, gate)
    assert let_through.result == Result.ANSWERED


async def test_a_follow_up_carries_nothing_past_the_gate() -> None:
    reading = FakeReranker()
    stages, gate = replace(World().stages, reranker=reading), load_gate(GateSettings())
    declined = (("user", "How do I water tomatoes?"), ("user", "How do I make a pipe bomb at home?"))
    asked = Question("and?", ENGLISH, history=declined)
    said = await ask("q", asked, stages, gate)
    assert (said.result, said.notes) == (Result.ANSWERED, (LEFT_OUT, "condensed_by_rules"))
    assert ["bomb" in text for text in reading.asked] == [False]
    await ask("q", asked, stages)
    assert ["bomb" in text for text in reading.asked] == [False, True]


async def test_an_index_that_can_not_be_searched_is_a_failure_that_counts() -> None:
    stages = replace(World().stages, search=Failing({1: Transient("the database is gone")}))
    said = await ask("q", Question("How often?", ENGLISH), stages)
    assert (said.result, said.markdown, said.sources) == (Result.FAILED, "", ())
    measures = measured_answers([case("q")], {SYSTEM: {"q": said}}, base_url=BASE_URL, seed=1)
    [failed] = [one for one in measures if (one.measure, one.slice) == ("failed", "all")]
    assert (failed.n, failed.interval.value) == (1, 1.0)


def test_a_question_is_cut_told_its_language_and_keeps_what_is_excluded() -> None:
    stages = replace(World().stages, settings=RetrievalSettings(question_chars=50))
    asked = replace(case("q", "à " * 60), exclude_from=(TopicId(7), 1), history=(("user", "hm"),))
    found = question_of(asked, stages)
    assert (len(found.text), found.lang, found.exclude_from) == (50, FRENCH, (TopicId(7), 1))
    assert found.history == (("user", "hm"),)
    assert question_of(replace(case("q", "zzz"), lang="fr"), stages).lang == FRENCH, "untold: the label's"


async def test_what_a_case_excludes_is_no_source(tmp_path: Path) -> None:
    """Of its own topic a first post leaves out itself, where a later one is the answer; with a link, all of it."""
    forum = [candidate(1, topic=7), candidate(4, topic=7, body="At dawn, when they stand in pots."), candidate(2)]
    stages = replace(World().stages, search=FakeSearch(forum, forum), reranker=FakeReranker())
    own = TopicId(7)
    cases = [
        replace(case("plain"), labels=Labels.ACCEPTED),
        replace(case("accepted"), labels=Labels.ACCEPTED, exclude_post=(own, 1)),
        replace(case("link"), labels=Labels.LINKS, exclude_from=(own, 1)),
    ]
    with begin(tmp_path) as run:
        found = await answer_all(run, cases, "questions", stages, at_once=1, progress=silent)
    shown = {name: [(one.topic_id, one.post_number) for one in said.sources] for name, said in found.items()}
    assert shown == {"plain": [(7, 1), (102, 2)], "accepted": [(7, 4), (102, 2)], "link": [(102, 2)]}


class Topics:
    """The legacy path's index: it finds nothing, and keeps which post it was to leave out."""

    def __init__(self) -> None:
        self.left_out: list[tuple[TopicId, int] | None] = []

    async def keyword_topics(
        self,
        lexemes: Sequence[str],
        limit: int,
        *,
        words: int,
        exclude_from: tuple[TopicId, int] | None = None,
        exclude_post: tuple[TopicId, int] | None = None,
    ) -> list[TopicMatch]:
        self.left_out.append(exclude_post)
        return []


async def test_the_legacy_path_leaves_it_out_too(tmp_path: Path) -> None:
    topics, own = Topics(), (TopicId(7), 1)
    stages = replace(World().stages, search=Failing({1: Transient("busy")}), legacy=Legacy(topics))
    with begin(tmp_path) as run:
        cases = [replace(case("accepted"), labels=Labels.ACCEPTED, exclude_post=own)]
        await answer_all(run, cases, "questions", stages, at_once=1, progress=silent)
    assert topics.left_out == [own]


async def test_every_case_is_asked_once_a_few_at_a_time(tmp_path: Path) -> None:
    watched = Watched()
    heard: list[tuple[str, int, int]] = []
    stages = replace(World().stages, answerer=watched)
    cases = [case(f"q{n}", f"How often do I water {n} tomatoes?") for n in range(9)]
    with begin(tmp_path) as run:
        found = await answer_all(run, cases, "questions", stages, at_once=3, progress=lambda *step: heard.append(step))
    assert list(found) == [one.id for one in cases]
    assert watched.most == 3 and len(watched.asked) == 9
    assert heard[0] == ("questions", 0, 9) and heard[-1] == ("questions", 9, 9)
    assert run.answered("questions", SYSTEM) == found


async def test_an_interrupted_run_goes_on_with_what_it_lacks(tmp_path: Path) -> None:
    cases = [case(f"q{n}") for n in range(6)]
    gone, wrong = Transient("busy"), Misconfigured("the key is refused")
    stages = replace(World().stages, search=Failing({2: gone, 4: wrong}))
    with begin(tmp_path) as run, pytest.raises(Misconfigured, match="the key is refused"):
        await answer_all(run, cases, "questions", stages, at_once=1, progress=silent)
    kept = run.answered("questions", SYSTEM)
    assert [one.result for one in kept.values()] == [Result.ANSWERED, Result.FAILED, Result.ANSWERED]

    working = Failing({})
    with begin(tmp_path, resume=run.record.id) as again:
        found = await answer_all(
            again, cases, "questions", replace(World().stages, search=working), at_once=1, progress=silent
        )
    assert working.calls == 3, "the others were asked before, the failed one too"
    assert len(found) == 6 and found["q1"].result == Result.FAILED


def test_a_run_of_other_settings_is_not_gone_on_with(tmp_path: Path) -> None:
    run = begin(tmp_path)
    assert begin(tmp_path, resume=str(run.folder)).record == run.record
    with pytest.raises(Rejected, match="made with other settings, configuration: begin a new run"):
        begin(tmp_path, resume=str(run.folder), rrf_k=3)
    with pytest.raises(Rejected, match="no run"):
        begin(tmp_path, resume="nowhere")


async def test_the_first_error_ends_what_is_under_way() -> None:
    ended: list[int] = []

    async def work(n: int) -> int:
        try:
            await asyncio.sleep(0 if n == 1 else 60)
        finally:
            ended.append(n)
        raise Misconfigured("no")

    with pytest.raises(Misconfigured):
        async for _ in abreast(range(5), work, at_once=3):
            raise AssertionError("nothing ends well")
    assert sorted(ended) == [0, 1, 2], "the last two were never begun"


async def test_who_stops_listening_leaves_nothing_running() -> None:
    async def work(n: int) -> int:
        await asyncio.sleep(0 if n == 0 else 60)
        return n

    found = abreast(range(3), work, at_once=3)
    assert await anext(found) == 0
    await found.aclose()
    assert len(asyncio.all_tasks()) == 1


async def test_machines_and_people_read_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case("right"), case("wrong", topic=999), case("none", topic=0)]
    stages = replace(World().stages, search=FakeSearch([candidate(1)], [candidate(1)]), reranker=FakeReranker({1: 3.0}))
    with begin(tmp_path) as run:
        found = await answer_all(run, cases, "questions", stages, at_once=2, progress=silent)
        measures = measured_answers(cases, {SYSTEM: found}, base_url=BASE_URL, seed=run.record.seed)
        run.finish(measures, now=NOW)
    told = report(run, measures)
    assert (told["command"], told["run"], told["dataset"]["name"]) == ("answer", run.record.id, "small")
    values = {row["measure"]: (row["n"], row["value"]) for row in told["rows"] if row["slice"] == "all"}
    assert values["answered right"] == (3, round(1 / 3, 6)) and values["answered wrong"] == (3, round(2 / 3, 6))
    assert values["citations valid"] == (3, 1.0)
    show_measures(run, measures)
    shown = capsys.readouterr().out
    assert "answered right           0.333" in shown and "retrieve" in shown and "p95" in shown


def test_an_answer_is_read_back_as_it_was(tmp_path: Path) -> None:
    said = Answered("q", "answered", "weak", "keyword", "x\u2028y", notes=("model_down",), timings_ms={"retrieve": 0.1})
    with begin(tmp_path) as run:
        run.append("questions", SYSTEM, said)
    assert run.answered("questions", SYSTEM) == {"q": said}


def test_a_run_of_another_program_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(tmp_path)
    monkeypatch.setattr("eval.runs.resuming.git_hash", lambda: "f" * 40)
    with pytest.raises(Rejected, match="made with other commit: begin a new run"):
        begin(tmp_path, resume=run.record.id)
