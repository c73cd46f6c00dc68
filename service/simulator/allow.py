"""The HTML that may stand in a post: everything else is dropped, as Discourse's allow-list does."""

import re
from html import escape
from html.parser import HTMLParser

MAX_DEPTH = 100
VOID = frozenset({"br", "hr", "img"})
SILENT = frozenset({"script", "style", "iframe", "object", "noscript", "textarea", "title", "svg", "math", "template"})
"""Elements whose content goes with them."""

TAGS = frozenset(
    re.findall(
        r"\w+",
        """
        a abbr article aside b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 header hr i img ins kbd
        li mark ol p pre q s small span strong sub summary sup table tbody td tfoot th thead tr u ul
        """,
    )
)
CLASSES: dict[str, re.Pattern[str]] = {
    "a": re.compile(r"mention|mention-group|notify|onebox|lightbox|attachment"),
    "span": re.compile(r"mention"),
    "aside": re.compile(r"quote|no-group|onebox|quote-modified"),
    "article": re.compile(r"onebox-body"),
    "header": re.compile(r"source"),
    "div": re.compile(r"title|quote-controls|md-table|meta|onebox-metadata"),
    "details": re.compile(r"elided"),
    "img": re.compile(r"emoji|only-emoji|avatar"),
    "code": re.compile(r"lang-[\w+#.-]+"),
}
ATTRIBUTES: dict[str, frozenset[str]] = {
    "a": frozenset({"href", "title", "rel"}),
    "img": frozenset({"src", "alt", "title", "width", "height", "loading"}),
    "aside": frozenset({"data-username", "data-post", "data-topic", "data-onebox-src"}),
    "pre": frozenset({"data-code-wrap"}),
    "ol": frozenset({"start"}),
    "details": frozenset({"open"}),
    "abbr": frozenset({"title"}),
    "th": frozenset({"colspan", "rowspan"}),
    "td": frozenset({"colspan", "rowspan"}),
}
SAFE_URL = re.compile(r"(https?://|mailto:|/(?!/)|#)[^\x00-\x20\\]*", re.IGNORECASE)


class _Writer(HTMLParser):
    """Writes the allowed part of what it reads, balanced; all text and values are escaped again."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.open: list[str] = []
        self.silent: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.silent:
            return
        if tag in SILENT:
            self.silent = tag
        elif tag in TAGS and len(self.open) < MAX_DEPTH:
            kept = "".join(f' {k}="{escape(v)}"' for k, v in _attributes(tag, attrs))
            self.out.append(f"<{tag}{kept}>")
            if tag not in VOID:
                self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.silent:
            if tag == self.silent:
                self.silent = None
        elif tag in self.open:
            while (inner := self.open.pop()) != tag:
                self.out.append(f"</{inner}>")
            self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.out.append(escape(data, quote=False))


def _attributes(tag: str, attrs: list[tuple[str, str | None]]) -> list[tuple[str, str]]:
    kept = []
    for name, value in attrs:
        text = value or ""
        if name == "class" and tag in CLASSES:
            names = [c for c in text.split() if CLASSES[tag].fullmatch(c)]
            if names:
                kept.append((name, " ".join(names)))
        elif name in ATTRIBUTES.get(tag, ()) and (name not in {"href", "src"} or SAFE_URL.fullmatch(text)):
            kept.append((name, text))
    return kept


def allowed(html: str) -> str:
    """The same HTML with only allowed elements, classes, attributes and addresses; always balanced."""
    writer = _Writer()
    writer.feed(html)
    writer.close()
    return "".join([*writer.out, *(f"</{tag}>" for tag in reversed(writer.open))])
