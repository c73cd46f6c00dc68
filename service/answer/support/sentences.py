"""The sentences of a draft with the sources they cite, and the draft without those that don't hold."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    Table,
    Text,
    leaves,
    merged,
    says_something,
)
from service.answer.support.claims import Support

_END = re.compile(r"(?<=[.!?…])[\"'»”)*_]*(?:\s+(?=[^a-zà-ÿ\s])|$)|\n")
_ENDED = re.compile(r"[.!?…][\"'»”)*_]*\s*$")
_GAP = re.compile(r" ([.,…])(?= |$)")  # what a citation before a full stop leaves
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|ex|env|approx|min|max|mr|mrs|dr|p|no)\.$", re.IGNORECASE)

Run = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """What one sentence says, and the sources it cites; without any, those of its paragraph, and not `own`.

    `spans` is the inline code in it. A block of `code` is a claim too, by its whole text.
    """

    text: str
    cites: tuple[int, ...]
    own: bool
    spans: tuple[str, ...] = ()
    code: bool = False

    @property
    def says_something(self) -> bool:
        """Whether there is a word to judge: a citation alone says nothing."""
        return any(char.isalnum() for char in self.text)


def claims(blocks: Iterable[Block]) -> tuple[Claim, ...]:
    """All that the blocks say, each once, in reading order: nothing with a word in it is left out.

    Sentences of paragraphs and headings, the head's cells and the rows of tables, and blocks of code.
    """
    return tuple(dict.fromkeys(_claims(blocks)))


def revised(blocks: Iterable[Block], judged: Mapping[Claim, Support], hedge: str) -> tuple[Block, ...]:
    """The blocks without what nothing supports or nobody judged, and with the `hedge` after what is weak.

    A row of a table stays whole or goes; so does a block of code. A cell of a table's head is emptied.
    """
    return _Revision(judged, hedge).blocks(blocks)


@dataclass(frozen=True, slots=True)
class _Revision:
    judged: Mapping[Claim, Support]
    hedge: str

    def blocks(self, blocks: Iterable[Block]) -> tuple[Block, ...]:
        return tuple(each for block in blocks if (each := self._block(block)) is not None)

    def _block(self, block: Block) -> Block | None:
        match block:
            case Paragraph(inlines):
                run = self._run(sentences_of(inlines))
                return Paragraph(run) if says_something(run) else None
            case Heading(level, inlines):
                run = self._run(sentences_of(inlines))
                return Heading(level, run) if says_something(run) else None
            case CodeBlock():
                return block if self._support(_code_claim(block)) is Support.FULL else None
            case Quote(inner):
                quoted = self.blocks(inner)
                return Quote(quoted) if quoted else None
            case Listing(start, tight, items):
                kept = tuple(item for each in items if (item := self.blocks(each)))
                return Listing(start, tight, kept) if kept else None
            case Table(align, (head, *rows)):
                kept_head = tuple(self._run([cell]) for cell in head)
                body = tuple(left for row in rows if (left := self._row(row)))
                stays = body or (not rows and kept_head == head)
                return Table(align, (kept_head, *body)) if stays else None
            case _:
                return block

    def _support(self, claim: Claim) -> Support:
        return self.judged.get(claim, Support.NONE)

    def _run(self, sentences: Sequence[Run]) -> Run:
        kept: list[Inline] = []
        for claim, nodes in _claimed(sentences):
            match self._support(claim):
                case Support.FULL:
                    kept += nodes
                case Support.WEAK:
                    kept += (*nodes, Text(f" {self.hedge} "))
                case Support.NONE:
                    continue
        return merged(kept)

    def _row(self, row: tuple[Run, ...]) -> tuple[Run, ...]:
        """The row, hedged in its last cell; empty when it goes."""
        ((claim, _),) = _claimed([_whole_row(row)])
        match self._support(claim):
            case Support.FULL:
                return row
            case Support.WEAK:
                return (*row[:-1], merged((*row[-1], Text(f" {self.hedge}"))))
            case Support.NONE:
                return ()


def _claims(blocks: Iterable[Block]) -> Iterator[Claim]:
    for block in blocks:
        match block:
            case Paragraph(inlines) | Heading(_, inlines):
                yield from _claims_of(sentences_of(inlines))
            case CodeBlock():
                yield _code_claim(block)
            case Quote(inner):
                yield from _claims(inner)
            case Listing(_, _, items):
                for item in items:
                    yield from _claims(item)
            case Table(_, (head, *rows)):
                for run in (*head, *map(_whole_row, rows)):
                    yield from _claims_of([run])
            case _:
                pass


def _claims_of(sentences: Sequence[Run]) -> Iterator[Claim]:
    return (claim for claim, _ in _claimed(sentences))


def _code_claim(block: CodeBlock) -> Claim:
    return Claim(block.text, (), own=False, code=True)


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
        spans = tuple(node.text for node in leaves(run) if isinstance(node, CodeSpan))
        claimed.append((Claim(_words(run), own or following or before, bool(own), spans), run))
    return claimed


def _words(run: Run) -> str:
    """What is said, with the code in it."""
    text = "".join(node.text if isinstance(node, Text | CodeSpan) else " " for node in leaves(run))
    return _GAP.sub(r"\1", " ".join(text.split()))
