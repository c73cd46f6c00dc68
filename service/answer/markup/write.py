"""Writes the tree of allowed constructs as Markdown that reads back as that tree; citations by the caller's choice."""

import re
from collections.abc import Callable, Iterable, Sequence
from unicodedata import category

from service.answer.markup.tree import (
    Block,
    Cite,
    CodeBlock,
    CodeSpan,
    Heading,
    Inline,
    Listing,
    Paragraph,
    Quote,
    Rule,
    Styled,
    Table,
    Text,
    merged,
)

WriteCite = Callable[[int], str]

_ALWAYS = re.compile(r"[`\[]|\\(?=[!-/:-@\[-`{-~]|\s*(?:\n|\Z))|~|\](?=[(\[])|&(?=#?\w{1,40};)|<(?=[A-Za-z/!?])")
_STAR = re.compile(r"(?<!\w )\*|\*(?! \w)")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_ENTITY = {"&": "&amp;", "<": "&lt;"}
_LINE_START = re.compile(r"#{1,6}(?=\s|\Z)|>|[-+*](?=\s|\Z)|(?P<number>\d{1,9})(?P<dot>[.)])(?=\s|\Z)|[=-]+\s*\Z")
_RULER = re.compile(r"(?=.*-)[\s|:-]+\Z")


def write(blocks: Iterable[Block], cite: WriteCite) -> str:
    """The Markdown of `blocks`, without a newline at the end; `cite` writes the citation of a source."""
    written: list[str] = []
    bullet = False
    before: Block | None = None
    for block in blocks:
        # Two lists in a row would read back as one unless their marks differ.
        neighbour = (
            isinstance(before, Listing)
            and isinstance(block, Listing)
            and (before.start is None) == (block.start is None)
        )
        bullet = not bullet if neighbour else False
        text = _block(block, cite, other_mark=bullet)
        if text:
            written.append(text)
            before = block
    return "\n\n".join(written)


def _block(block: Block, cite: WriteCite, *, other_mark: bool) -> str:
    match block:
        case Paragraph(inlines):
            return _lines(inlines, cite)
        case Heading(level, inlines):
            text = " ".join(_inlines(inlines, cite).split())
            return f"{'#' * level} {re.sub(r'#(?=#*$)', lambda _: chr(92) + '#', text)}" if text else ""
        case CodeBlock(info, code):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            return f"{fence}{info}\n{code}\n{fence}"
        case Quote(inner):
            text = write(inner, cite)
            return "\n".join(f"> {line}" if line else ">" for line in text.split("\n")) if text else ""
        case Listing():
            return _listing(block, cite, other_mark=other_mark)
        case Table(align, rows):
            return _table(align, rows, cite)
        case Rule():
            return "***"


def _listing(block: Listing, cite: WriteCite, *, other_mark: bool) -> str:
    texts: list[str] = []
    loose_paragraphs = not block.tight and any(isinstance(inner, Paragraph) for item in block.items for inner in item)
    tight = not loose_paragraphs and all(_fits_tight(item) for item in block.items)
    for index, item in enumerate(block.items):
        if block.start is None:
            mark = "+" if other_mark else "-"
        else:
            mark = f"{(block.start + index) % 10**9}{')' if other_mark else '.'}"
        text = "\n".join(write([inner], cite) for inner in item) if tight else write(item, cite)
        if text:
            first, *rest = text.split("\n")
            texts.append(
                "\n".join([f"{mark} {first}", *(f"{' ' * (len(mark) + 1)}{line}" if line else "" for line in rest)])
            )
    return ("\n" if tight else "\n\n").join(texts)


def _fits_tight(item: Sequence[Block]) -> bool:
    """Whether an item reads back the same without blank lines: one block, or a paragraph and tight lists under it."""
    if len(item) == 1:
        return not isinstance(item[0], Listing) or item[0].tight
    return (
        len(item) == 2
        and isinstance(item[0], Paragraph)
        and isinstance(item[1], Listing)
        and item[1].tight
        and all(_fits_tight(inner) for inner in item[1].items)
    )


def _table(align: Sequence[str], rows: Sequence[Sequence[Sequence[Inline]]], cite: WriteCite) -> str:
    dashes = {"left": ":---", "center": ":---:", "right": "---:"}

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    head, *body = [[" ".join(_inlines(cell, cite).split()).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join([line(head), line(dashes.get(each, "---") for each in align), *map(line, body)])


def _lines(inlines: Sequence[Inline], cite: WriteCite) -> str:
    """A paragraph: no line of it may start another construct."""
    kept = [line for each in _inlines(inlines, cite).split("\n") if (line := each.strip())]
    return "\n".join(_guarded(line) for line in kept)


def _guarded(line: str) -> str:
    start = _LINE_START.match(line)
    if start and start["number"]:
        return f"{start['number']}\\{line[len(start['number']) :]}"
    return f"\\{line}" if start or _RULER.match(line) else line


def _inlines(inlines: Sequence[Inline], cite: WriteCite, before: str = "", after: str = "") -> str:
    """The run as one string; `before` and `after` are the characters that will stand around it."""
    while True:
        out, unread = _attempt(inlines, cite, before, after)
        if not unread:
            return out
        # A style that would not read back as one is dropped, and its text becomes one with its neighbours.
        inlines = merged(
            part for index, node in enumerate(inlines) for part in (_inner(node) if index in unread else (node,))
        )


def _inner(node: Inline) -> tuple[Inline, ...]:
    return node.children if isinstance(node, Styled) else (node,)


def _attempt(inlines: Sequence[Inline], cite: WriteCite, before: str, after: str) -> tuple[str, set[int]]:
    """The run as written, and the indexes of the styled nodes that would not read back as such."""
    parts = [_leaf(node, cite) for node in inlines]
    unread: set[int] = set()
    out: list[str] = []
    previous = before
    for index, node in enumerate(inlines):
        following = parts[index + 1][:1] if index + 1 < len(parts) else after
        if isinstance(node, Styled):
            inner = _inlines(node.children, cite, before=node.mark[0], after=node.mark[0])
            if not inner or not _may_stand(node.mark, previous, inner, following):
                unread.add(index)
            parts[index] = f"{node.mark}{inner}{node.mark}"
        out += (" " if _needs_space(inlines, index, previous, parts[index]) else "", parts[index])
        previous = parts[index][-1:] or previous
    return "".join(out), unread


def _needs_space(inlines: Sequence[Inline], index: int, previous: str, part: str) -> bool:
    """Whether what stands before a citation or a piece of code would change how it is read."""
    node = inlines[index]
    if isinstance(node, Cite):
        return bool(previous) and not previous.isspace() and previous not in "([{«“\"'*_~>"
    after_cite = index > 0 and isinstance(inlines[index - 1], Cite) and part[:1] in ("(", "`")
    return after_cite or (isinstance(node, CodeSpan) and previous == "`")


def _leaf(node: Inline, cite: WriteCite) -> str:
    match node:
        case Text(text):
            return escaped(text)
        case CodeSpan(code):
            return _code_span(code)
        case Cite(n):
            return cite(n)
        case Styled(mark):
            return mark


def _code_span(code: str) -> str:
    runs = {len(run) for run in re.findall("`+", code)}
    ticks = "`" * next(length for length in range(1, len(runs) + 2) if length not in runs)
    pad = " " if code[0] == "`" or code[-1] == "`" or (code[0] == " " and code[-1] == " ") else ""
    return f"{ticks}{pad}{code}{pad}{ticks}"


def _may_stand(mark: str, before: str, inner: str, after: str) -> bool:
    """Whether the marks around `inner` will be read as styling (CommonMark's flanking rules, a little stricter)."""
    if mark[0] in (before, after, inner[0], inner[-1]):
        return False
    opens = not _is_mark(inner[0]) or not before or before.isspace() or _is_mark(before)
    closes = not _is_mark(inner[-1]) or not after or after.isspace() or _is_mark(after)
    if mark == "_":
        opens = opens and (not before or before.isspace() or _is_mark(before))
        closes = closes and (not after or after.isspace() or _is_mark(after))
    return opens and closes and not inner[0].isspace() and not inner[-1].isspace()


def _is_mark(char: str) -> bool:
    return category(char)[0] in "PS"


def escaped(text: str) -> str:
    def escape(match: re.Match[str]) -> str:
        return _ENTITY.get(match[0]) or f"\\{match[0]}"

    text = _ALWAYS.sub(escape, text)
    return _UNDERSCORE.sub(r"\\_", _STAR.sub(r"\\*", text))
