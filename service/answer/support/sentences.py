"""The sentences of a draft with the sources they cite, and the draft without those that don't hold."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.answer.markup.tree import (
    Block,
    Cite,
    CodeSpan,
    Inline,
    Listing,
    Paragraph,
    Quote,
    Table,
    Text,
    leaves,
    merged,
    says_something,
)
from service.answer.support.claims import Support

LONGEST_CLAIM = 1_000

_END = re.compile(r"(?<=[.!?…])[\"'»”)*_]*(?:\s+(?=[^a-zà-ÿ\s])|$)|\n")
_ENDED = re.compile(r"[.!?…][\"'»”)*_]*\s*$")
_GAP = re.compile(r" ([.,…])(?= |$)")  # what a citation before a full stop leaves
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|ex|env|approx|min|max|mr|mrs|dr|p|no)\.$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one sentence says, and the sources it cites; without any, those of its paragraph, and not `own`."""

    text: str
    cites: tuple[int, ...]
    own: bool


Run = tuple[Inline, ...]


def claims(blocks: Iterable[Block]) -> tuple[Claim, ...]:
    """The sentences of paragraphs and the rows of tables, each once, in reading order; headings and code have none."""
    return tuple(dict.fromkeys(claim for run in _runs(blocks) for claim, _ in _claimed(run)))


def revised(blocks: Iterable[Block], judged: Mapping[Claim, Support], hedge: str) -> tuple[Block, ...]:
    """The blocks without the sentences that nothing supports, and with the `hedge` after those that are weak.

    A row of a table stays whole or goes.
    """

    def revise(sentences: Sequence[tuple[Claim, Run]]) -> Run:
        kept: list[Inline] = []
        for claim, nodes in sentences:
            match judged.get(claim, Support.FULL):
                case Support.FULL:
                    kept += nodes
                case Support.WEAK:
                    kept += (*nodes, Text(f" {hedge} "))
                case Support.NONE:
                    continue
        return merged(kept)

    return tuple(each for block in blocks if (each := _revised(block, revise)) is not None)


Revise = Callable[[Sequence[tuple[Claim, Run]]], Run]


def _revised(block: Block, revise: Revise) -> Block | None:
    match block:
        case Paragraph(inlines):
            run = revise(_claimed(sentences_of(inlines)))
            return Paragraph(run) if says_something(run) else None
        case Quote(inner):
            quoted = tuple(each for one in inner if (each := _revised(one, revise)) is not None)
            return Quote(quoted) if quoted else None
        case Listing(start, tight, items):
            revised_items = (
                tuple(each for one in item if (each := _revised(one, revise)) is not None) for item in items
            )
            kept = tuple(item for item in revised_items if item)
            return Listing(start, tight, kept) if kept else None
        case Table(align, rows):
            body = tuple(row for row in rows[1:] if revise(_claimed([_whole_row(row)])))
            return Table(align, (*rows[:1], *body)) if body or not rows[1:] else None
        case _:
            return block


def _runs(blocks: Iterable[Block]) -> Iterator[list[Run]]:
    for block in blocks:
        match block:
            case Paragraph(inlines):
                yield sentences_of(inlines)
            case Quote(inner):
                yield from _runs(inner)
            case Listing(_, _, items):
                for item in items:
                    yield from _runs(item)
            case Table(_, rows):
                for row in rows[1:]:
                    yield [_whole_row(row)]
            case _:
                pass


def _whole_row(row: tuple[Run, ...]) -> Run:
    return tuple(node for cell in row for node in (*cell, Text(" ")))


def sentences_of(run: Iterable[Inline]) -> list[Run]:
    """The run cut into sentences: citations after the full stop belong to the sentence before it."""
    sentences: list[Run] = []
    current: list[Inline] = []
    ended = False
    for node in _pieces(run):
        says = not isinstance(node, Cite) and says_something([node])
        if ended and says:
            sentences.append(tuple(current))
            current, ended = [], False
        current.append(node)
        ended = ended or _ends(node)
    return [*sentences, tuple(current)] if current else sentences


def _pieces(run: Iterable[Inline]) -> Iterator[Inline]:
    """The nodes, with texts cut after each sentence's end."""
    for node in run:
        if not isinstance(node, Text):
            yield node
            continue
        start = 0
        for end in _END.finditer(node.text):
            if end.end() > start and not _ABBREVIATION.search(node.text, start, end.start()):
                yield Text(node.text[start : end.end()])
                start = end.end()
        if start < len(node.text):
            yield Text(node.text[start:])


def _ends(node: Inline) -> bool:
    if isinstance(node, Text):
        return node.text.endswith("\n") or bool(_ENDED.search(node.text))
    last = [leaf for leaf in leaves([node]) if isinstance(leaf, Text)]
    return not isinstance(node, Cite | CodeSpan) and bool(last and _ENDED.search(last[-1].text))


def _claimed(sentences: Sequence[Run]) -> list[tuple[Claim, Run]]:
    cited = [tuple(dict.fromkeys(node.n for node in leaves(run) if isinstance(node, Cite))) for run in sentences]
    claimed: list[tuple[Claim, Run]] = []
    for at, run in enumerate(sentences):
        own = cited[at]
        following = next((cites for cites in cited[at:] if cites), ())
        before = next((cites for cites in reversed(cited[:at]) if cites), ())
        claimed.append((Claim(_words(run), own or following or before, bool(own)), run))
    return claimed


def _words(run: Run) -> str:
    """What is said, with the code in it."""
    text = "".join(node.text if isinstance(node, Text | CodeSpan) else " " for node in leaves(run))
    return _GAP.sub(r"\1", " ".join(text.split()))[:LONGEST_CLAIM]
