"""Cooked HTML: mentions found as Discourse finds them, text cleaned for reading, hostile nesting refused."""

import random
import time
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from service.discourse.cooked import MAX_COOKED_CHARS, Mentioned, find_mentions, plain_text, question_text
from service.discourse.depth import MAX_DEPTH, depth_bound, is_too_deep


def link(name: str = "Ariane", *, base: str = "") -> str:
    return f'<a class="mention" href="{base}/u/{quote(name.lower())}">@{name}</a>'


def quoted(inside: str) -> str:
    return (
        '<aside class="quote no-group" data-username="zoe" data-post="1" data-topic="2">\n<div class="title">\n'
        f'<div class="quote-controls"></div>\nzoe:</div>\n<blockquote>\n<p>{inside}</p>\n</blockquote>\n</aside>'
    )


ONEBOX = '<aside class="onebox allowlistedgeneric"><header class="source">x</header><article>{}</article></aside>'
ELIDED = '<details class="elided"><summary title="Show trimmed content">&#183;&#183;&#183;</summary><p>{}</p></details>'


@pytest.mark.parametrize(
    ("cooked", "found"),
    [
        (f"<p>{link()} how?</p>", Mentioned.PLAIN),
        (f"<p>{link('ARIANE')} how?</p>", Mentioned.PLAIN),
        (f"<p>{link(base='/forum')} how?</p>", Mentioned.PLAIN),
        (f"<p>{link(base='https://example.org/a/b')} how?</p>", Mentioned.PLAIN),
        ('<p><a class="mention" href="/u/ariane">@Ariane the Librarian</a></p>', Mentioned.PLAIN),
        ('<p><a class="mention" href="/u/ariane/?x=1#y"> </a></p>', Mentioned.PLAIN),
        ('<p><a class="mention user-status" href="/elsewhere">@ariane</a></p>', Mentioned.PLAIN),
        ('<p><a class="mention" href="http://[">@ariane</a></p>', Mentioned.PLAIN),
        ('<p><a class="mention">@ariane</a></p>', Mentioned.PLAIN),
        (f"<blockquote><p>{link()}</p></blockquote>", Mentioned.PLAIN),
        (f"<ul><li><details><summary>x</summary>{link()}</details></li></ul>", Mentioned.PLAIN),
        ("<p>ariane, @ariane and /u/ariane</p>", Mentioned.NONE),
        ('<p><span class="mention">@ariane</span></p>', Mentioned.NONE),
        ('<p><a class="mention-group" href="/groups/ariane">@ariane</a></p>', Mentioned.NONE),
        ('<p><a href="/u/ariane">@ariane</a></p>', Mentioned.NONE),
        (f"<p>{link('ariane2')} {link('marie-ariane')} {link('arian')}</p> ariane", Mentioned.NONE),
        ('<p><a class="mention" href="/u/ariane/summary">ariane</a></p>', Mentioned.NONE),
        (quoted(link()), Mentioned.IN_QUOTE),
        (quoted(quoted(link())), Mentioned.IN_QUOTE),
        (f'<aside class="quote"><div class="title">{link()}</div></aside>', Mentioned.IN_QUOTE),
        (ONEBOX.format(link()), Mentioned.IN_ONEBOX),
        (f'<div class="onebox">{link()}</div>', Mentioned.IN_ONEBOX),
        (ELIDED.format(link()), Mentioned.IN_ELIDED),
        (f"<pre>{link()}</pre>", Mentioned.IN_CODE),
        ("<p><code>@ariane</code></p>", Mentioned.IN_CODE),
        ('<pre><code class="lang-sh">ping @Ariane.\n</code></pre>', Mentioned.IN_CODE),
        ("<p><code>me@ariane.example x@ariane @ariane2 @ariane-b @ariane.b @arianes</code></p>", Mentioned.NONE),
        (quoted(link()) + f"<p>{link()}</p>", Mentioned.PLAIN),
        (f"<p><code>@ariane</code> {link()}</p>" + ELIDED.format(link()), Mentioned.PLAIN),
        (quoted(f"<code>@ariane</code> {link()}"), Mentioned.IN_QUOTE),
        ("", Mentioned.NONE),
    ],
)
def test_mentions(cooked: str, found: Mentioned) -> None:
    assert find_mentions(cooked, "ariane") is found
    assert find_mentions(cooked, "Ariane") is found


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("name", ["Éloïse", "МАРИНА", "明美", "Ünal.K", "x_9-z"])
def test_unicode_names(name: str, form: str) -> None:
    ours = unicodedata.normalize(form, name)  # type: ignore[arg-type]  # a literal of pytest's parameters
    encoded = f'<p><a class="mention" href="/u/{quote(name.lower())}">@?</a></p>'
    for cooked in (f"<p>{link(name)}</p>", encoded, encoded.replace("%", "%").lower()):
        assert find_mentions(cooked, ours) is Mentioned.PLAIN
    assert find_mentions(f"<p><code>@{name}</code></p>", ours) is Mentioned.IN_CODE
    assert find_mentions(f"<p>{link(name + 'x')}</p>", ours) is Mentioned.NONE


@pytest.mark.parametrize(
    ("cooked", "text"),
    [
        ("<p>One</p>\n<p>Two  \n three</p>", "One\n\nTwo three"),
        ("<p>One<br>\nTwo<br>\n<br>\nThree</p>", "One\nTwo\nThree"),
        ("<p>a <b>b</b><i>c</i> d</p>", "a bc d"),
        ('<p>see <a href="https://x.example/y">the manual</a>.</p>', "see the manual."),
        (f"<p>{link()} how?</p>", "@Ariane how?"),
        ("<h2><a name='p-1' class='anchor' href='#p-1'></a>Head</h2><p>x</p>", "Head\n\nx"),
        (
            "<p>Buy:</p><ul>\n<li>one</li>\n<li>two\n<ul>\n<li>2a</li>\n</ul>\n</li>\n</ul><p>x</p>",
            "Buy:\n\none\ntwo\n2a\n\nx",
        ),
        ("<ol><li><p>one</p></li><li><p>two</p><p>more</p></li></ol>", "one\ntwo\nmore"),
        (
            '<div class="md-table"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr>\n<td>1</td>\n'
            "<td><p>2<br>3</p></td>\n</tr><tr><td></td><td>4</td></tr></tbody></table></div><p>x</p>",
            "a | b\n1 | 2 3\n4\n\nx",
        ),
        (
            '<p>Do</p><pre><code class="lang-py">def f():\n\n    return "&lt;b&gt;"\n</code></pre><p>x</p>',
            'Do\n\ndef f():\n\n    return "<b>"\n\nx',
        ),
        ("<p>run <code>make  demo</code> now</p>", "run make demo now"),
        ('<p>ok <img src="/i.png" title=":smile:" class="emoji" alt=":smile:"> then</p>', "ok :smile: then"),
        ('<p>see <img src="/cat.png" alt="cat" title="my cat"> here</p>', "see here"),
        (
            '<p>pic <div class="lightbox-wrapper"><a class="lightbox" href="/x.png" title="boiler"><img alt="boiler">'
            '<div class="meta"><span class="filename">boiler</span><span class="informations">690x172 9 KB</span></div>'
            "</a></div> end</p>",
            "pic\n\nend",
        ),
        (f"{quoted('theirs')}<p>mine</p>", "mine"),
        (ONEBOX.format("theirs") + "<p>mine</p>" + ELIDED.format("old"), "mine"),
        ('<p><a href="https://x.example" class="onebox">https://x.example</a></p>', "https://x.example"),
        ("<blockquote><p>kept</p></blockquote><hr><p>x</p>", "kept\n\nx"),
        ("<details><summary>More</summary><p>inside</p></details>", "More\n\ninside"),
        ("<p>a<script>alert(1)</script><style>p{}</style><svg><title>t</title></svg>b</p><iframe>x</iframe>", "ab"),
        ("<p>&amp;lt; &eacute; &nbsp;&#8239;!</p>", "&lt; é !"),
        ("a\u200bb\u202ec\u2066d\ufeffe\u00adf\x07g\U000e0041h\ufe0fi", "abcdefghi"),
        ("<pre>a\u202e\r\nb\u2028c</pre>", "a\nb\nc"),
        ("<pre> \n  a\n b \n </pre>x<pre> \n\t </pre>y", "  a\n b\n\nx\n\ny"),
        ("no tags at all", "no tags at all"),
        ("<frameset><frame></frameset>", ""),
        ("<!-- nothing --><p> \n </p>", ""),
        ("", ""),
        ("\ud800x", "\ufffdx"),
        ("<p>unclosed <b>bold <i>both", "unclosed bold both"),
    ],
)
def test_plain_text(cooked: str, text: str) -> None:
    assert plain_text(cooked) == text


@pytest.mark.parametrize(
    ("cooked", "question"),
    [
        (f"<p>{link()} how do I bleed it?</p>", "how do I bleed it?"),
        (f"<p>{link()}, how?</p>", "how?"),
        (f"<p>{link()} : comment purger ?</p>", "comment purger ?"),
        (f"<p>Hello {link()}, how?</p>", "Hello, how?"),
        (f"<p>Bonjour {link()} ! Comment ?</p>", "Bonjour ! Comment ?"),
        (f"<p>How, {link()} or {link('zoe')}?</p>", "How, or @zoe?"),
        (f"<p>How? {link()}</p>", "How?"),
        (f"<p>One</p><p>{link()}</p><p>two</p>", "One\n\ntwo"),
        (f"<p>{link()} {link()}</p>", ""),
        (f"<p>Look<br>{link()} why?</p>", "Look\nwhy?"),
        (f"{quoted(f'theirs {link()}')}<p>{link()} why?</p>", "why?"),
        ("<p>\0a\0 <code>@ariane</code></p>", "a @ariane"),
    ],
)
def test_question_text(cooked: str, question: str) -> None:
    assert question_text(cooked, "ariane") == question


# fmt: off
MARKUP = [
    "<p>", "</p>", "<td>", "<tr>", "<li>", "</ul>", "<pre>", "<code>", '<a class="mention" href="/u/%ff">@', "</a>",
    '<aside class="quote">', "</aside>", "<svg>", "<br>", "<!--", "-->", "<![CDATA[", "]]>", "<textarea>", "\0",
    "<", "ariane", "<template>", "<table>", "<select>", "\ud800", "&#0;", "&#x110000;", " ", "@ariane", "é",
]
PIECES = [
    "<div>", "</div>", "<b>", "</b>", "<p>", "</p>", "<td>", "<table>", "</table>", "<a>", "</a>", "<svg>", "</svg>",
    "</td>", "<!--", "-->", "<!-->", "--!>", "<?", ">", "'", '"', "<div title='", '<div title="', "<div a'", "=", "</",
    "<", "/>", "<textarea>", "</textarea>", "<input>", "<br>", "<path/>", "<![CDATA[", "]]>", "<select>", "<button>",
    "</button>", "<title>", "</title>", "<script>", "</script>", "<iframe></iframe>", "<i class=1>", "</i>", "<ul>",
    "<li>", "</li>",
]
# fmt: on
markup = st.lists(st.sampled_from(MARKUP) | st.text(max_size=5), max_size=30).map("".join)


@given(markup)
def test_any_html_is_read(cooked: str) -> None:
    text = plain_text(cooked)
    assert text == text.rstrip().lstrip("\n")  # the first line of code may be indented
    assert "\0" not in text
    text.encode()
    find_mentions(cooked, "ariane")
    question_text(cooked, "ariane")


@given(markup)
def test_text_of_text_is_itself(cooked: str) -> None:
    """No character that was dropped comes back when the text is read as a page of text again."""
    words = plain_text(cooked).split()
    escaped = " ".join(words).replace("&", "&amp;").replace("<", "&lt;")
    assert plain_text(f"<p>{escaped}</p>").split() == words


def real_depth(html: str) -> int:
    body = LexborHTMLParser(html).body
    deepest, waiting = 0, [(body, 0)] if body else []
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        children: list[LexborNode] = list(node.iter())
        waiting.extend((child, depth + 1) for child in children)
    return deepest


def test_no_soup_nests_deeper_than_told() -> None:
    """The bound holds on 3,000 random soups of what confuses a tokenizer; the parser adds at most as much again."""
    dice = random.Random(11)
    for _ in range(3_000):
        few = dice.sample(PIECES, 6)
        soup = "".join(dice.choices(few, k=60))
        assert real_depth(soup) <= 2 * depth_bound(soup) + 2, soup


@pytest.mark.parametrize(
    "unit", ["<div>", "<b>", "<div title='</div>'>", "<div><!--</div>-->", "<div '><div>", "<svg><input>"]
)
def test_hostile_nesting_is_seen(unit: str) -> None:
    assert is_too_deep(unit * (MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "cooked",
    [
        "<p>x <b>y</b><br></p>\n" * 5_000,
        '<p><img src="a>b" alt="</p>"></p>' * 5_000,
        "<ul>" + "<li><input type='checkbox'> x</li>" * 5_000 + "</ul>",
        '<iframe src="https://video.example"></iframe><p>a</p>' * 2_000,
    ],
)
def test_long_posts_are_not_deep(cooked: str) -> None:
    assert not is_too_deep(cooked)


def test_what_is_too_deep_is_read_as_text_and_mentions_nobody() -> None:
    cooked = f"<p>Before {link()} &amp;</p>" + "<div>" * 2_000 + "deep" + "</div>" * 2_000
    assert plain_text(cooked) == "Before @Ariane & deep"
    assert find_mentions(cooked, "ariane") is Mentioned.NONE
    assert question_text(cooked, "ariane") == "Before @Ariane & deep"


@pytest.mark.parametrize(
    "unit",
    [
        "<div>",
        "<b>",
        "<a <a ",
        "<a '",
        "<",
        "</",
        "<!--",
        "&",
        "<p><b class=x>",
        "<td>",
        "<code>@ariane",
        "<a class='mention'>",
    ],
)
def test_the_worst_of_posts_takes_little_time(unit: str) -> None:
    cooked = f"ariane {unit * 300_000}"[: MAX_COOKED_CHARS * 2]
    start = time.perf_counter()
    plain_text(cooked)
    find_mentions(cooked, "ariane")
    assert time.perf_counter() - start < 2.0


def test_only_the_first_part_of_an_endless_post_is_read() -> None:
    assert len(plain_text("a" * (MAX_COOKED_CHARS + 5))) == MAX_COOKED_CHARS
