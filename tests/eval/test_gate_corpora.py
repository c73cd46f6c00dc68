"""The gate on the development data: recall, look-alikes, rewrites, real questions and no rule that quotes a message."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
import pytest
import yaml

from service.answer.gate.compiled import build_gate
from service.answer.gate.match import decide
from service.answer.gate.normalise import normalise
from service.answer.gate.patterns import patterns_of
from service.answer.gate.rules import GateKind, bundled_files, merged
from service.discourse.cooked import question_text
from service.simulator.state import DEMO
from tests.shared import SHARED, needs_shared
from tests.unit.gate_rewrites import REWRITES

pytestmark = needs_shared
GATE = build_gate(bundled_files())
MOST_DECLINED = 0.002


def messages() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((SHARED / "data/safety/gate.yml").read_text())
    return found


def declines(message: dict[str, Any], text: str, gate: Any = GATE) -> bool:
    earlier = [turn["text"] for turn in message.get("history", ()) if turn["role"] == "user"]
    return decide(gate, text, earlier) is not None


def test_what_is_to_be_declined_is_and_the_rest_passes() -> None:
    wrong = [one["id"] for one in messages() if declines(one, one["text"]) != (one["expect"] == "decline")]
    assert wrong == []


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda rewrite: rewrite.__name__)
def test_rewritten_messages(rewrite: Any) -> None:
    wanted = [one for one in messages() if one["expect"] == "decline"]
    found = [one for one in wanted if declines(one, rewrite(one["text"], one["lang"]))]
    assert len(found) >= 0.95 * len(wanted)


def test_no_kind_leans_on_the_rules_of_another() -> None:
    """Without the rules of a kind its messages pass, so that a kind that is switched off is off."""
    for kind in GateKind:
        without = build_gate(bundled_files(), off=[kind])
        own = [one for one in messages() if one["kind"].partition("/")[0] == kind and one["expect"] == "decline"]
        assert sum(declines(one, one["text"], without) for one in own) <= 0.25 * len(own), kind


def test_no_rule_quotes_four_words_of_a_message() -> None:
    runs = {run for one in messages() for run in runs_of_four(normalise(one["text"]))}
    rules = merged(bundled_files())
    written = [text for rule in rules for text in (*rule.positives, *rule.lookalikes)]
    for pattern in (pattern for rule in rules for pattern in patterns_of(rule)):
        written += re.split(r"[|()]", pattern)
    assert {run for text in written for run in runs_of_four(normalise(text)) if run in runs} == set()


def runs_of_four(words: str) -> set[str]:
    each = words.replace(" .", "").split()
    return {" ".join(each[at : at + 4]) for at in range(len(each) - 3)}


def first_posts(path: Path) -> Iterator[tuple[int, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            topic = json.loads(line)
            cooked = topic["post_stream"]["posts"][0]["cooked"]
            yield topic["id"], f"{topic['title']}\n{question_text(cooked, 'ariane')}"


def declined_topics(posts: Iterator[tuple[int, str]]) -> tuple[int, list[str]]:
    """How many there are, and those declined; prints them, and the processor's time of a decision made once."""
    ms, found = [], []
    for topic_id, text in posts:
        start = thread_time()
        met = decide(GATE, text)
        ms.append((thread_time() - start) * 1000)
        if met:
            found.append(f"topic {topic_id}: {met.rule}: {met.span}")
    print(f"{len(found)} of {len(ms)} declined", *found, sep="\n")
    print(*(f"p{percent} {np.percentile(ms, percent):.2f} ms" for percent in (50, 95, 99)), sep=", ")
    return len(ms), found


@pytest.mark.heavy
def test_the_first_posts_of_a_game_engines_forum_pass() -> None:
    count, found = declined_topics(first_posts(SHARED / "data/urho3d/topics.jsonl.gz"))
    assert count == 5046
    assert len(found) <= MOST_DECLINED * count


def test_a_help_desks_questions_pass() -> None:
    count, found = declined_topics(first_posts(SHARED / "data/cnil/topics.jsonl.gz"))
    assert len(found) <= MOST_DECLINED * count
    questions = yaml.safe_load((SHARED / "data/cnil/questions.yml").read_text())
    assert [one["question"] for one in questions if decide(GATE, one["question"])] == []


def test_the_posts_of_the_demo_forum_pass() -> None:
    posts = [
        post["raw"] for topic in yaml.safe_load(DEMO.read_text(encoding="utf-8"))["topics"] for post in topic["posts"]
    ]
    assert [raw for raw in posts if decide(GATE, raw)] == []
