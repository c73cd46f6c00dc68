"""The sanitizer: links of the server's making, what may be posted, length, time, and the fixed point."""

import re
import time
from dataclasses import dataclass

import pytest

from service.answer.markup.links import links, post_url
from service.answer.sanitize import Sanitized, clean, sanitize
from service.domain import Zone
from tests.unit.forum_rules import live

BASE = "https://forum.example"


@dataclass(frozen=True, slots=True)
class Thread:
    """What a link needs of a source."""

    topic_id: int
    post_number: int
    slug: str = "waxed-seams"
    title: str = "Waxed seams"


SOURCES = (Thread(101, 1), Thread(102, 7, "wet-boots", "Drying wet boots"))


def sanitized(draft: str, *, zone: Zone = Zone.NORMAL, **options: str) -> Sanitized:
    return sanitize(
        draft, SOURCES, zone=zone, base_url=BASE, lang=options.get("lang"), caution=options.get("caution", "")
    )


def test_a_citation_becomes_a_link_titled_once() -> None:
    result = sanitized("Wax the seam [[1]]. Dry it slowly [[2]], then wax again [[1]].")
    assert result.post == (
        "Wax the seam [1 · Waxed seams](https://forum.example/t/waxed-seams/101/1). Dry it slowly "
        "[2 · Drying wet boots](https://forum.example/t/wet-boots/102/7), then wax again "
        "[1](https://forum.example/t/waxed-seams/101/1)."
    )
    assert result.cited == (1, 2)
    assert result.fallback is None
    assert dict(result.removed) == {}


@pytest.mark.parametrize(
    ("draft", "zone", "fallback"),
    [
        ("", Zone.NORMAL, "sources"),
        ("Wax it, I suppose.", Zone.NORMAL, "sources"),
        ("Wax it, I suppose.", Zone.WEAK, "sources"),
        ("[[1]] [[2]]", Zone.NORMAL, "sources"),
        ("Wax it [[3]].", Zone.NORMAL, "sources"),
        ("Wax it [[1]].", Zone.ABSTAIN, "abstain"),
        ("```\nwax it [[1]]\n```", Zone.NORMAL, "sources"),
    ],
)
def test_what_is_not_a_sourced_answer_is_not_posted(draft: str, zone: Zone, fallback: str) -> None:
    result = sanitized(draft, zone=zone)
    assert (result.post, result.fallback, result.cited) == (None, fallback, ())


def test_without_sources_it_abstains() -> None:
    assert sanitize("Wax it [[1]].", (), zone=Zone.NORMAL, base_url=BASE).fallback == "abstain"


def test_the_caution_stands_first_in_the_weak_zone_only() -> None:
    weak = sanitized("Wax it twice [[1]].", zone=Zone.WEAK, caution="Only a lead:").post
    assert weak is not None and weak.startswith("Only a lead:\n\nWax it twice")
    normal = sanitized("Wax it twice [[1]].", caution="Only a lead:").post
    assert normal is not None and "lead" not in normal


def test_a_base_url_may_have_a_subfolder() -> None:
    assert post_url(SOURCES[0], "https://forum.example/community/") == (
        "https://forum.example/community/t/waxed-seams/101/1"
    )


@pytest.mark.parametrize(
    ("slug", "written"),
    [
        ("waxed-seams", "waxed-seams"),
        ("", "-"),
        ("a b", "-"),
        ("a)b", "-"),
        ("../../u/lea", "-"),
        ("x](http://evil.example", "-"),
        ("UPPER", "UPPER"),
        ("%e9%9e%8b", "%e9%9e%8b"),
        ("%2e%2e%2f", "-"),
        ("%zz", "-"),
        ("chaussure-cirée", "chaussure-cir%C3%A9e"),
        ("鞋", "%E9%9E%8B"),
        ("a\u202eb", "-"),
        ("x" * 3000, "-"),
    ],
)
def test_a_slug_cannot_leave_its_place_in_the_address(slug: str, written: str) -> None:
    assert post_url(Thread(5, 6, slug), BASE) == f"{BASE}/t/{written}/5/6"


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("Waxed seams", "1 · Waxed seams"),
        ("", "1"),
        ("  two \n lines  ", "1 · two lines"),
        ("[quote]x[/quote]", "1 · x"),
        ("](http://evil.example) [x](y)", "1 · \\](http"),
        ("@all see #support", "1 · see support"),
        ("![img](http://evil.example/i.png)", "1 · "),
        ("`code` **bold** _x_ <b>tag</b>", "1 · \\`code\\` \\*\\*bold\\*\\* \\_x\\_ tag"),
        ("evil.com and http://evil.example/x", "1 · and"),
        ("a\\]b]\\", "1 · a\\\\\\]b\\]\\\\"),
        ("main.py in #ff8800", "1 · `main.py` in `#ff8800`"),
        ("a|b", "1 · a|b"),
        ("\u202e[[2]]\u200b", "1"),
        ("word " * 40, "1 · word word word word word word word word word word word word…"),
    ],
)
def test_a_title_is_only_words(title: str, label: str) -> None:
    written, short = links(1, Thread(5, 6, title=title), BASE)
    assert short == f"[1]({BASE}/t/waxed-seams/5/6)"
    assert live(written, [f"{BASE}/t/waxed-seams/5/6"]) == []
    if title not in ("](http://evil.example) [x](y)", "![img](http://evil.example/i.png)"):
        assert written == f"[{label}]({BASE}/t/waxed-seams/5/6)"


def test_a_title_with_pipes_keeps_its_table_whole() -> None:
    sources = (Thread(5, 6, title="a | b"),)
    post = sanitize("| x | y |\n|---|---|\n| wax | seam [[1]] |", sources, zone=Zone.NORMAL, base_url=BASE).post
    assert post is not None and "seam [1 · a \\| b]" in post


def test_a_long_draft_is_cut_at_a_sentence() -> None:
    draft = "Wax the seam [[1]]. " + "This sentence is one of very many. " * 400
    result = sanitize(draft, SOURCES, zone=Zone.NORMAL, base_url=BASE, longest=2000)
    assert result.post is not None
    assert 1900 < len(result.post) <= 2000
    assert result.post.endswith("very many.")
    assert result.removed["cut"] == 1


def test_a_citation_beyond_the_cut_does_not_count() -> None:
    draft = "This sentence is one of very many. " * 400 + "Wax the seam [[1]]."
    assert sanitize(draft, SOURCES, zone=Zone.NORMAL, base_url=BASE, longest=2000).post is None


@pytest.mark.parametrize(
    "tail",
    [
        "- item one\n",
        "> quoted words\n",
        "| a | b |\n|---|---|\n| c | d |\n",
        "```\ncode\n",
        "## heading\n\n",
        "1. a\n   - b\n",
        "**x** `y` ",
    ],
)
def test_every_construct_can_be_cut(tail: str) -> None:
    result = sanitize("Wax the seam [[1]].\n\n" + tail * 500, SOURCES, zone=Zone.NORMAL, base_url=BASE, longest=1500)
    assert result.post is not None
    assert 500 < len(result.post) <= 1500 or tail.startswith("#")
    assert len(re.findall("^```", result.post, re.MULTILINE)) % 2 == 0


def test_sentences_of_the_prompt_are_dropped() -> None:
    prompt = "Answer only from the numbered posts below, and cite every sentence with its number."
    draft = "Wax it twice [[1]]. Remember: answer only from the numbered posts below, and cite. It helps."
    post = sanitize(draft, SOURCES, zone=Zone.NORMAL, base_url=BASE, prompt=prompt).post
    assert post is not None and "numbered" not in post
    assert post.endswith("It helps.")


@pytest.mark.parametrize(
    ("lang", "draft", "posted"),
    [
        ("fr", "Cirez la couture deux fois, et séchez-la bien [[1]].", True),
        ("fr", "Wax the seam twice and dry it with the cloth that is in the box [[1]].", False),
        ("en", "Cirez la couture deux fois, et séchez-la dans la boîte [[1]].", False),
        ("en", "OK [[1]] : waxed.", True),
        ("fr", "先涂蜡,再晾干 [[1]]", False),
        ("en", "Сначала нанесите воск [[1]]", False),
        ("xx", "Wax the seam twice and dry it with the cloth [[1]].", True),
    ],
)
def test_a_draft_in_another_language_is_not_posted(lang: str, draft: str, posted: bool) -> None:
    assert (sanitized(draft, lang=lang).post is not None) == posted


@pytest.mark.parametrize(
    "unit",
    [
        *("[", "]", "[a", "[a](", "](", "![", "[[1,", "[quote=", "[a\n", "<", "<a ", "<a b='", "<!--", "<think>"),
        *("`", "``` ", "```\n", "*", "*a **a ", "~~a ", "> ", "- ", "- a\n", "|", "|a|b\n|-|-\n", "\\", "("),
        *("&", "@", "a.", "http://", "a", "a\u0301", "As an AI, I ", "_a_ ", "**a** ", "main.py ", "[[1]] "),
    ],
)
def test_a_hundred_kilobytes_of_anything_take_little_time(unit: str) -> None:
    draft = "Wax the seam [[1]].\n\n" + (unit * (100_000 // len(unit) + 1))[:100_000]
    started = time.process_time()
    result = sanitized(draft)
    assert time.process_time() - started < 4
    assert result.post is None or len(result.post) <= 32_000


@pytest.mark.parametrize(
    "draft",
    [
        *("a\n\n- b\n\n  c\n- d", "1. a\n2. b\n\n1) c", "* a\n+ b\n- c", "- ```\n  a\n\n  b\n  ```\n- c"),
        *("> a\n> > b\n\nc", "# a #\n\nb\n===", "***\n\na\n\n- - -", "a\n---|---\nb"),
        *("**a**_b_~~c~~", "***a** b*", "a*b*c __d__", "`` a`b `` `c`", "a  \nb\\\nc"),
        *("| a | b |\n|:-:|--|\n| `x\\|y` | z |", "1\\. a\n\\- b\n\\# c\n\\> d", "\\[a](b) &amp;lt; <int> x<y"),
        *("![[1]] [[1]](x) ([[2]])", "~5 mm, 2 * 3, snake_case, C:\\path\\"),
    ],
)
def test_cleaning_twice_changes_nothing(draft: str) -> None:
    once = clean(draft, 2)
    assert clean(once, 2) == once
    assert once


def test_a_finished_post_fed_back_yields_nothing_live() -> None:
    post = sanitized("Wax the seam [[1]].\n\n```\nhttp://a.example @x\n```").post
    assert post is not None
    assert live(clean(post, 2)) == []
    assert sanitized(post).post is None
