"""Markdown to HTML in the simulated forum: what becomes a mention, a quote, a onebox, and what is never let through."""

import re
from html.parser import HTMLParser
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.simulator.allow import ATTRIBUTES, TAGS, VOID, allowed
from service.simulator.cook import Preview, cook, excerpt


class Names:
    """A forum with two members and one topic, in a subfolder."""

    base_url = "https://forum.example/sub"
    base_path = "/sub"

    def canonical_name(self, username: str) -> str | None:
        return {"ariane": "ariane", "zoé_d": "Zoé_d"}.get(username.casefold())

    def preview(self, topic_id: int, number: int) -> Preview | None:
        html = '<a class="mention" href="/sub/u/ariane">@ariane</a> knows'
        return Preview("A <b>title", f"/sub/t/a/{topic_id}/{number}", "bob", html) if topic_id == 5 else None


def html(raw: str) -> str:
    return cook(raw, Names()).html


MENTION = '<a class="mention" href="/sub/u/ariane">'


@pytest.mark.parametrize(
    ("raw", "mentioned"),
    [
        ("@ariane hello", ("ariane",)),
        ("Hello @ARIANE.", ("ariane",)),
        ("(@Zoé_d), @ariane", ("Zoé_d", "ariane")),
        ("**@ariane** and *@ariane*", ("ariane",)),
        ("> @ariane in a Markdown quotation", ("ariane",)),
        ("- @ariane", ("ariane",)),
        ("`@ariane`", ()),
        ("```\n@ariane\n```", ()),
        ("    @ariane", ()),
        ("write to a@ariane.example", ()),
        ("@ariane_ @arianes x@ariane", ()),
        ("\\@ariane", ()),
        ("[@ariane](https://example.org)", ()),
        ("https://example.org/@ariane", ()),
        ('[quote="bob, post:1, topic:5"]\n@ariane\n[/quote]', ()),
        ('[quote="bob, post:1, topic:5"]\n@ariane\n[/quote]\n@ariane', ("ariane",)),
        ("[quote]@ariane[/quote]", ()),
        ("<details>\n\n@ariane\n\n</details>", ("ariane",)),
    ],
)
def test_mentions(raw: str, mentioned: tuple[str, ...]) -> None:
    assert cook(raw, Names()).mentions == mentioned


def test_links_of_mentions() -> None:
    assert html("@Ariane") == f"<p>{MENTION}@Ariane</a></p>"
    assert html("@Zoé_d") == '<p><a class="mention" href="/sub/u/zo%C3%A9_d">@Zoé_d</a></p>'
    assert html("@nobody") == '<p><span class="mention">@nobody</span></p>'
    assert html("@staff") == '<p><a class="mention-group notify" href="/sub/groups/staff">@staff</a></p>'


def test_a_quote_is_an_aside_with_its_title() -> None:
    cooked = cook('Before\n[quote="bob, post:2, topic:5"]\nHi **you**\n\n@ariane\n[/quote]\nAfter', Names())
    assert re.sub(r"\s*\n\s*", "", cooked.html) == (
        '<p>Before</p><aside class="quote no-group" data-username="bob" data-post="2" data-topic="5">'
        '<div class="title"><div class="quote-controls"></div>bob: <a href="/sub/t/a/5/2">A &lt;b&gt;title</a></div>'
        f"<blockquote><p>Hi <strong>you</strong></p><p>{MENTION}@ariane</a></p></blockquote></aside><p>After</p>"
    )
    assert cooked.quoted == ("bob",)


@pytest.mark.parametrize(
    ("raw", "boxes"),
    [
        ("https://forum.example/sub/t/a/5/2", 1),
        ("one\nhttps://forum.example/sub/t/a/5\ntwo", 1),
        ("https://forum.example/sub/t/5\n\nhttps://forum.example/sub/t/a/5", 2),
        ("see https://forum.example/sub/t/a/5/2", 0),
        ("https://forum.example/sub/t/a/6", 0),
        ("https://elsewhere.example/sub/t/a/5", 0),
        ("[x](https://forum.example/sub/t/a/5)", 0),
        ("- https://forum.example/sub/t/a/5", 0),
        ("https://forum.example/sub/t/a/99999999999999999999", 0),
    ],
)
def test_an_own_address_alone_on_its_line_becomes_a_onebox(raw: str, boxes: int) -> None:
    cooked = cook(raw, Names())
    assert cooked.html.count('<aside class="onebox"') == boxes
    assert cooked.mentions == ()
    if boxes:
        assert MENTION in cooked.html


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (":seedling:", 'title=":seedling:" class="emoji"'),
        ("🌱", 'title=":seedling:" class="emoji"'),
        ("`:seedling:`", "<code>:seedling:</code>"),
        (":no_such_thing:", ":no_such_thing:"),
        ("at 10:30:20", "at 10:30:20"),
        ('[details="More"]\nhidden\n[/details]', "<details>\n<summary>\nMore</summary>\n<p>hidden</p>"),
        ('<details class="elided">\n\nold\n\n</details>', '<details class="elided">\n<p>old</p>'),
        ("```python\nx < 1\n```", '<pre data-code-wrap="python"><code class="lang-python">x &lt; 1\n</code></pre>'),
        ("```\nx\n```", '<pre><code class="lang-auto">x\n</code></pre>'),
        ("|a|\n|-|\n|1|", '<div class="md-table">\n<table>'),
        ("example.org", '<a href="http://example.org" rel="noopener nofollow ugc">example.org</a>'),
        ("one\ntwo", "<p>one<br>\ntwo</p>"),
    ],
)
def test_other_markup(raw: str, expected: str) -> None:
    assert expected in html(raw)


@pytest.mark.parametrize(
    "raw",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
        "[x](javascript:alert(1))",
        "<a href='//evil.example'>x</a>",
        "<a href='/\\evil.example'>x</a>",
        "<p style='position:fixed'>x</p>",
        "<div class='post'>x</div>",
        "<iframe src='https://evil.example'></iframe>",
        "<svg><script>alert(1)</script></svg>",
        "<form action=/who><button>x</button></form>",
        "<details class='elided' onclick='alert(1)'>x</details>",
    ],
)
def test_nothing_active_gets_through(raw: str) -> None:
    cooked = html(raw)
    assert not re.search(
        r"<(script|iframe|form|button|svg)|\son\w+=|style=|class=\"post|href=\"(javascript|//|/\\)", cooked
    )


def test_an_excerpt_is_short_text_with_its_mentions() -> None:
    cooked = cook('[quote="bob"]\nno\n[/quote]\nAsk @ariane & <b>co</b> ' + "word " * 100, Names()).html
    short = excerpt(cooked)
    assert short.startswith(f"Ask {MENTION}@ariane</a> &amp; co word")
    assert short.endswith("…")


class Checker(HTMLParser):
    """Fails on anything that is not allowed or not balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert all(k == "class" or k in ATTRIBUTES[tag] for k, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


PIECES = st.sampled_from(
    [
        *("@ariane", "[quote]", "[/quote]", '[quote="a, post:1, topic:5"]', "[details=x]", "[/details]", "<details>"),
        *("<b>", "</b>", "</p>", "<a ", "href=", "'", '"', ">", "<!--", "-->", "<script>", "</script>", "<svg>"),
        *("```", "`", "\n", "\n\n", "> ", "- ", "  ", "|", "|-|", "*", "_", "[", "](", ")", "\\", "#"),
        *("https://forum.example/sub/t/a/5", ":seedling:", "🌱", "&lt;", "&#0;", "\x00", "é", "\u202e", "<![CDATA["),
    ]
)


@settings(max_examples=60)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_any_text_cooks_to_allowed_balanced_html(raw: str) -> None:
    cooked = html(raw)
    checker = Checker()
    checker.feed(cooked)
    checker.close()
    assert checker.open == []
    assert allowed(cooked) == cooked
    excerpt(cooked)


@pytest.mark.parametrize("unit", ["[quote]\n", "[quote=", "<a ", "<!--", "> ", "[", "@a", "<div>", "*a ", "`", "- "])
def test_long_odd_text_cooks_in_good_time(unit: str) -> None:
    started = perf_counter()
    html(unit * (4_000 // len(unit)))
    assert perf_counter() - started < 2


def test_a_quote_from_the_same_topic_names_no_title() -> None:
    raw = '[quote="bob, post:2, topic:5"]\nHi\n[/quote]'
    assert "A &lt;b&gt;title" in cook(raw, Names(), topic_id=6).html
    assert "A &lt;b&gt;title" not in cook(raw, Names(), topic_id=5).html
