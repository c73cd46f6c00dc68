"""The list of sources that a model appends to its answer: found by its heading and taken off."""

import re
from collections import Counter
from collections.abc import Sequence

from service.answer.markup.tree import (
    Block,
    Cite,
    CodeBlock,
    Heading,
    Inline,
    Listing,
    Paragraph,
    Rule,
    Table,
    inline_runs,
    joined,
    leaves,
    lines,
    plain,
    says_something,
)

_NAMES = (
    r"(?:(?:the |les |list of |liste des )?(?:sources?|références?|references?|citations?|bibliography|bibliographie|"
    r"quellen|fuentes)|(?:useful |related )?links?|liens?(?: utiles)?|further reading|see also|voir aussi|"
    r"(?:pour )?en savoir plus|pour aller plus loin)(?: (?:citée?s?|utilisée?s?|consultée?s?|used|cited|list))?"
)
_HEADING = re.compile(rf"\W*{_NAMES}\s*(?:\(\d+\)\s*)?[:：]?\W*", re.IGNORECASE)
_LABELLED = re.compile(rf"\W*{_NAMES}\s*[:：]\s*(?P<rest>.*)", re.IGNORECASE)
_NUMBERED = re.compile(r"\W{0,4}(?:\d{1,3}|\*|-|•)[\]).:\s]")
_BRACKETED = re.compile(r"\s*\[\d{1,3}\]\W*\w")
_LONGEST_ENTRY = 200


def drop_source_list(blocks: Sequence[Block], removed: Counter[str]) -> tuple[Block, ...]:
    """The blocks without announced sources and their entries, and without rules at either end."""
    kept: list[Block] = []
    listing = False
    for index, block in enumerate(blocks):
        if listing and _is_entries(block):
            continue
        listing = False
        match block:
            case Heading(_, inlines) if _HEADING.fullmatch(plain(inlines)):
                listing = True
                removed["source_list"] += 1
            case Paragraph(inlines):
                rest, listing = _before_list(inlines, last=index == len(blocks) - 1)
                removed["source_list"] += listing or rest != inlines
                if says_something(rest):
                    kept.append(Paragraph(rest))
            case _:
                kept.append(block)
    while kept and isinstance(kept[-1], Rule):
        kept.pop()
    while kept and isinstance(kept[0], Rule):
        kept.pop(0)
    return tuple(kept)


def _before_list(inlines: tuple[Inline, ...], *, last: bool) -> tuple[tuple[Inline, ...], bool]:
    """The lines of a paragraph that stand before its list of sources, and whether the list may go on after it."""
    cut = lines(inlines)
    if last and all(_BRACKETED.match(plain(line)) for line in cut):
        return (), False
    for index, line in enumerate(cut):
        text = plain(line)
        below = cut[index + 1 :]
        if (
            _HEADING.fullmatch(text)
            and all(_is_entry(each) for each in below)
            and (below or index or _ends_open(text) or not last)
        ):
            return joined(cut[:index]), True
        labelled = _LABELLED.fullmatch(text)
        cites = any(isinstance(node, Cite) for node in leaves(line))
        if labelled and (cites or (last and index)) and all(_is_entry(each) for each in below):
            return joined(cut[:index]), bool(below)
    return inlines, False


def _ends_open(text: str) -> bool:
    return text.rstrip(" *_").endswith((":", "："))


def _is_entries(block: Block) -> bool:
    match block:
        case Listing():
            return all(len(plain(run)) <= _LONGEST_ENTRY for run in inline_runs([block]))
        case Paragraph(inlines):
            return all(_is_entry(line) for line in lines(inlines))
        case Table() | Rule():
            return True
        case CodeBlock():
            return False
        case _:
            return False


def _is_entry(line: tuple[Inline, ...]) -> bool:
    text = plain(line).strip()
    if not text or len(text) > _LONGEST_ENTRY:
        return len(text) == 0
    first = next(leaves(line), None)
    return (
        isinstance(first, Cite)
        or bool(_NUMBERED.match(text))
        or text[-1] not in ".!?…:;"
        or bool(_HEADING.fullmatch(text))
    )
