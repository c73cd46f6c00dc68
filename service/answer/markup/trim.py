"""Cuts a tree to a length at the end of a sentence, a line of code, an item or a row."""

import re
from collections.abc import Callable, Sequence

from service.answer.markup.tree import (
    Block,
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

Measure = Callable[[Sequence[Block]], int]
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'»”)\]]*(?=\s|\Z)|\n")


def cut(blocks: Sequence[Block], limit: int, measure: Measure, whole: int | None = None) -> tuple[Block, ...]:
    """As much of the beginning of `blocks` as measures at most `limit`; `whole` is what all of them do, if known."""
    whole = measure(blocks) if whole is None else whole
    if whole <= limit:
        return tuple(blocks)
    fitting = _longest(len(blocks), limit, lambda count: measure(blocks[:count]), whole)
    kept = tuple(blocks[:fitting])
    over = whole if fitting + 1 == len(blocks) else measure(blocks[: fitting + 1])
    shorter = _shortened(blocks[fitting], limit, lambda block: measure((*kept, block)), over)
    if shorter is not None:
        return (*kept, shorter)
    end = len(kept)
    while end and isinstance(kept[end - 1], Heading | Rule):
        end -= 1
    return kept[:end]


def _longest(most: int, limit: int, measure: Callable[[int], int], longest: int) -> int:
    """A count below `most` that measures at most `limit`: the largest, or one within a hundredth of the limit.

    Each guess supposes that length grows evenly between the two counts that enclose the answer, every other that the
    answer lies midway: a long draft is measured a few times only. `longest` is what `most` measures.
    """
    low, shortest = 0, measure(0)
    high = most
    middle = False
    while high - low > 1 and limit - shortest > limit // 100:
        even = low + (limit - shortest) * (high - low) // max(1, longest - shortest)
        guess = min(high - 1, max(low + 1, (low + high) // 2 if middle else even))
        size = measure(guess)
        middle = not middle
        if size <= limit:
            low, shortest = guess, size
        else:
            high, longest = guess, size
    return low


def _shortened(block: Block, limit: int, measure: Callable[[Block], int], whole: int) -> Block | None:
    """The beginning of a block that measures `whole`, more than `limit`; None where none of it fits."""
    match block:
        case Paragraph(inlines):
            size = sum(_size(node) for node in inlines)
            count = _longest(size, limit, lambda most: measure(Paragraph(_first(inlines, most))), whole)
            run = _at_sentence(_first(inlines, count))
            return Paragraph(run) if run else None
        case CodeBlock(info, text):
            rows = text.split("\n")
            count = _longest(len(rows), limit, lambda most: measure(CodeBlock(info, "\n".join(rows[:most]))), whole)
            return CodeBlock(info, "\n".join(rows[:count])) if count else None
        case Quote(inner):
            quoted = cut(inner, limit, lambda blocks: measure(Quote(tuple(blocks))), whole)
            return Quote(quoted) if quoted else None
        case Listing(start, tight, items):
            count = _longest(len(items), limit, lambda most: measure(Listing(start, tight, items[:most])), whole)
            kept = items[:count]
            part = cut(items[count], limit, lambda blocks: measure(Listing(start, tight, (*kept, tuple(blocks)))))
            kept = (*kept, part) if part else kept
            return Listing(start, tight, kept) if kept else None
        case Table(align, cells):
            count = _longest(len(cells), limit, lambda most: measure(Table(align, cells[: max(1, most)])), whole)
            return Table(align, cells[:count]) if count > 1 else None
        case Heading() | Rule():
            return None


def _size(node: Inline) -> int:
    match node:
        case Text(text) | CodeSpan(text):
            return max(1, len(text))
        case Styled(_, children):
            return sum(_size(child) for child in children)
        case _:
            return 1


def _first(inlines: Sequence[Inline], most: int) -> tuple[Inline, ...]:
    """The nodes that make up the first `most` characters; code and citations are taken whole or not at all."""
    kept: list[Inline] = []
    for node in inlines:
        size = _size(node)
        if size > most:
            if isinstance(node, Text) and most:
                kept.append(Text(node.text[:most]))
            elif isinstance(node, Styled) and (children := _first(node.children, most)):
                kept.append(Styled(node.mark, children))
            break
        kept.append(node)
        most -= size
    return tuple(kept)


def _at_sentence(inlines: tuple[Inline, ...]) -> tuple[Inline, ...]:
    """The run up to its last full sentence, or to its last word where there is none."""
    for index in range(len(inlines) - 1, -1, -1):
        node = inlines[index]
        if isinstance(node, Text):
            ends = [match.end() for match in _SENTENCE_END.finditer(node.text)]
            if ends:
                return (*inlines[:index], Text(node.text[: ends[-1]].rstrip()))
    last = inlines[-1] if inlines else None
    if isinstance(last, Text):
        return merged((*inlines[:-1], Text(" ".join(last.text.rsplit(None, 1)[:1]))))
    return inlines
