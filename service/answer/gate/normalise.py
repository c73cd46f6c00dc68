"""Undoes what hides words from a reader of text: one plain form for whatever Unicode, leetspeak or spacing was used."""

import re
import string
from collections.abc import Callable
from unicodedata import normalize

from service.answer.markup.invisible import strip_invisible

HEAD_CHARS = 1_500
TAIL_CHARS = 500
TOO_MANY = 1.1
"""By how much an estimate of what a text says is above it: reading it in vain costs more than reading more."""
MOST_CHARS = 20_000
"""How much raw text is read at each end, at most."""


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
    | _pairs(
        "ƀɓƃȼƈɗƌɖɇǥɠɦɨɉʝƙɫɬƚɭɱɲƞɳɵɔƥɋʠɍɾɽʂȿƭʈⱦʉⱱⱳɏƴƶȥʐʑ", "bbbccdddegghijjkllllmnnnoopqqrrrsstttuvwyyzzzz"
    )  # struck or hooked
    | {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l"}
    | {
        chr(start + place): letter
        for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)  # squared, circled, flags
        for place, letter in enumerate(string.ascii_lowercase)
    }
)

_CONTROLS = (*range(9), *range(14, 32), 127)
_TYPOGRAPHY = {
    **{code: base for code in range(0xC0, 0x250) if (base := normalize("NFKD", chr(code))[0]).isascii()},
    **dict.fromkeys(_CONTROLS),
    **{ord(mark): "'" for mark in "’‘ʼ´`＇"},
    **{ord(mark): '"' for mark in "“”„«»"},
    **{ord(mark): "-" for mark in "–—‐‑•·"},
    **{ord("…"): "...", ord("œ"): "oe", ord("Œ"): "oe", ord("æ"): "ae", ord("Æ"): "ae", 0xA0: " ", 0x202F: " "},
}
"""What ordinary French and English are written with: most texts are ASCII after it, and need no more."""
_ASCII_TYPOGRAPHY, _ASCII_CONTROLS = bytes.maketrans(b"`", b"'"), bytes(_CONTROLS)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u200d\ufe0e\ufe0f]"
)
_SYMBOL, _SYMBOL_LETTER = re.compile(r"[@$!|€]"), re.compile(r"[@$!|€][a-z0-9]")
_SYMBOL_LEET = str.maketrans("@$!|€", "asiie")
_DIGIT_LEET = str.maketrans("0134578", "oieastb")

ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_UNDERSCORE = re.compile(r"_(?<=[a-z0-9]_)_*(?=[a-z0-9])")
_MAIL = re.compile(r"\b[a-z0-9_.+-]{1,64}@[a-z0-9-]{1,63}\.[a-z0-9.-]{1,63}\b")
_SYMBOL_WORD = re.compile(
    r"(?<![a-z0-9@$!|€])(?:[@$!|€]?[a-z0-9]+(?:[@$!|€]+[a-z0-9]+)+|[$!|€][a-z0-9]{2,}|[a-z][a-z0-9]+[$€])(?![a-z0-9])"
)
_NOT_LEET = re.compile(
    r"[a-z]{4,}[0-9]{2,}|[0-9]{2,}[a-z]+|1st|2nd|3rd|[04-9]th|[0-9](?:px|mm|cm|km|kg|mg|ml|gb|mb|kb|ms|fps|eme|er)"
)
_STOP = re.compile(r"[.!?][.!?]*(?=[\s\"')\]]|$)")
_BLANK_LINE = re.compile(r"\n\s*\n")
_LETTERS = string.ascii_lowercase + string.digits
_WORDS_ONLY = bytes(
    char if chr(char) in _LETTERS else ord("." if chr(char) in "\x01{}[]<>" else " ") for char in range(256)
)
_APART = bytes(ord("a" if chr(char) in _LETTERS else " ") for char in range(256))
_SAYS = "".join(map(chr, range(128, 256))) + string.ascii_letters + string.digits + "@$|"
_ABOUT_WORDS = bytes(
    char if chr(char) in _SAYS else ord("." if chr(char) in ".!?\n{}[]<>" else " ") for char in range(256)
)
_MAIL_CHARS = len(" mailaddress ")
_DIGIT_BESIDE_LETTER = re.compile(r"[0-9](?:(?=[a-z])|(?<=[a-z].))")
_SPACED = re.compile(
    r"(?<![a-z0-9'])[a-z0-9](?: [a-z0-9](?![a-z0-9])){3,}"
    r"|(?<![a-z0-9'])[a-z0-9](?:([-._*/·•,|~+])[a-z0-9](?![a-z0-9]))(?:\1[a-z0-9](?![a-z0-9]))+"
)
_SET_APART = re.compile(r"(?:(?<=  )|(?<![^\n]))[a-z0-9](?: [a-z0-9])+(?=  |\s*(?:\n|$))")
_LEAST_SPACED, _LEAST_SET_APART = 3, 2
"""Letters in a row that the patterns above want, the first of them where they match."""
_LONG_RUNS = {3 * letter: re.compile(f"{letter}{{3,}}") for letter in string.ascii_lowercase}


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
    for chars in (wanted + wanted // 4, wanted + wanted // 2, 2 * wanted, 3 * wanted, MOST_CHARS):
        read = _plainly_written(part(chars))
        if chars >= 3 * wanted or _about(read) >= TOO_MANY * wanted:
            words = normalise(read)
        if len(words) >= wanted:
            break
    return words


def _about(text: str) -> int:
    """About how many characters the words of a text have, rather too many: soon told."""
    words = text.encode("utf-8", "replace").translate(_ABOUT_WORDS).replace(b".", b" . ").split()
    return len(b" ".join(words).replace(b" . .", b" .").replace(b" . .", b" .")) + _MAIL_CHARS * text.count("@")


def normalise(text: str) -> str:
    """The words of a text in a-z and 0-9, parted by single spaces; the end of a sentence is the word ".".

    Invisible characters, accents, case, width, look-alike letters, leetspeak and letters set apart are undone; an
    address is "url". Total and idempotent, in time linear in the text.
    """
    text = _latin(text)
    # What most texts don't hold is looked for before its pattern is: the gate reads every question.
    if "://" in text or "www." in text:
        text = ADDRESS.sub(" url ", text)
    if "_" in text:
        text = _UNDERSCORE.sub("", text)
    if "@" in text:
        text = _MAIL.sub(" mailaddress ", text)
    text = _put_together(text, _SPACED, _LEAST_SPACED)
    if "  " in text:
        text = _put_together(text, _SET_APART, _LEAST_SET_APART)
    if _SYMBOL_LETTER.search(text) or "$" in text or "€" in text:
        text = _without_symbols(text)
    text = _BLANK_LINE.sub(" \x01 ", _STOP.sub(" \x01 ", text))
    plain = text.encode("ascii", "replace").translate(_WORDS_ONLY).replace(b".", b" . ").decode("ascii")
    return _settled(plain.split())


def _latin(text: str) -> str:
    """A text in small Latin letters without accents, whatever letters it was written in."""
    text = _plainly_written(text)
    if text.isascii():
        return text.encode().translate(_ASCII_TYPOGRAPHY, _ASCII_CONTROLS).decode().lower()
    text = normalize("NFKD", strip_invisible(text.translate(_TYPOGRAPHY))[0].casefold())
    return _BEYOND_ASCII.sub(lambda run: run[0].translate(_LOOKALIKES), _MARKS.sub("", text).casefold())


def _plainly_written(text: str) -> str:
    """A text without what ordinary French and English need beyond ASCII."""
    return text if text.isascii() else _BEYOND_ASCII.sub(lambda run: run[0].translate(_TYPOGRAPHY), text)


def _put_together(text: str, pattern: re.Pattern[str], letters: int) -> str:
    """A text whose letters set apart are joined wherever the pattern matches, which begins with so many of them."""
    shown, row = f" {text} ".encode("ascii", "replace").translate(_APART), letters * b" a" + b" "
    kept: list[str] = []
    done, at = 0, shown.find(row)
    while at >= 0:
        if found := pattern.match(text, at):
            kept += text[done:at], _joined(found)
            done = found.end()
        at = shown.find(row, max(done, at + 1))
    return "".join((*kept, text[done:]))


def _without_symbols(text: str) -> str:
    """The text with the symbols that stand for letters as those letters: only words that hold any are looked at."""
    kept: list[str] = []
    done = 0
    for symbol in _SYMBOL.finditer(text):
        if (at := symbol.start()) >= done:
            start = max(text.rfind(" ", done, at), text.rfind("\n", done, at)) + 1 or done
            end = min(place for place in (text.find(" ", at), text.find("\n", at), len(text)) if place >= 0)
            kept += text[done:start], _SYMBOL_WORD.sub(lambda word: word[0].translate(_SYMBOL_LEET), text[start:end])
            done = end
    return "".join((*kept, text[done:]))


def _settled(words: list[str]) -> str:
    """Words with what earlier steps may have set free put right: letters set apart, digits as letters, long runs."""
    text = _put_together(" ".join(words), _SPACED, _LEAST_SPACED)
    text = _with_digits_read(text)
    while " . . " in text:
        text = text.replace(" . . ", " . ")
    for run, pattern in _LONG_RUNS.items():
        if run in text:
            text = pattern.sub(run[:2], text)
    return text.strip(" .")


def _joined(run: re.Match[str]) -> str:
    return "".join(char for char in run[0] if char.isalnum())


def _with_digits_read(text: str) -> str:
    """The words with the digits that stand for letters as those: only words that hold both are looked at."""
    kept: list[str] = []
    done = 0
    for digit in _DIGIT_BESIDE_LETTER.finditer(text):
        if (at := digit.start()) >= done:
            start, end = text.rfind(" ", done, at) + 1 or done, text.find(" ", at)
            end = end if end >= 0 else len(text)
            kept += text[done:start], _read_digits(text[start:end])
            done = end
    return "".join((*kept, text[done:]))


def _read_digits(word: str) -> str:
    if sum(map(str.isalpha, word)) < 2 or _NOT_LEET.fullmatch(word):
        return word
    return word.translate(_DIGIT_LEET)
