"""The constructs that a posted answer may be made of, as frozen nodes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from unicodedata import category

Mark = Literal["_", "**", "~~"]


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; a newline in it is a soft line break."""

    text: str


@dataclass(frozen=True, slots=True)
class CodeSpan:
    text: str


@dataclass(frozen=True, slots=True)
class Cite:
    """A citation of source `n`, counted from 1."""

    n: int


@dataclass(frozen=True, slots=True)
class Styled:
    """Emphasis, strong emphasis or strikethrough, by the mark it is written with."""

    mark: Mark
    children: tuple["Inline", ...]


Inline = Text | CodeSpan | Cite | Styled


@dataclass(frozen=True, slots=True)
class Paragraph:
    inlines: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    inlines: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    info: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A list; `start` is the first number of an ordered one, None for bullets."""

    start: int | None
    tight: bool
    items: tuple[tuple["Block", ...], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `rows[0]` is its head, `align` holds one of "", "left", "center", "right" a column."""

    align: tuple[str, ...]
    rows: tuple[tuple[tuple[Inline, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal rule."""


Block = Paragraph | Heading | CodeBlock | Quote | Listing | Table | Rule


def inline_runs(blocks: Iterable[Block], *, quotes: bool = True) -> Iterator[tuple[Inline, ...]]:
    """Every run of inline nodes in reading order, those inside quotes only when `quotes` is set."""
    for block in blocks:
        match block:
            case Paragraph(inlines) | Heading(_, inlines):
                yield inlines
            case Quote(inner):
                if quotes:
                    yield from inline_runs(inner)
            case Listing(_, _, items):
                for item in items:
                    yield from inline_runs(item, quotes=quotes)
            case Table(_, rows):
                for row in rows:
                    yield from row
            case CodeBlock() | Rule():
                pass


def leaves(inlines: Iterable[Inline]) -> Iterator[Text | CodeSpan | Cite]:
    """The nodes of a run without their styling."""
    for node in inlines:
        if isinstance(node, Styled):
            yield from leaves(node.children)
        else:
            yield node


def plain(inlines: Iterable[Inline]) -> str:
    """The words of a run, code and citations left out."""
    return "".join(node.text if isinstance(node, Text) else " " for node in leaves(inlines))


def append(run: list[Inline], node: Inline) -> None:
    """Add a node to a run: an empty text not at all, a text after a text as one with it."""
    last = run[-1] if run else None
    if isinstance(node, Text) and isinstance(last, Text):
        run[-1] = Text(last.text + node.text)
    elif not isinstance(node, Text) or node.text:
        run.append(node)


def merged(nodes: Iterable[Inline]) -> tuple[Inline, ...]:
    """The run with neighbouring texts made one, and empty ones dropped."""
    run: list[Inline] = []
    for node in nodes:
        append(run, node)
    return tuple(run)


def citations(blocks: Iterable[Block]) -> tuple[int, ...]:
    """The numbers of the sources cited, each once, in reading order."""
    return tuple(dict.fromkeys(node.n for run in inline_runs(blocks) for node in leaves(run) if isinstance(node, Cite)))


def rewritten(
    blocks: Iterable[Block], rewrite: Callable[[tuple[Inline, ...]], tuple[Inline, ...]]
) -> tuple[Block, ...]:
    """The blocks with every run rewritten; what holds no word, code or citation afterwards is dropped."""
    return tuple(each for block in blocks if (each := _rewritten(block, rewrite)) is not None)


def _rewritten(block: Block, rewrite: Callable[[tuple[Inline, ...]], tuple[Inline, ...]]) -> Block | None:
    match block:
        case Paragraph(inlines):
            run = rewrite(inlines)
            return Paragraph(run) if says_something(run) else None
        case Heading(level, inlines):
            run = rewrite(inlines)
            return Heading(level, run) if says_something(run) else None
        case Quote(inner):
            quoted = rewritten(inner, rewrite)
            return Quote(quoted) if quoted else None
        case Listing(start, tight, items):
            kept = tuple(item for each in items if (item := rewritten(each, rewrite)))
            return Listing(start, tight, kept) if kept else None
        case Table(align, rows):
            return Table(align, tuple(tuple(rewrite(cell) for cell in row) for row in rows))
        case CodeBlock() | Rule():
            return block


def says_something(inlines: Iterable[Inline]) -> bool:
    """Whether a run holds anything but punctuation and spaces."""
    return any(
        not isinstance(node, Text) or any(category(char)[0] in "LN" or category(char) == "So" for char in node.text)
        for node in leaves(inlines)
    )


def lines(inlines: Iterable[Inline]) -> list[tuple[Inline, ...]]:
    """The run cut at its line breaks."""
    cut: list[list[Inline]] = [[]]
    for node in inlines:
        match node:
            case Text(text):
                first, *more = text.split("\n")
                parts: list[tuple[Inline, ...]] = [(Text(part),) if part else () for part in (first, *more)]
            case Styled(mark, children):
                parts = [(Styled(mark, line),) if line else () for line in lines(children)]
            case _:
                parts = [(node,)]
        cut[-1].extend(parts[0])
        cut.extend(list(part) for part in parts[1:])
    return [tuple(line) for line in cut]


def joined(cut: Iterable[tuple[Inline, ...]]) -> tuple[Inline, ...]:
    """The run whose lines these are."""
    run: list[Inline] = []
    for index, line in enumerate(cut):
        run += [Text("\n"), *line] if index else line
    return tuple(run)
