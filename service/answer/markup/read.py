"""Parses a draft into the tree of allowed constructs; what has no node there is gone."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from service.answer.markup.rules import Reading, install, normal_label
from service.answer.markup.scrub import closed_names, scrub
from service.answer.markup.tree import (
    Block,
    Cite,
    CodeBlock,
    CodeSpan,
    Heading,
    Inline,
    Listing,
    Mark,
    Paragraph,
    Quote,
    Rule,
    Styled,
    Table,
    Text,
    append,
    merged,
)

_DEFINITION = re.compile(r"\s{0,3}\[(?P<label>[^\[\]]{1,200})\]:[ \t]*(?P<rest>.*)")
_DESTINATION = re.compile(r"<?\S+>?(?:[ \t]+(?:\".*\"|'.*'|\(.*\)))?[ \t]*")
_MARKS: dict[str, Mark] = {"em": "_", "strong": "**", "s": "~~"}
_INFO = re.compile(r"[\w+#.-]{1,30}", re.ASCII)


def read(text: str, sources: int, removed: Counter[str]) -> tuple[Block, ...]:
    """The draft as allowed constructs with clean text, citing sources 1 to `sources`; counts what it drops."""
    reading = Reading(sources, removed, closed_names(text))
    tokens = _parser().parse(text, {"reading": reading})
    return _blocks(tokens, reading)


@cache
def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["html_block", "reference"])
    install(md)
    md.core.ruler.before("inline", "definitions", _drop_definitions)
    return md


def _drop_definitions(state: StateCore) -> None:
    """Take the lines that define a link or a footnote out of the paragraphs, and remember the labels."""
    reading: Reading = state.env["reading"]
    for before, token in zip(state.tokens, state.tokens[1:], strict=False):
        if token.type != "inline" or before.type != "paragraph_open" or "]:" not in token.content:
            continue
        kept: list[str] = []
        awaited = False
        for line in token.content.split("\n"):
            match = _DEFINITION.fullmatch(line)
            label = match["label"] if match else ""
            if match and (label[0] == "^" or label.strip().isdecimal() or _DESTINATION.fullmatch(match["rest"] or "-")):
                reading.removed["definition"] += 1
                reading.references.add(normal_label(label))
                awaited = not match["rest"]
            elif awaited and _DESTINATION.fullmatch(line.strip()):
                awaited = False
            else:
                awaited = False
                kept.append(line)
        token.content = "\n".join(kept)


def _blocks(tokens: Sequence[Token], reading: Reading) -> tuple[Block, ...]:
    blocks: list[Block] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        end = _end(tokens, index)
        inner = tokens[index + 1 : end]
        index = end + 1
        block = _block(token, inner, reading)
        if block is not None:
            blocks.append(block)
    return tuple(blocks)


def _end(tokens: Sequence[Token], start: int) -> int:
    """The index of the token that closes the one at `start` (itself when it stands alone)."""
    level = 0
    for index in range(start, len(tokens)):
        level += tokens[index].nesting
        if level <= 0:
            return index
    return len(tokens) - 1


def _block(token: Token, inner: Sequence[Token], reading: Reading) -> Block | None:
    match token.type:
        case "paragraph_open":
            inlines = _run(inner, reading)
            return Paragraph(inlines) if inlines else None
        case "heading_open":
            inlines = _one_line(_run(inner, reading))
            return Heading(int(token.tag[1:]), inlines) if inlines else None
        case "fence" | "code_block":
            info = _INFO.match(token.info.strip()) if token.info else None
            text = token.content.removesuffix("\n")
            return CodeBlock(info[0] if info else "", text) if text.strip() else None
        case "blockquote_open":
            quoted = _blocks(inner, reading)
            return Quote(quoted) if quoted else None
        case "bullet_list_open" | "ordered_list_open":
            return _listing(token, inner, reading)
        case "table_open":
            return _table(inner, reading)
        case "hr":
            return Rule()
        case _:
            return None


def _listing(token: Token, inner: Sequence[Token], reading: Reading) -> Listing | None:
    items: list[tuple[Block, ...]] = []
    index = 0
    while index < len(inner):
        end = _end(inner, index)
        item = _blocks(inner[index + 1 : end], reading)
        if item:
            items.append(item)
        index = end + 1
    if not items:
        return None
    hidden = [each.hidden for each in inner if each.type == "paragraph_open" and each.level == token.level + 2]
    start = int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None
    return Listing(start, all(hidden), tuple(items))


def _table(inner: Sequence[Token], reading: Reading) -> Table:
    rows: list[tuple[tuple[Inline, ...], ...]] = []
    cells: list[tuple[Inline, ...]] = []
    align: list[str] = []
    for index, token in enumerate(inner):
        if token.type in ("th_open", "td_open"):
            cells.append(_one_line(_run(inner[index + 1 : index + 2], reading)))
            if token.type == "th_open":
                align.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
        elif token.type == "tr_close":
            rows.append(tuple(cells))
            cells = []
    return Table(tuple(align), tuple(rows))


def _one_line(inlines: tuple[Inline, ...]) -> tuple[Inline, ...]:
    def flat(node: Inline) -> Inline:
        match node:
            case Text(text):
                return Text(text.replace("\n", " "))
            case Styled(mark, children):
                return Styled(mark, tuple(flat(child) for child in children))
            case _:
                return node

    return tuple(flat(node) for node in inlines)


def _run(inner: Sequence[Token], reading: Reading) -> tuple[Inline, ...]:
    children = inner[0].children if inner and inner[0].type == "inline" else None
    tidy = _tidy(_scrub_run(_inlines(children or []), reading))
    return _outer_space(tidy)[1]


def _inlines(tokens: Iterable[Token]) -> tuple[Inline, ...]:
    """The nodes of a run with neighbouring text merged, so that nothing hides in the seams."""
    stack: list[list[Inline]] = [[]]
    for token in tokens:
        match token.type:
            case "text" | "text_special":
                stack[-1].append(Text(token.content))
            case "softbreak" | "hardbreak":
                stack[-1].append(Text("\n"))
            case "code_inline":
                stack[-1].append(CodeSpan(token.content))
            case "cite":
                stack[-1].append(Cite(token.meta["n"]))
            case "em_open" | "strong_open" | "s_open":
                stack.append([])
            case "em_close" | "strong_close" | "s_close":
                children = stack.pop()
                stack[-1].append(Styled(_MARKS[token.type.removesuffix("_close")], merged(children)))
    return merged(stack[0])


def _scrub_run(nodes: Sequence[Inline], reading: Reading) -> list[Inline]:
    scrubbed: list[Inline] = []
    for node in nodes:
        match node:
            case Text(text):
                scrubbed += scrub(text, reading.closed, reading.removed)
            case Styled(mark, children):
                scrubbed.append(Styled(mark, tuple(_scrub_run(children, reading))))
            case CodeSpan(text):
                if text.strip():
                    scrubbed.append(node)
            case Cite():
                scrubbed.append(node)
    return scrubbed


def _tidy(nodes: Iterable[Inline], within: frozenset[Mark] = frozenset()) -> tuple[Inline, ...]:
    """The run without empty or doubled styling, spaces moved out of it, neighbours of one style joined."""
    tidy: list[Inline] = []
    for node in nodes:
        if not isinstance(node, Styled):
            append(tidy, node)
            continue
        if node.mark in within:
            for child in _tidy(node.children, within):
                append(tidy, child)
            continue
        before, children, after = _outer_space(_tidy(node.children, within | {node.mark}))
        append(tidy, Text(before))
        last = tidy[-1] if tidy else None
        if isinstance(last, Styled) and last.mark == node.mark:
            tidy[-1] = Styled(node.mark, merged((*last.children, *children)))
        elif children:
            tidy.append(Styled(node.mark, children))
        append(tidy, Text(after))
    return tuple(tidy)


def _outer_space(children: Sequence[Inline]) -> tuple[str, tuple[Inline, ...], str]:
    """The space before the first word, the run without it, and the space after the last."""
    before = after = ""
    run = tuple(children)
    if run and isinstance(run[0], Text):
        text = run[0].text
        before = text[: len(text) - len(text.lstrip())]
        run = (Text(text.lstrip()), *run[1:]) if text.strip() else run[1:]
    if run and isinstance(run[-1], Text):
        text = run[-1].text
        after = text[len(text.rstrip()) :]
        run = (*run[:-1], Text(text.rstrip())) if text.strip() else run[:-1]
    return before, run, after
