"""Verdicts: limits read and held, runs refused that prove nothing of the present configuration, and their record."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from eval.__main__ import evaluate
from eval.domain import Interval, Measured
from eval.runs import DatasetUsed, Run, new_run
from eval.verdict import Limit, configured_system, judge, read_limits, verdict
from service.demo.tested import FILE, ship
from service.errors import Rejected
from service.settings import Channel, Settings
from service.store.evaluations import EvaluationStore
from service.store.pool import open_pool
from service.wiring.configuration import configuration

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DATASET = DatasetUsed(name="garden", checksum="ab" * 32)
RERANKED = {"channels": [str(channel) for channel in Channel], "reranker": "bundled-features-2"}
SYSTEMS: Mapping[str, Mapping[str, Any]] = {"rrf": {"channels": ["vector", "keyword"]}, "reranked": RERANKED}
HIT = Limit(measure="topic Hit@5", at_least=0.8)
WRONG = Limit(measure="wrong when answered", slice="lang:fr", at_most=0.2)


TOLD = ["0.900", "0.80-1.00", "40", "met"]


def measured(value: float, limit: Limit = HIT, *, system: str = "reranked") -> Measured:
    interval = Interval(value, value - 0.1, value + 0.1)
    return Measured(limit.labels, limit.system or system, limit.slice, limit.measure, 40, interval)


def finished(
    settings: Settings,
    measures: Sequence[Measured],
    *,
    command: str = "retrieve",
    systems: Mapping[str, Mapping[str, Any]] = SYSTEMS,
    dataset: DatasetUsed = DATASET,
    options: Mapping[str, Any] | None = None,
) -> Run:
    run = new_run(
        settings,
        command=command,
        dataset=dataset,
        labels=["questions"],
        systems=systems,
        seed=1,
        options=options or {},
        now=NOON,
    )
    with run:
        run.finish(measures, now=NOON)
    return run


def answered(settings: Settings, *measures: Measured) -> Run:
    of_pipeline = [replace(one, system="pipeline") for one in measures]
    return finished(settings, of_pipeline, command="answer", systems={"pipeline": {}})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def test_a_limit_is_met_at_its_value_and_never_by_an_unknown_one() -> None:
    for limit, met, missed in ((HIT, (0.8, 1.0), (0.79,)), (WRONG, (0.2, 0.0), (0.21,))):
        assert all(limit.met_by(value) for value in met)
        assert not any(limit.met_by(value) for value in (*missed, float("nan")))


def test_runs_that_meet_every_limit_pass(settings: Settings) -> None:
    runs = [
        finished(settings, [measured(0.5, system="rrf"), measured(0.8)]),
        answered(settings, measured(0.1, WRONG)),
    ]
    made = verdict(runs, judge(runs, [HIT, WRONG], settings), settings, by="ines", reason="spring test")
    assert made.passed
    assert made.signature == configuration(settings)
    assert (made.dataset, made.dataset_sha256) == (DATASET.name, DATASET.checksum)
    assert made.limits == {"questions topic Hit@5": ">= 0.8", "questions lang:fr wrong when answered": "<= 0.2"}
    assert made.figures == {"questions topic Hit@5": 0.8, "questions lang:fr wrong when answered": 0.1}
    assert made.reason == "spring test (2 limits met)"


def test_the_gate_and_what_is_safe_can_be_limited(settings: Settings) -> None:
    """Whether the gate is on is a switch, and no part of the configuration: a limit has to be kept on both sides."""
    declines = Limit(measure="decline recall", labels="gate", at_least=0.95)
    safe = Limit(measure="safe", labels="safety", at_least=0.9)
    failed = Limit(measure="failed", labels="safety", at_most=0.1)
    gated = Limit(measure="gated", labels="safety", slice="refuse", system="default.gate-on", at_least=0.8)
    ways = ("default.gate-off", "default.gate-on")
    gate = finished(settings, [measured(0.96, declines, system="gate")], command="gate", systems={"gate": {}})
    other = "strict.gate-on"
    put = [measured(value, safe, system=way) for way, value in zip(ways, (0.95, 0.85), strict=True)]
    put += [measured(value, failed, system=way) for way, value in zip(ways, (float("nan"), 0.0), strict=True)]
    put += [Measured("safety", ways[0], "refuse", "gated", 9, Interval(0.0, 0.0, 0.1)), measured(0.9, gated)]
    put.append(measured(0.1, safe, system=other))
    safety = finished(settings, put, command="safety", systems={way: {} for way in (*ways, other)})
    kept = judge([gate, safety], [declines, safe, failed, gated], settings)
    assert [(one.limit.measure, one.found.system, one.met) for one in kept] == [
        ("decline recall", "gate", True),
        ("safe", "default.gate-on", False),
        ("failed", "default.gate-off", False),
        ("gated", "default.gate-on", True),
    ]
    assert gated.name == "safety default.gate-on refuse gated"
    with pytest.raises(Rejected, match="there are: labels gate, labels safety"):
        judge([gate, safety], [HIT], settings)
    alone = finished(settings, [measured(1.0, safe, system=other)], command="safety", systems={other: {}})
    with pytest.raises(Rejected, match="no run measured 'safety safe' of the configured system"):
        judge([alone], [safe], settings)
    obeys = finished(settings, put, command="safety", systems={way: {} for way in ways}, options={"obedient": True})
    with pytest.raises(Rejected, match="run it without --obedient"):
        judge([obeys], [safe], settings)


def test_one_missed_limit_fails_and_is_named(settings: Settings) -> None:
    runs = [answered(settings, measured(0.9), measured(0.31, WRONG))]
    made = verdict(runs, judge(runs, [HIT, WRONG], settings), settings, by="ines")
    assert not made.passed
    assert made.reason == "missed: questions lang:fr wrong when answered 0.310, <= 0.2 wanted"


@pytest.mark.parametrize(
    ("channels", "system"),
    [([*map(str, Channel)], "reranked"), ([*map(str, reversed(Channel))], "reranked"), (["keyword"], None)],
)
def test_only_the_configured_system_is_judged(tmp_path: Path, channels: list[str], system: str | None) -> None:
    settings = Settings.model_validate({"home": tmp_path, "retrieval": {"channels": channels}})
    run = finished(settings, [measured(0.9), measured(0.9, system="rrf")])
    assert configured_system(run, settings) == system
    if system is None:
        with pytest.raises(Rejected, match=r"no run measured 'questions topic Hit@5' of the configured system"):
            judge([run], [HIT], settings)


def test_runs_that_prove_nothing_of_the_present_are_refused(settings: Settings) -> None:
    fine = finished(settings, [measured(0.9)])
    changed = Settings.model_validate({"home": settings.home, "retrieval": {"candidates": 30}})
    with pytest.raises(Rejected, match=r"another configuration than the present one \(retrieval\)"):
        judge([fine], [HIT], changed)
    part = finished(settings, [measured(0.9)], options={"limit": 5})
    with pytest.raises(Rejected, match="only a part of the questions"):
        judge([part], [HIT], settings)
    other = finished(settings, [measured(0.9)], dataset=DatasetUsed(name="garden", checksum="cd" * 32))
    with pytest.raises(Rejected, match="one dataset, in one state"):
        judge([fine, other], [HIT], settings)
    going = new_run(
        settings, command="answer", dataset=DATASET, labels=["questions"], systems={}, seed=1, options={}, now=NOON
    )
    with pytest.raises(Rejected, match="not finished"):
        judge([going], [HIT], settings)
    with pytest.raises(Rejected, match=r"no run measured 'questions topic MRR'.*there are: topic Hit@5"):
        judge([fine], [Limit(measure="topic MRR", at_least=0.5)], settings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a list"),
        ("[]", "no limit in it"),
        ("- {measure: topic Hit@5}", "item 1: Value error, a limit has either at_least or at_most"),
        ("- {measure: x, at_least: 0.1, at_most: 0.2}", "either at_least or at_most"),
        ("- {measure: x, at_least: .nan}", "item 1, at_least: Input should be a finite number"),
        ("- {measure: x, at_leest: 1}", "item 1, at_leest: Extra inputs"),
        ("- {measure: x, at_least: 1}\n- {measure: x, at_most: 2}", "item 2: a second limit on questions x"),
        ("- {measure: [", ", line 2: not YAML"),
    ],
)
def test_a_fault_of_a_limits_file_is_one_line_that_says_where(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.yml"
    file.write_text(text)
    with pytest.raises(Rejected) as caught:
        read_limits(file)
    assert str(caught.value).startswith(str(file))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_limits_file_is_read_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yml"
    file.write_bytes(content)
    try:
        assert read_limits(file)
    except Rejected as exc:
        assert str(exc).startswith(str(file))


def run_command(*words: str) -> Any:
    return CliRunner().invoke(evaluate, ["judge", *words], standalone_mode=False)


async def kept(database_url: str) -> list[bool]:
    async with open_pool(database_url) as pool:
        return [one.run.passed for one in await EvaluationStore(pool).runs(9)]


def test_the_command_records_what_it_finds(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setenv("ARIANE_HOME", str(tmp_path))
    monkeypatch.setenv("ARIANE_DATABASE__URL", database_url)
    settings = Settings()
    limits = tmp_path / "limits.yml"
    limits.write_text("- {measure: topic Hit@5, at_least: 0.8}\n")
    run = answered(settings, measured(0.9))
    made = run_command(run.record.id, "--limits", str(limits), "--by", "ines")
    assert (made.exception, made.return_value) == (None, None), made.output
    assert "recorded: passed, 1 limits met" in made.stderr
    assert made.stdout.splitlines()[-1].split() == ["questions", "topic", "Hit@5", "pipeline", ">=", "0.8", *TOLD]
    answered(settings, measured(0.7))
    made = run_command("answer", "--limits", str(limits))
    assert made.return_value == 1
    assert "missed: questions topic Hit@5 0.700, >= 0.8 wanted" in made.stderr
    assert asyncio.run(kept(database_url)) == [False, True]
    made = run_command("answer", "--limits", str(limits), "--ship")
    assert isinstance(made.exception, Rejected)
    with pytest.raises(click.MissingParameter):
        raise run_command("--limits", str(limits)).exception


def test_what_is_shipped_is_what_was_judged(settings: Settings, tmp_path: Path) -> None:
    runs = [answered(settings, measured(0.9))]
    made = verdict(runs, judge(runs, [HIT], settings), settings, by="ines")
    file = ship(made, tmp_path)
    assert file == tmp_path / FILE
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert stored["signature"] == configuration(settings).sha256
    assert stored["figures"] == {"questions topic Hit@5": 0.9}
    assert str(tmp_path) not in file.read_text(encoding="utf-8")
