"""Reads a drafts file (data README: drafts.yml) and checks one draft's facts against what the sanitizer made of it."""

import json
import re
import time
import unicodedata
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from service.commands.sanitize import sanitize_jsonl
from tests.unit.forum_rules import live, raw_bbcode

BASE = "https://forum.example"
SOURCE_URL = "{base}/t/topic-{n}/{topic}/{n}"
FRENCH = re.compile(r"\b(?:le|la|les|de|des|une?|et|dans|pour|que|ce|vous)\b", re.IGNORECASE)


def load(path: Path) -> list[dict[str, Any]]:
    drafts: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return drafts


def url(n: int) -> str:
    return SOURCE_URL.format(base=BASE, n=n, topic=1000 + n)


def faults(draft: dict[str, Any]) -> list[str]:
    """What the sanitizer did wrong with one draft; a fact in words of its own is checked by `OWN_FACTS`."""
    out = StringIO()
    line = json.dumps({key: draft[key] for key in ("id", "draft", "sources", "zone", "lang") if key in draft})
    started = time.perf_counter()
    assert sanitize_jsonl([line], out) == 0
    seconds = time.perf_counter() - started
    result = json.loads(out.getvalue())
    post: str | None = result["post"]
    text = post or ""
    servers = [url(n) for n in range(1, draft["sources"] + 1)]
    found = [f"must_not {part!r}" for part in draft["must_not"] if part in text]
    found += live(text, servers) + raw_bbcode(text)
    if (post is None) == (result["fallback"] is None):
        found.append("either a post or a fallback")
    if post is not None and set(result["cited"]) != {n for n, link in enumerate(servers, 1) if f"]({link})" in text}:
        found.append(f"cited {result['cited']} isn't what is linked")
    for demand in draft["must"]:
        kind, _, what = demand.partition(": ")
        if kind == "literal":
            found += [] if what in text else [demand]
        elif not _holds(what, draft, result, text, seconds):
            found.append(demand)
    return found


def _holds(fact: str, draft: dict[str, Any], result: dict[str, Any], text: str, seconds: float) -> bool:
    if fact.startswith("source link "):
        return f"]({url(int(fact.rsplit(' ', 1)[1]))})" in text
    if fact in ("fallback", "not posted as a sourced answer", "no source link"):
        return result["post"] is None and result["fallback"] == (
            "sources" if draft["zone"] != "abstain" and draft["sources"] else "abstain"
        )
    if fact == "abstain text only":
        return result["post"] is None and result["fallback"] == "abstain"
    if fact == "caution shown":
        return result["post"] is None or "[" not in text.split("\n\n")[0]
    if fact == "within post length":
        return len(text) <= 32_000
    if fact == "sanitized within two seconds":
        return seconds < 2
    if fact.startswith("reply language fr"):
        return not text or len(FRENCH.findall(text)) >= 3
    check = OWN_FACTS.get(fact)
    if check is not None:
        return check(draft, text)
    return fact in LIVE_FACTS


# Facts that `live` and the must_not strings already settle for every draft.
LIVE_FACTS = {
    "no link but server-made ones",
    "no image",
    "no mention",
    "no raw HTML",
    "no onebox",
    "no BBCode effect",
    "no category or tag link",
    "no invisible characters",
}


def _code_kept(draft: dict[str, Any], text: str) -> bool:
    return draft["draft"].count("`") == 0 or all(code in text for code in re.findall(r"`[^`\n]+`", draft["draft"]))


def _marks(_: dict[str, Any], text: str) -> bool:
    return not re.search(r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20ff]{5,}", text)


def _accents(_: dict[str, Any], text: str) -> bool:
    return "Crée d'abord la scène" in unicodedata.normalize("NFC", text)


def _closed(_: dict[str, Any], text: str) -> bool:
    return len(re.findall(r"^```", text, re.MULTILINE)) % 2 == 0


OWN_FACTS: dict[str, Callable[[dict[str, Any], str], bool]] = {
    "code kept": _code_kept,
    "no reasoning text": lambda _, text: "think" not in re.sub(r"`[^`]*`", "", text),
    "prose kept": lambda _, text: len(text) > 60,
    "list still a list": lambda _, text: bool(re.search(r"^(?:-|\d+\.) ", text, re.MULTILINE)),
    "table still a table": lambda _, text: "| --- |" in text,
    "later server text is not swallowed by the fence": _closed,
    "code, if cut, is still closed": _closed,
    "the model's own source list is gone": lambda _, text: "Sources" not in text,
    "the French words keep their accents (composed or not)": _accents,
    "at most a few combining marks on one letter": _marks,
    "the emoji are still readable": lambda _, text: all(face in text for face in "❤👩🔧"),
}
