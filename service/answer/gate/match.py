"""Decides on a message: which rule, if any, says that it isn't for the forum (spec P5)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from service.answer.gate.compiled import CompiledIntent, CompiledRule, Gate
from service.answer.gate.hidden import hidden_texts
from service.answer.gate.normalise import read_words
from service.answer.gate.rules import GateKind

RECENT_TURNS = 3
"""How many of a member's earlier turns may hold a part of what is wanted."""
SPLIT_WORDS = 25
"""A longer message stands alone."""
_POINTING_WORDS = 4
_GLUED_WORDS = 3
_MOST_PAIRS = 400
_STOP_WORDS = 5
"""The end of a sentence parts a verb from its object as so many words do."""
QUOTED_CHARS = 1_500
"""In a longer text quotes count as its own words."""

_QUOTED = re.compile(r"«[^«»]{1,1500}»|“[^“”]{1,1500}”|\"[^\"]{1,1500}\"|`[^`]{1,1500}`|(?<!\w)'[^']{4,300}'(?!\w)")


@dataclass(frozen=True, slots=True)
class Decline:
    """Why a message isn't answered; `span` are its words that the rule met, as the normaliser leaves them."""

    rule: str
    kind: GateKind
    span: str


def decide(gate: Gate, text: str, earlier: Sequence[str] = ()) -> Decline | None:
    """The rule that declines a message, or None to let it through; `earlier` are the member's own turns, oldest first.

    Total. What was declined before doesn't decline the next message: a rule has to meet words of `text`.
    """
    readings = _readings(gate, text)
    for words in readings:
        if found := _first(gate, words):
            return found
    turns = [words for turn in earlier[-RECENT_TURNS:] for words in _readings(gate, turn)]
    for words in readings:
        if turns and len(words.split()) <= SPLIT_WORDS:
            found = _split(gate, words, turns) or _continued(gate, words, turns)
            if found:
                return found
    return decide(gate.more, text, earlier) if gate.more else None


def _readings(gate: Gate, text: str) -> list[str]:
    """The ways to read a text: its own words, and what is hidden in it."""
    readings: dict[str, None] = {}
    for said in (_own_words(gate, text), *map(read_words, hidden_texts(text))):
        words = (said if gate.fillers is None else gate.fillers.sub(b"", said.encode()).decode()).split()
        readings[" ".join(gate.lexicon.mended(words))] = None
    return list(readings)


def _own_words(gate: Gate, text: str) -> str:
    """The words of a text, without those that it quotes to report them: they aren't asked for."""
    if len(text) <= QUOTED_CHARS and gate.reporting is not None:
        outside, quotes = _QUOTED.subn(" ", text)
        words = read_words(outside) if quotes else ""
        if words and gate.reporting.search(words):
            return words
    return read_words(text)


def _first(gate: Gate, words: str) -> Decline | None:
    possible = gate.possible(words)
    for rule in gate.rules:
        for intent in rule.intents:
            if intent.needs <= possible:
                for start, end in _spans(intent, words):
                    if not _excepted(rule, words, start, end):
                        return Decline(rule.id, rule.kind, words[start:end])
    return None


def _spans(intent: CompiledIntent, words: str) -> Iterator[tuple[int, int]]:
    """Where the intent's verb stands near its object, from the first of them to the last."""
    text = words.encode()  # ASCII: places are the same, and re2 is spared counting them
    if intent.object is not None and intent.object.search(text) is None:
        return
    verbs = [found.span() for found in intent.verb.finditer(text)]
    if intent.object is None or not verbs:
        yield from verbs
        return
    objects = [found.span() for found in intent.object.finditer(text)]
    near = (
        (min(verb[0], object_[0]), max(verb[1], object_[1]))
        for verb in verbs
        for object_ in objects
        if _is_near(intent, words, verb, object_)
    )
    yield from islice(near, _MOST_PAIRS)


def _is_near(intent: CompiledIntent, words: str, verb: tuple[int, int], object_: tuple[int, int]) -> bool:
    if intent.ordered and object_[0] < verb[0]:
        return False
    first, second = sorted((verb, object_))
    between = words[first[1] : max(first[1], second[0])]
    return between.count(" ") - 1 + between.count(".") * _STOP_WORDS <= intent.within


def _excepted(rule: CompiledRule, words: str, start: int, end: int) -> bool:
    begin, stop = max(words.rfind(" . ", 0, start), 0), words.find(" . ", end)
    sentences = words[begin : stop if stop >= 0 else len(words)]
    return (rule.exceptions is not None and rule.exceptions.search(sentences) is not None) or (
        rule.preceded_by is not None and rule.preceded_by.search(words[begin:start]) is not None
    )


def _split(gate: Gate, words: str, turns: Sequence[str]) -> Decline | None:
    """A verb that points back to an object of an earlier turn."""
    if gate.pointing is None:
        return None
    possible = gate.possible(words)
    for rule in gate.rules:
        for intent in rule.intents:
            if intent.split and intent.verb_needs <= possible:
                for span in _pointing(gate, intent, words):
                    if not _excepted(rule, words, *span) and _names_object(rule, intent, turns):
                        return Decline(rule.id, rule.kind, words[slice(*span)])
    return None


def _pointing(gate: Gate, intent: CompiledIntent, words: str) -> Iterator[tuple[int, int]]:
    for verb in intent.verb.finditer(words):
        start, end = verb.span()
        around = [*words[:start].split()[-_POINTING_WORDS:], "|", *words[end:].split()[:_POINTING_WORDS]]
        if gate.pointing.search(" ".join(around)):
            yield start, end


def _names_object(rule: CompiledRule, intent: CompiledIntent, turns: Sequence[str]) -> bool:
    return any(not _excepted(rule, turn, *found.span()) for turn in turns for found in intent.object.finditer(turn))


def _continued(gate: Gate, words: str, turns: Sequence[str]) -> Decline | None:
    """What begins with the last words of an earlier turn, which alone is nothing, and goes on in this message."""
    for turn in turns:
        if turn and _first(gate, turn) is None:
            tail = " ".join(turn.split()[-_GLUED_WORDS:])
            found = _first(gate, f"{tail} {words}")
            if found:
                return found
    return None
