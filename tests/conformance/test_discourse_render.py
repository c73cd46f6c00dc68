"""Sanitized drafts as npm's markdown-it reads them, with Discourse's settings; skipped where it is absent."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from service.answer.markup.links import post_url
from service.answer.sanitize import sanitize
from service.domain import Zone
from tests.unit.draft_strategies import drafts
from tests.unit.test_sanitize import BASE, SOURCES

HERE = Path(__file__).parent
EXAMPLES = int(os.environ.get("ARIANE_FUZZ_EXAMPLES", "150"))
URLS = [post_url(source, BASE) for source in SOURCES]

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (HERE / "node_modules" / "markdown-it").is_dir(),
    reason="needs node, and `npm install` in tests/conformance",
)


@pytest.fixture(scope="module")
def reader() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        ["node", "discourse_render.mjs"],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=10)


def faults(reader: "subprocess.Popen[str]", post: str) -> list[str]:
    assert reader.stdin is not None and reader.stdout is not None
    reader.stdin.write(json.dumps({"post": post, "links": URLS}) + "\n")
    reader.stdin.flush()
    found: list[str] = json.loads(reader.stdout.readline())
    return found


@pytest.mark.parametrize(
    "post",
    [
        "http://a.example",
        "a.com",
        "[x](y)",
        "<b>x</b>",
        "![x](y)",
        "@lea",
        "#tag",
        "[quote]",
        "a [poll a=b]",
        "www.a.org",
    ],
)
def test_the_reader_sees_what_is_live(reader: "subprocess.Popen[str]", post: str) -> None:
    assert faults(reader, post)


def test_the_reader_lets_words_and_our_links_pass(reader: "subprocess.Popen[str]") -> None:
    assert (
        faults(reader, f"Words, `@code` and [1 · a title]({URLS[0]}).\n\n```\n[quote] http://a.example @x\n```") == []
    )


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(draft=drafts)
def test_nothing_live_is_posted(reader: "subprocess.Popen[str]", draft: str) -> None:
    post = sanitize(f"Wax the seam twice [[1]].\n\n{draft}", SOURCES, zone=Zone.NORMAL, base_url=BASE).post
    if post is not None:
        assert faults(reader, post) == []
