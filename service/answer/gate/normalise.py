"""Undoes what hides words from a reader of text: one plain form for whatever Unicode, leetspeak or spacing was used."""

import base64
import binascii
import re
import string

from service.answer.markup.invisible import strip_invisible
from service.lexer import fold

HEAD_CHARS = 1_500
TAIL_CHARS = 500
READ_CHARS = 12_000
"""How much raw text is read at each end: hidden characters take room that the window does not count."""
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
    | _pairs("ıɡɑɩɛđħŧƅʋ℮ɐǝəɯ’‘ʼ´`＇。．", "igaiedhtbveaeem''''''..")
    | {
        chr(start + place): letter
        for start in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)  # squared, circled, flags
        for place, letter in enumerate(string.ascii_lowercase)
    }
)

_SYMBOL_LEET = str.maketrans("@$!|€", "asiie")
_DIGIT_LEET = str.maketrans("0134578", "oieastb")

_URL = re.compile(r"(?:https?://|www\.)\S+")
_MAIL = re.compile(r"\b[a-z0-9_.+-]{1,64}@[a-z0-9-]{1,63}\.[a-z0-9.-]{1,63}\b")
_SYMBOL_WORD = re.compile(r"(?<![a-z0-9@$!|€])(?:[@$!|€]?[a-z0-9]+(?:[@$!|€]+[a-z0-9]+)+|[$!|€][a-z0-9]{2,})")
_DIGIT_WORD = re.compile(r"(?<![a-z0-9])[a-z0-9]*(?:[0-9][a-z]|[a-z][0-9])[a-z0-9]*")
_NUMBER_WITH_UNIT = re.compile(
    r"[0-9]{2,}[a-z]+|1st|2nd|3rd|[04-9]th|[0-9](?:px|mm|cm|km|kg|mg|ml|gb|mb|kb|ms|fps|eme|er)"
)
_STOP = re.compile(r"[.!?\u2026]+(?=[\s\"'»”)\]]|$)|\n\s*\n|[{}\[\]<>]")
_OTHER = re.compile(r"[^a-z0-9.]+|(?<! )\.|\.(?! )")
_SEPARATED = {
    mark: re.compile(rf"(?<![a-z0-9])[a-z0-9](?:{re.escape(mark)}[a-z0-9](?![a-z0-9])){{3,}}")
    for mark in ("-", ".", "_", "*", "/", "·", "•", ",", "|", "~", "+", " ")
}
_SET_APART = re.compile(r"(?:(?<=  )|(?<![^\n]))[a-z0-9](?: [a-z0-9])+(?=  |\s*(?:\n|$))")
_LONG_RUN = re.compile(r"([a-z])\1{2,}")
_STOPS = re.compile(r"(?: \.)+(?= |$)")

_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,8000}={0,2}(?![A-Za-z0-9+/_=-])")


def bounded(text: str) -> str:
    """The two ends of a text that are read at all."""
    return text if len(text) <= 2 * READ_CHARS else f"{text[:READ_CHARS]}\n\n{text[-READ_CHARS:]}"


def window(normalised: str) -> str:
    """The first HEAD_CHARS and the last TAIL_CHARS of a normalised text."""
    if len(normalised) <= HEAD_CHARS + TAIL_CHARS:
        return normalised
    return f"{normalised[:HEAD_CHARS]} . {normalised[-TAIL_CHARS:]}"


def normalise(text: str) -> str:
    """The words of a text in a-z and 0-9, parted by single spaces; the end of a sentence is the word ".".

    Invisible characters, accents, case, width, look-alike letters, leetspeak and letters set apart are undone; an
    address is "url". Total and idempotent, in time linear in the text.
    """
    text = fold(strip_invisible(text)[0].casefold()).casefold().translate(_LOOKALIKES)
    text = _MAIL.sub(" mailaddress ", _URL.sub(" url ", text))
    for mark, pattern in _SEPARATED.items():
        if mark in text:
            text = pattern.sub(lambda run, mark=mark: run[0].replace(mark, ""), text)
    if "  " in text:
        text = _SET_APART.sub(lambda run: run[0].replace(" ", ""), text)
    text = _SYMBOL_WORD.sub(lambda word: word[0].translate(_SYMBOL_LEET), text)
    text = _OTHER.sub(" ", _STOP.sub(" . ", text))
    return _settled(" ".join(text.split()))


def _settled(words: str) -> str:
    """Words with what earlier steps may have set free put right: letters set apart, digits as letters, long runs."""
    words = _SEPARATED[" "].sub(lambda run: run[0].replace(" ", ""), words)
    words = _DIGIT_WORD.sub(lambda word: _read_digits(word[0]), words)
    return _STOPS.sub(" .", _LONG_RUN.sub(r"\1\1", words)).strip(" .")


def _read_digits(word: str) -> str:
    if sum(map(str.isalpha, word)) < 2 or _NUMBER_WITH_UNIT.fullmatch(word):
        return word
    return word.translate(_DIGIT_LEET)


def hidden_texts(text: str) -> tuple[str, ...]:
    """What a text holds in tag characters or in base64, decoded; only what reads as text, MAX_HIDDEN at most."""
    found = ["".join(chr(ord(char) - 0xE0000) for char in run) for run in _TAGS.findall(text)]
    found += [decoded for run in _BASE64.findall(text) if (decoded := _decoded(run))]
    return tuple(found[:MAX_HIDDEN])


def _decoded(run: str) -> str:
    unpadded = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):  # an ordinary word, an id, a key
        return ""
    return decoded if decoded.isprintable() or not set(decoded) - set(string.printable) else ""
