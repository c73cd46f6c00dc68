"""The command line as scripts meet it: exit statuses, one line for each fault, and nothing else on standard output."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.profiles import ProfileStore
from service.wiring.services import open_services
from tests.e2e.loop import fill_index
from tests.simulated import tiny_forum

NO_DATABASE = "postgresql://postgres@127.0.0.1:1/none"
SECRET = "a-secret-of-enough-characters"
ANSWER_KEYS = {"outcome", "zone", "answer", "queries", "mode", "sources", "timings_ms"}
ENDINGS = {"yaml", "json", "jsonl"}
SOURCE_KEYS = {"n", "kind", "topic_id", "post_number", "title", "url", "cosine", "logit", "cited"}


def run(
    *words: str, url: str = NO_DATABASE, stdin: str = "", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """`ariane WORDS` in a process of its own, which sees no other settings than these."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ARIANE_")}
    return subprocess.run(
        [sys.executable, "-m", "service", *words],
        env=bare | {"ARIANE_DATABASE__URL": url} | dict(env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def refused(done: "subprocess.CompletedProcess[str]", *says: str, status: int = 2) -> None:
    """It ended with that status, said nothing on stdout, and one line that holds these words on stderr."""
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    (line,) = done.stderr.splitlines()
    for words in says:
        assert words in line


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Input files, one fault each."""
    folder = tmp_path_factory.mktemp("input")
    texts = {
        "port.yaml": "web: {port: lots}",
        "unknown.yaml": "forum: {base_ulr: https://forum.example}",
        "broken.yaml": "web: {port: [",
        "shape.json": '{"role": "user", "text": "hi"}',
        "role.json": '[{"role": "user", "text": "hi"}, {"role": "admin", "text": "hi"}]',
        "history.json": '[{"role": "user", "text": "How do I bleed a radiator?"}, {"role": "bot", "text": "See [1]."}]',
        "topics.jsonl": '{"id": 1}',
        "site.json": '{"categories": []}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nonsense"], ["ariane: No such command 'nonsense'"]),
        (["ask"], ["ariane ask: Missing argument 'QUESTION'"]),
        (["ask", "--lang", "de", "hi"], ["ariane ask: ", "--lang", "'de' is none of en, fr"]),
        (["ask", "--history", "shape.json", "hi"], ["shape.json", "expected a list of {role, text}"]),
        (["ask", "--history", "role.json", "hi"], ["role.json, turn 2", "role: user|bot"]),
        (["ask", "--config", "port.yaml", "hi"], ["port.yaml", "web.port"]),
        (["flags", "--config", "port.yaml"], ["port.yaml", "web.port"]),
        (["flags", "--config", "port.yaml", "set", "answering", "on", "--why", "x"], ["port.yaml", "web.port"]),
        (["migrate", "--config", "unknown.yaml"], ["unknown.yaml", "forum.base_ulr"]),
        (["migrate", "--config", "broken.yaml"], ["broken.yaml", "line 1"]),
        (["migrate", "--config", "none.yaml"], ["none.yaml", "No such file"]),
        (["flags", "set", "nothing", "on", "--why", "x"], ["'nothing' is not one of"]),
        (["flags", "set", "answering", "on"], ["Missing option '--why'"]),
        (["backfill", "--archive", "topics.jsonl"], ["--site FILE, or --public"]),
        (["backfill", "--archive", "topics.jsonl", "--public", "--site", "site.json"], ["--site FILE, or --public"]),
        (["backfill", "--archive", "topics.jsonl", "--site", "site.json"], ["site.json", "names no category"]),
        (["sanitize"], ["Missing option '--jsonl'"]),
        (["demo", "--forum-port", "99999"], ["--forum-port", "99999"]),
    ],
    ids=lambda value: " ".join(value) if value and "--" in " ".join(value) else None,
)
def test_bad_input_is_one_line_that_says_what_and_where(words: list[str], says: list[str], files: Path) -> None:
    refused(run(*(str(files / word) if word.partition(".")[2] in ENDINGS else word for word in words)), *says)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"ARIANE_WEB__PROT": "1"}, ["ARIANE_WEB__PROT: web.prot"]),
        ({"ARIANE_WEB__PORT": "x"}, ["ARIANE_WEB__PORT: web.port"]),
        ({"ARIANE_WEBHOOK__SECRETS": "secret"}, ["webhook", """'["..."]'"""]),
        ({"ARIANE_DATABASE__URL": "nonsense"}, ["database.url"]),
    ],
)
def test_a_bad_variable_is_named(env: dict[str, str], says: list[str]) -> None:
    refused(run("migrate", env=env), *says)


def test_a_database_that_is_away_is_worth_another_try() -> None:
    refused(run("flags"), "ariane: the database can't be reached", status=1)


def test_without_words_the_help_is_shown_and_the_status_says_so() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ariane [OPTIONS] COMMAND")
    assert len(done.stderr.splitlines()) > 10


def test_serve_refuses_without_a_webhook_secret(database_url: str) -> None:
    refused(run("serve", url=database_url), "webhook.secrets: empty", "ARIANE_WEBHOOK__SECRETS")


def test_an_old_schema_is_told_how_to_be_updated(empty_database_url: str) -> None:
    refused(run("flags", url=empty_database_url), "ariane migrate")
    first, second = (run("migrate", url=empty_database_url) for _ in range(2))
    assert (first.returncode, first.stdout) == (second.returncode, second.stdout) == (0, "")
    assert "applied 0001_corpus.sql" in first.stderr
    assert second.stderr == "the schema is up to date\n"


def test_an_empty_index_can_be_listed_but_not_asked(database_url: str) -> None:
    refused(run("ask", "--json", "anything?", url=database_url), "the index is empty", "ariane backfill")
    refused(run("profiles", "activate", "none", url=database_url), "no profile 'none'")
    listed = run("profiles", url=database_url)
    assert (listed.returncode, listed.stdout) == (0, "")


def test_flags_are_set_with_a_reason_that_is_kept(database_url: str) -> None:
    refused(run("flags", "set", "answering", "maybe", "--why", "x", url=database_url), "'maybe'", "off, shadow, on")
    done = run("flags", "set", "input_gate", "on", "--why", "spam", url=database_url)
    assert (done.returncode, done.stderr) == (0, "input_gate is on\n")
    done = run("flags", "set", "answering", "shadow", "--why", "a first look", "--by", "ines", url=database_url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "answering is shadow\n")
    for name, value in (("category:3", "shadow"), ("group:staff:per_hour", "50")):
        assert run("flags", "set", name, value, "--why", "a trial", url=database_url).returncode == 0
    refused(run("flags", "set", "input_gate", "on", "--why", " ", url=database_url), "a reason is kept")
    shown = run("flags", url=database_url)
    assert shown.stdout.splitlines() == [
        "answering       shadow",
        "posts_pipeline  off",
        "input_gate      on",
        "private_messages off",
        "category:3      shadow",
        "group:staff:per_hour 50",
        "activation      off (in shadow): this configuration was never tested",
    ]
    assert "First record a passed run" in shown.stderr
    assert "ines" in shown.stderr
    assert "a first look" in shown.stderr


def test_the_pipeline_needs_a_test_or_an_override_that_says_why(database_url: str) -> None:
    turn = ("flags", "set", "posts_pipeline", "on", "--why", "index is complete")
    refused(run(*turn, url=database_url), "no passed test", "docs/eval.md", "ariane backfill", "--override --why")
    refused(run("flags", "set", "answering", "on", "--override", "--why", "x", url=database_url), "--override is for")
    done = run(*turn, "--override", "--by", "ines", url=database_url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "posts_pipeline is on\n")
    shown = run("flags", url=database_url)
    assert "activation      active: override, not tested by ines" in shown.stdout
    assert "index is complete" in shown.stdout
    changed = run("flags", url=database_url, env={"ARIANE_RETRIEVAL__CANDIDATES": "30"})
    assert "activation      changed (in shadow)" in changed.stdout
    assert "retrieval.candidates 25 -> 30" in changed.stdout
    assert "ariane flags set posts_pipeline on" in changed.stderr


def test_drafts_are_sanitized_line_by_line_up_to_a_bad_one() -> None:
    good = {"id": 1, "draft": "Bleed it [[1]]. See https://elsewhere.example", "sources": 1}
    done = run("sanitize", "--jsonl", stdin=f"{json.dumps(good)}\n\n{{\n")
    assert done.returncode == 2
    assert done.stderr == "ariane sanitize: line 3: " + done.stderr.partition("line 3: ")[2]
    assert len(done.stderr.splitlines()) == 1
    (line,) = map(json.loads, done.stdout.splitlines())
    assert set(line) == {"id", "post", "fallback", "cited", "removed"}
    assert line["cited"] == [1]
    assert "elsewhere" not in line["post"]


async def fill(url: str, folder: Path) -> None:
    async with open_services(Settings.model_validate({"home": folder, "database": {"url": url}}), "test") as services:
        await fill_index(services, tiny_forum(folder), folder)
        await ProfileStore(services.pool).activate(services.embedder.profile.name)


def test_an_answer_has_the_published_shape(database_url: str, tmp_path: Path, files: Path) -> None:
    asyncio.run(fill(database_url, tmp_path))
    asked = ("ask", "--json", "--lang", "fr", "--history", str(files / "history.json"), "and with which key?")
    done = run(*asked, url=database_url)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    assert set(answer) == ANSWER_KEYS
    assert answer["outcome"] in ("answered", "gated", "abstained", "failed")
    assert answer["zone"] in ("normal", "weak", "abstain")
    assert answer["mode"] in ("reranked", "reranker-down", "keyword", "legacy")
    assert answer["queries"]
    assert all(isinstance(query, str) for query in answer["queries"])
    assert all(isinstance(ms, float) for ms in answer["timings_ms"].values())
    for n, source in enumerate(answer["sources"], start=1):
        assert set(source) == SOURCE_KEYS
        assert (source["n"], source["kind"]) == (n, "post")
        assert source["url"].startswith("http://127.0.0.1:4200/t/")
    listed = run("profiles", url=database_url)
    assert "active" in listed.stdout
    assert listed.stderr == ""


def test_a_follow_up_carries_nothing_past_the_gate(database_url: str, tmp_path: Path) -> None:
    asyncio.run(fill(database_url, tmp_path))
    turns = ("How do I bleed a radiator?", "How do I make a pipe bomb at home?")
    history = tmp_path / "declined.json"
    history.write_text(json.dumps([{"role": "user", "text": text} for text in turns]))
    asked = ("ask", "--json", "--history", str(history), "and?")
    carried = json.loads(run(*asked, url=database_url).stdout)["queries"][0]
    assert "radiator" not in carried and "bomb" in carried
    assert run("flags", "set", "input_gate", "on", "--why", "spam", url=database_url).returncode == 0
    carried = json.loads(run(*asked, url=database_url).stdout)["queries"][0]
    assert "radiator" in carried and "bomb" not in carried
