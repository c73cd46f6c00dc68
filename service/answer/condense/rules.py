"""Condenses by rules, without a model: carries the subject of the last turns over to a message that leans on them."""

import re
from collections.abc import Sequence
from unicodedata import normalize

from service.answer.condense.dependence import (
    Dependence,
    dependence,
    without_connective,
    without_courtesy,
    without_marker,
)
from service.answer.markup.invisible import strip_invisible
from service.lexer import lexemes

VERSION = "rules 1"
"""Of what the rules make of a message, for the signature of a configuration."""
MIN_CHARS = 3
MAX_CHARS = 300
"""Of a condensed question (spec P6)."""
HUMAN_TURNS = 3
"""Posts by humans that are read, the question among them."""
MESSAGE_CHARS = 200
"""Kept of the question itself."""
TURN_CHARS = 120
"""Kept of an earlier turn: its first sentence, and the last question it asks."""
READ_CHARS = 2_000
"""Looked at of a turn."""
NAMES = 2
"""Names taken from the bot's answer. More of them thin out the question (docs/eval, Follow-ups)."""
NAME_CHARS = 40
LEAST_WORDS = 2
"""Content words of an earlier turn that says something, if it isn't a question."""

Turns = Sequence[tuple[str, str]]
"""(role, text), oldest first: "user" for every human, "bot" for us, "title" for the topic's title."""

_FENCE = re.compile(r"^(?:```|~~~)[^\n]*\n.*?(?:^(?:```|~~~)|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"^>.*$", re.MULTILINE)
_ADDRESS = re.compile(r"(?:\b[a-z][a-z+.-]{1,20}://|\bwww\.)\S*|(?<!\w)@[\w.-]+", re.IGNORECASE)
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "`": "'"})
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+")
_TOKEN = re.compile(r"[^\s\"'«»“”()\[\]{},;!?]+")
_SHAPED = re.compile(r"[a-z][A-Z]|\w[_:]\w|::|[^\W\d]\.[^\W\d]|[^\W\d]\d|^[A-Z]{2,}")
_LINK = re.compile(r"!?\[[^\]\n]*\]\([^)\n]*\)")
_TRIMMED = ".:-*_/\\=<>#&|"
_OPENERS = " \"'«“([*_-–•"
_ENDS = ("", *".!?…:;")


def condense(text: str, turns: Turns) -> str:
    """The message as one question that can be searched alone, 3 to 300 characters; empty where it already is one.

    Total, and a message that says enough is never touched. Of the bot's last answer only names are taken, never its
    words: what it got wrong must not be searched for.
    """
    message = clean(text)
    match dependence(message):
        case Dependence.ALONE:
            return ""
        case Dependence.NEW_SUBJECT:
            alone = _shortened(without_marker(message), MAX_CHARS)
            return alone if alone != message and len(alone) >= MIN_CHARS else ""
        case Dependence.LEANS:
            return _carried_over(message, turns)


def clean(text: str) -> str:
    """A turn on one line without code blocks, quotes, addresses and invisible characters."""
    visible, _ = strip_invisible(text[:READ_CHARS])
    told = _ADDRESS.sub(" ", _QUOTED.sub(" ", _FENCE.sub(" ", visible)))
    return " ".join(normalize("NFC", told).translate(_APOSTROPHES).split())


def addressed(text: str) -> bool:
    """Whether it holds an address or a mention."""
    return bool(_ADDRESS.search(text))


def _carried_over(message: str, turns: Turns) -> str:
    earlier, since = _earlier(turns)
    names = _names(turns[since:], known={lexeme for text in (message, *earlier) for lexeme in lexemes(text)})
    said = _shortened(without_connective(message), MESSAGE_CHARS)
    left = MAX_CHARS - len(said) - sum(len(name) + 1 for name in names)
    subject: list[str] = []
    for turn in earlier:
        part = _shortened(turn, min(TURN_CHARS, left - 1))
        if not part:
            break
        subject.insert(0, part)
        left -= len(part) + 1
    if not subject and not names:
        return ""
    full = " ".join((said, *subject, *names))
    # What is asked counts twice beside what is only carried over, as query2doc does (Wang, Yang and Wei 2023).
    if len(full) + len(said) < MAX_CHARS:
        full = f"{said} {full}"
    return full if len(full) >= MIN_CHARS else ""


def _earlier(turns: Turns) -> tuple[list[str], int]:
    """The gist of the human turns that the message may lean on, latest first, and where the oldest of them stands.

    Nothing is looked for behind a turn that stands alone or changed the subject. The topic's title comes last.
    """
    gists: list[str] = []
    since, humans = len(turns), 0
    for place, (role, text) in reversed(list(enumerate(turns))):
        if role == "bot" or (role == "user" and humans == HUMAN_TURNS - 1):
            continue
        humans += role == "user"
        turn = clean(text)
        words = len(lexemes(without_courtesy(turn)))
        if words < (1 if "?" in turn else LEAST_WORDS):
            continue
        how = dependence(turn)
        gists.append(_gist(without_marker(turn) if how is Dependence.NEW_SUBJECT else without_connective(turn)))
        since = place
        if how is not Dependence.LEANS and role == "user":
            break
    return gists, since if gists else 0


def _gist(turn: str) -> str:
    """What a turn is about: all of it when it is short, else its first sentence and the last question in it."""
    if len(turn) <= TURN_CHARS:
        return turn
    first, *rest = _SENTENCE_END.split(turn)
    asked = next((sentence for sentence in reversed(rest) if sentence.endswith("?")), "")
    if not asked:
        return first
    return f"{_shortened(first, max(TURN_CHARS // 3, TURN_CHARS - 1 - len(asked)))} {asked}"


def _names(turns: Turns, known: set[str]) -> list[str]:
    """The first names in the bot's last answer that nobody has said yet: identifiers, files, names with a capital."""
    answer = next((text for role, text in reversed(turns) if role == "bot"), "")
    # A new line begins a sentence, like a full stop.
    told = clean(_LINK.sub(" ", answer[:READ_CHARS]).replace("\n", " …\n"))
    found: dict[str, None] = {}
    for token in _TOKEN.finditer(told):
        name = token[0].strip(_TRIMMED)
        if not 1 < len(name) <= NAME_CHARS or known.issuperset(lexemes(name)):
            continue
        begins = told[: token.start()].rstrip(_OPENERS)[-1:] in _ENDS
        if _SHAPED.search(name) or (not begins and len(name) > 2 and name[0].isupper() and name[1:].islower()):
            found.setdefault(name)
    return list(found)[:NAMES]


def _shortened(text: str, chars: int) -> str:
    """The text, or its first words in at most so many characters; empty when not even one fits."""
    if len(text) <= chars:
        return text
    return text[: max(chars, 0) + 1].rpartition(" ")[0].rstrip()
