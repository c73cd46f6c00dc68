"""Undoes what hides words from a reader of text: one plain form for whatever Unicode, leetspeak or spacing was used."""

import base64
import binascii
import re
import string
from collections.abc import Callable
from unicodedata import normalize

from service.answer.markup.invisible import strip_invisible

HEAD_CHARS = 1_500
TAIL_CHARS = 500
MOST_CHARS = 20_000
"""How much raw text is read at each end, at most."""
MAX_HIDDEN = 4
"""How many encoded or invisible texts of one message are looked at."""


def _pairs(foreign: str, latin: str) -> dict[str, str]:
    return dict(zip(foreign, latin, strict=True))


# What looks like a Latin letter, after case folding (Cherokee folds upwards).
_LOOKALIKES = str.maketrans(
    _pairs("авекмнорстухіјѕһԁԛԝьгӏүғпц", "abekmhopctyxijshdqwbrlyfnu")  # Cyrillic
    | _pairs("αβεζηικνορτυχωγ", "abeznikvoptuxwy")  # Greek
    | _pairs("ոսօցհյզք", "nuoghjqp")  # Armenian
    | _pairs("ᎠᎪᏴᏟᏞᎬᏀᎻᎥᎫᏦᎷᏢᏚᎢᏙᎳᏃ", "dabcleghijkmpstvwz")  # Cherokee
    | _pairs("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz")  # small capitals
    | _pairs("ıɡɑɩɛđħŧƅʋ℮ɐǝəɯ。．", "igaiedhtbveaeem..")
    | {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l"}
    | {
        chr(start + place): letter
        for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)  # squared, circled, flags
        for place, letter in enumerate(string.ascii_lowercase)
    }
)

_TYPOGRAPHY = {
    **{code: base for code in range(0xC0, 0x250) if (base := normalize("NFKD", chr(code))[0]).isascii()},
    **dict.fromkeys((*range(9), *range(14, 32), 127)),  # control characters
    **{ord(mark): "'" for mark in "’‘ʼ´`＇"},
    **{ord(mark): '"' for mark in "“”„«»"},
    **{ord(mark): "-" for mark in "–—‐‑•·"},
    **{ord("…"): "...", ord("œ"): "oe", ord("Œ"): "oe", ord("æ"): "ae", ord("Æ"): "ae", 0xA0: " ", 0x202F: " "},
}
"""What ordinary French and English are written with: most texts are ASCII after it, and need no more."""
_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
_SYMBOL_LETTER = re.compile(r"[@$!|€][a-z0-9]|[a-z0-9][$€]")
_SYMBOL_LEET = str.maketrans("@$!|€", "asiie")
_DIGIT_LEET = str.maketrans("0134578", "oieastb")

_URL = re.compile(r"(?:https?://|www\.)\S+")
_UNDERSCORE = re.compile(r"(?<=[a-z0-9])_+(?=[a-z0-9])")
_MAIL = re.compile(r"\b[a-z0-9_.+-]{1,64}@[a-z0-9-]{1,63}\.[a-z0-9.-]{1,63}\b")
_SYMBOL_WORD = re.compile(
    r"(?<![a-z0-9@$!|€])(?:[@$!|€]?[a-z0-9]+(?:[@$!|€]+[a-z0-9]+)+|[$!|€][a-z0-9]{2,}|[a-z][a-z0-9]+[$€])(?![a-z0-9])"
)
_NOT_LEET = re.compile(
    r"[a-z]{4,}[0-9]{2,}|[0-9]{2,}[a-z]+|1st|2nd|3rd|[04-9]th|[0-9](?:px|mm|cm|km|kg|mg|ml|gb|mb|kb|ms|fps|eme|er)"
)
_STOP = re.compile(r"[.!?]+(?=[\s\"')\]]|$)|\n\s*\n|[{}\[\]<>]")
_WORDS_ONLY = bytes(
    char if chr(char) in string.ascii_lowercase + string.digits else ord("." if char == 1 else " ")
    for char in range(256)
)
_SPACED = re.compile(
    r"(?<![a-z0-9'])[a-z0-9](?: [a-z0-9](?![a-z0-9])){3,}"
    r"|(?<![a-z0-9'])[a-z0-9](?:([-._*/·•,|~+])[a-z0-9](?![a-z0-9]))(?:\1[a-z0-9](?![a-z0-9]))+"
)
_SET_APART = re.compile(r"(?:(?<=  )|(?<![^\n]))[a-z0-9](?: [a-z0-9])+(?=  |\s*(?:\n|$))")
_LEAST_SET_APART = 4
_LONG_RUN = re.compile(r"([a-z])\1{2,}")

_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,8000}={0,2}(?![A-Za-z0-9+/_=-])")


def read_words(text: str) -> str:
    """The normalised words at both ends of a text: the first HEAD_CHARS and the last TAIL_CHARS of them."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        words = normalise(text)
        return words if len(words) <= HEAD_CHARS + TAIL_CHARS else f"{words[:HEAD_CHARS]} . {words[-TAIL_CHARS:]}"
    head = _enough(HEAD_CHARS, lambda chars: text[:chars])
    tail = _enough(TAIL_CHARS, lambda chars: text[-chars:])
    return f"{head[:HEAD_CHARS]} . {tail[-TAIL_CHARS:]}"


def _enough(wanted: int, part: Callable[[int], str]) -> str:
    """The words of a part of a long text: of more of it where characters that say nothing fill what was read."""
    words = ""
    for chars in (wanted + wanted // 4, 3 * wanted, MOST_CHARS):
        words = normalise(part(chars))
        if len(words) >= wanted:
            break
    return words


def normalise(text: str) -> str:
    """The words of a text in a-z and 0-9, parted by single spaces; the end of a sentence is the word ".".

    Invisible characters, accents, case, width, look-alike letters, leetspeak and letters set apart are undone; an
    address is "url". Total and idempotent, in time linear in the text.
    """
    text = text.translate(_TYPOGRAPHY)
    text = text.lower() if text.isascii() else _latin(text)
    text = _UNDERSCORE.sub("", _URL.sub(" url ", text))
    if "@" in text:
        text = _MAIL.sub(" mailaddress ", text)
    text = _SPACED.sub(_joined, text)
    if "  " in text:
        text = _SET_APART.sub(_joined, text)
    if _SYMBOL_LETTER.search(text):
        text = _SYMBOL_WORD.sub(lambda word: word[0].translate(_SYMBOL_LEET), text)
    plain = _STOP.sub(" \x01 ", text).encode("ascii", "replace").translate(_WORDS_ONLY).decode("ascii")
    return _settled(plain.split())


def _latin(text: str) -> str:
    """A text in small Latin letters without accents, whatever letters it was written in."""
    text = normalize("NFKD", strip_invisible(text)[0].casefold())
    return _MARKS.sub("", text).casefold().translate(_LOOKALIKES)


def _settled(words: list[str]) -> str:
    """Words with what earlier steps may have set free put right: letters set apart, digits as letters, long runs."""
    if sum(len(word) == 1 for word in words) >= _LEAST_SET_APART:
        words = _SPACED.sub(_joined, " ".join(words)).split()
    words = [word if word.isalpha() or word.isdigit() else _read_digits(word) for word in words]
    ended = ["."]
    ended += [word for before, word in zip([".", *words], words, strict=False) if word != "." or before != "."]
    return _LONG_RUN.sub(r"\1\1", " ".join(ended)).strip(" .")


def _joined(run: re.Match[str]) -> str:
    return "".join(char for char in run[0] if char.isalnum())


def _read_digits(word: str) -> str:
    if sum(map(str.isalpha, word)) < 2 or _NOT_LEET.fullmatch(word):
        return word
    return word.translate(_DIGIT_LEET)


def hidden_texts(text: str) -> tuple[str, ...]:
    """What a text holds in tag characters or in base64, decoded; only what reads as text, MAX_HIDDEN at most."""
    if len(text) > 2 * HEAD_CHARS:
        text = f"{text[: 2 * HEAD_CHARS - TAIL_CHARS]} {text[-TAIL_CHARS:]}"
    found = ["".join(chr(ord(char) - 0xE0000) for char in run) for run in _TAGS.findall(text)]
    found += [decoded for run in _BASE64.findall(text) if (decoded := _decoded(run))]
    return tuple(found[:MAX_HIDDEN])


def _decoded(run: str) -> str:
    if run.isalpha() and (run.islower() or run[1:].islower() or run.isupper()):  # a long word
        return ""
    unpadded = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):  # an ordinary word, an id, a key
        return ""
    return decoded if decoded.isprintable() or not set(decoded) - set(string.printable) else ""
