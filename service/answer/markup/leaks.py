"""What a model says about itself, its orders and the conversation: sentences that no member should read."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial

from service.answer.markup.tree import Block, Heading, Inline, Paragraph, Styled, Text, joined, lines, plain, rewritten

_START = r"(?:(?<=[.!?…]\s)|(?<=\n)|\A)\s*"
_SELF = (
    r"as an? (?:large )?(?:language model|llm|ai language model|ai (?:assistant|chatbot|model))\b"
    r"|as an ai\b(?=[^.!?\n]{0,40}\bi\b)"
    r"|i(?: a|['’])m (?:just |only |merely )?an? (?:large )?(?:ai|language model|llm|chatbot)\b"
    r"|en tant (?:que |qu['’])(?:\w+ ){0,2}?(?:mod[èe]le de langage|ia|intelligence artificielle|llm)\b"
    r"|en tant (?:que |qu['’])(?:mod[èe]le|assistante?)\b(?=[^.!?\n]{0,40}\bj(?:e\b|['’]))"
    r"|je (?:ne )?suis (?:qu['’])?une? (?:simple )?(?:ia|intelligence artificielle|mod[èe]le de langage|llm)\b"
)
_THEM = (
    r"(?:these|this|your|the|my|ces|cette|tes|vos|les|le) (?:\w+ ){0,2}"
    r"(?:rules|instructions|prompt|consignes|r[èe]gles)\b"
)
_ORDERS = (
    r"you are (?:an?|the) (?:[\w-]+ ){0,3}(?:bot|assistant|ai)\b"
    r"|(?:tu es|vous êtes) (?:le |la |une? |l['’])(?:[\w-]+ ){0,3}(?:bot|assistante?|ia)\b"
    r"|[^.!?\n]{0,120}\b(?:(?:never|not|don['’]t) (?:reveal|disclose|share|quote|repeat)"
    r"|(?:r[ée]v[èe]le[zr]?|divulgue[zr]?|cite[zr]?|r[ée]p[èe]te[zr]?) (?:jamais|pas)"
    rf"|(?:jamais|pas) (?:r[ée]v[ée]ler|divulguer|citer|r[ée]p[ée]ter)) {_THEM}"
)
_MACHINE = re.compile(rf"{_START}(?:{_SELF}|{_ORDERS})[^.!?…\n]{{0,400}}(?P<stop>[.!?…]+\s*|\n|\Z)", re.IGNORECASE)
_CLAUSE = re.compile(r"[^,.!?\n]{0,200},\s*")
_OTHER_SPEAKER = re.compile(
    r"\s*(?:SYSTEM(?: PROMPT| MESSAGE)?|SYSTÈME|System (?:prompt|message)|Prompt système|DEVELOPER|USER|HUMAN|Human|"
    r"INSTRUCTIONS?|CONTEXT|EVIDENCE|TOOL)\s*:"
)
_OWN_LABEL = re.compile(r"\s*(?:ASSISTANT|Assistant|BOT|AI|FINAL ANSWER|Final [Aa]nswer|Réponse finale)\s*:[ \t]*")
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*\s*|\s+|[.!?…]+\s*")
_SHINGLE_WORDS = 8


def drop_leaks(blocks: Iterable[Block], prompt: str, removed: Counter[str]) -> tuple[Block, ...]:
    """The blocks without a model's talk about itself, without other speakers' lines, and without its orders.

    `prompt` is the fixed part of what the model was told: a sentence that repeats eight words of it in a row goes.
    """
    orders = _shingles(prompt)
    spoken = (_own_part(block, removed) for block in blocks)
    return rewritten(
        (block for block in spoken if block is not None), partial(_clean_run, orders=orders, removed=removed)
    )


def _own_part(block: Block, removed: Counter[str]) -> Block | None:
    if isinstance(block, Heading) and _OTHER_SPEAKER.match(plain(block.inlines)):
        removed["leak"] += 1
        return None
    if not isinstance(block, Paragraph):
        return block
    cut = lines(block.inlines)
    for index, line in enumerate(cut):
        if _OTHER_SPEAKER.match(plain(line)):
            removed["leak"] += 1
            return Paragraph(joined(cut[:index])) if index else None
    first = block.inlines[0]
    label = _OWN_LABEL.match(first.text) if isinstance(first, Text) else None
    if isinstance(first, Text) and label:
        return Paragraph((Text(first.text[label.end() :]), *block.inlines[1:]))
    return block


def _clean_run(
    inlines: tuple[Inline, ...], orders: frozenset[tuple[str, ...]], removed: Counter[str]
) -> tuple[Inline, ...]:
    kept: list[Inline] = []
    for index, node in enumerate(inlines):
        match node:
            case Text(text):
                cleaned = _clean_text(text, orders, removed, final=index == len(inlines) - 1)
                if cleaned:
                    kept.append(Text(cleaned))
            case Styled(mark, children):
                inner = _clean_run(children, orders, removed)
                if inner:
                    kept.append(Styled(mark, inner))
            case _:
                kept.append(node)
    return tuple(kept)


def _clean_text(text: str, orders: frozenset[tuple[str, ...]], removed: Counter[str], *, final: bool) -> str:
    def sentence(match: re.Match[str]) -> str:
        if match["stop"] or final:
            removed["leak"] += 1
            return "\n" if match["stop"] == "\n" else ""
        # The sentence goes on to cite a source: only what it says of the machine goes.
        clause = _CLAUSE.match(match[0])
        removed["leak"] += clause is not None
        return match[0][clause.end() :] if clause else match[0]

    text = _MACHINE.sub(sentence, text)
    if not orders:
        return text
    kept = [part for part in _SENTENCE.findall(text) if not orders & _shingles(part)]
    cleaned = "".join(kept)
    removed["leak"] += cleaned != text
    return cleaned


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset(tuple(words[at : at + _SHINGLE_WORDS]) for at in range(len(words) - _SHINGLE_WORDS + 1))
