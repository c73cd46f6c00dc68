"""Markdown to the HTML Discourse makes of it: mentions, quotes, oneboxes, emoji, details, code, tables, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Protocol
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from selectolax.lexbor import LexborHTMLParser

from service.simulator import bbcode, emoji
from service.simulator.allow import allowed

GROUPS = frozenset({"admins", "moderators", "staff"})
MENTION = re.compile(r"(?<![\w@/.\\-])@([\w\u0300-\u036f](?:[\w\u0300-\u036f.-]{0,58}[\w\u0300-\u036f])?)")
EXCERPT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Preview:
    """What a onebox or a quote of another topic shows; `html` is cooked and short."""

    title: str
    path: str
    username: str
    html: str


class Lookup(Protocol):
    """What cooking asks the forum."""

    @property
    def base_url(self) -> str: ...
    @property
    def base_path(self) -> str: ...
    def canonical_name(self, username: str) -> str | None: ...
    def preview(self, topic_id: int, number: int) -> Preview | None: ...


@dataclass(frozen=True, slots=True)
class Cooked:
    """The HTML, and the members that it addresses: mentioned outside quotes and code, and quoted."""

    html: str
    mentions: tuple[str, ...]
    quoted: tuple[str, ...]


def cook(raw: str, lookup: Lookup, *, topic_id: int | None = None) -> Cooked:
    """Cook the Markdown of a post in this topic. Never raises on any text; the HTML is on the allow-list."""
    env: EnvType = {"lookup": lookup, "topic_id": topic_id, "mentions": {}, "quoted": {}}
    html = allowed(_MARKDOWN.render(raw.replace("\x00", ""), env)).strip()
    return Cooked(html, tuple(env["mentions"]), tuple(env["quoted"]))


def excerpt(cooked: str) -> str:
    """The beginning of a cooked post without quotes and code, mentions kept as links, as oneboxes show it."""
    tree = LexborHTMLParser(f"<body>{cooked}</body>")
    tree.strip_tags(["aside", "pre", "details"], recursive=True)
    body = tree.body
    text = " ".join(body.text(separator=" ").split()) if body else ""
    short = escape(text[:EXCERPT_CHARS] + ("…" if len(text) > EXCERPT_CHARS else ""), quote=False)
    for link in tree.css("a.mention")[:20]:
        name = escape(link.text(), quote=False)
        short = short.replace(name, link.html or name, 1)
    return short


def _mention(name: str, lookup: Lookup) -> tuple[str, str | None]:
    canonical = lookup.canonical_name(name)
    if canonical:
        href = f"{lookup.base_path}/u/{quote(canonical.lower(), safe='')}"
        return f'<a class="mention" href="{href}">@{escape(name)}</a>', canonical
    if name.lower() in GROUPS:
        href = f"{lookup.base_path}/groups/{name.lower()}"
        return f'<a class="mention-group notify" href="{href}">@{escape(name)}</a>', None
    return f'<span class="mention">@{escape(name)}</span>', None


def _pieces(text: str, env: EnvType, quoted: bool) -> Iterator[Token]:
    """Cut a text into plain parts, mentions and emoji."""
    lookup: Lookup = env["lookup"]
    found = sorted([*MENTION.finditer(text), *emoji.IN_TEXT.finditer(text)], key=lambda m: m.start())
    at = 0
    for match in found:
        if match.start() < at:
            continue
        if match.re is MENTION:
            html, member = _mention(match[1], lookup)
            if member and not quoted:
                env["mentions"][member] = None
        else:
            name = match[1] if match[1] and emoji.character(match[1]) else match[2] and emoji.shortcode(match[2])
            if not name:
                continue
            html = emoji.image(name, lookup.base_path)
        if match.start() > at:
            yield Token("text", "", 0, content=text[at : match.start()])
        yield Token("html_inline", "", 0, content=html)
        at = match.end()
    if at < len(text):
        yield Token("text", "", 0, content=text[at:])


def _text_rule(state: StateCore) -> None:
    """Mentions and emoji in running text: never in links, never in code (code is no text token)."""
    quotes = 0
    for token in state.tokens:
        if token.type == "quote":
            quotes += token.nesting
        children: list[Token] = []
        links = 0
        for child in token.children or []:
            links += {"link_open": 1, "link_close": -1}.get(child.type, 0)
            if child.type == "text" and not links:
                children.extend(_pieces(child.content, state.env, quotes > 0))
            else:
                children.append(child)
        if token.children:
            token.children = children


def _lines(children: list[Token]) -> Iterator[list[Token]]:
    line: list[Token] = []
    for child in children:
        if child.type in {"softbreak", "hardbreak"}:
            yield line
            line = []
        else:
            line.append(child)
    yield line


def _onebox(line: list[Token], lookup: Lookup) -> str | None:
    if [t.type for t in line] != ["link_open", "text", "link_close"] or line[0].markup != "linkify":
        return None
    url = str(line[0].attrs["href"])
    match = re.fullmatch(re.escape(lookup.base_url) + r"/t/(?:[^/\s]+/)?(\d+)(?:/(\d+))?/?", url)
    preview = lookup.preview(int(match[1]), int(match[2] or 1)) if match and len(match[1]) < 10 else None
    if preview is None:
        return None
    href, title = escape(url), escape(preview.title)
    return (
        f'<aside class="onebox" data-onebox-src="{href}"><header class="source"><a href="{href}">'
        f'{escape(preview.username)}</a></header><article class="onebox-body"><h3><a href="{href}">{title}</a></h3>'
        f'<p>{preview.html}</p></article><div class="onebox-metadata"></div></aside>\n'
    )


def _onebox_rule(state: StateCore) -> None:
    """A bare address of this forum alone on its line, in a top-level paragraph, becomes a onebox."""
    out: list[Token] = []
    for token in state.tokens:
        boxes = {}
        if token.type == "inline" and token.level == 1 and out and out[-1].type == "paragraph_open":
            lines = list(_lines(token.children or []))
            boxes = {i: box for i, line in enumerate(lines) if (box := _onebox(line, state.env["lookup"]))}
            if boxes:
                opening = out.pop()
                for i, line in enumerate(lines):
                    if i in boxes:
                        out.append(Token("html_block", "", 0, content=boxes[i]))
                    elif line:
                        part = Token("inline", "", 0, children=line, level=1)
                        out += [opening, part, Token("paragraph_close", "p", -1, block=True)]
                out.append(Token("html_block", "", 0, content=""))
        if boxes or (token.type == "paragraph_close" and out and out[-1].type == "html_block" and not out[-1].content):
            continue
        out.append(token)
    state.tokens = out


def _fence(renderer: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    lang = (token.info.split() or ["auto"])[0]
    wrap = f' data-code-wrap="{escape(lang)}"' if token.info.strip() else ""
    return f'<pre{wrap}><code class="lang-{escape(lang)}">{escape(token.content, quote=False)}</code></pre>\n'


def _link(renderer: RendererHTML, tokens: list[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    href = str(token.attrs.get("href", ""))
    base = env["lookup"].base_url
    if href.startswith(("http://", "https://")) and href != base and not href.startswith(base + "/"):
        token.attrs["rel"] = "noopener nofollow ugc"
    return renderer.renderToken(tokens, index, options, env)


def _markdown() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True, "linkify": True, "breaks": True, "maxNesting": 40})
    md.enable(["table", "strikethrough", "linkify"])
    bbcode.install(md)
    md.core.ruler.after("linkify", "discourse_onebox", _onebox_rule)
    md.core.ruler.after("discourse_onebox", "discourse_text", _text_rule)
    md.add_render_rule("fence", _fence)
    md.add_render_rule("link_open", _link)
    md.add_render_rule("table_open", lambda *_: '<div class="md-table">\n<table>\n')
    md.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    return md


_MARKDOWN = _markdown()
