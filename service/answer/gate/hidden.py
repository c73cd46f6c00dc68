"""What a message holds in a form that people don't read and models do: tag characters, base64, percent-encoding."""

import binascii
import re
import string

from service.answer.gate.normalise import ADDRESS

READ_CHARS = 2_500, 500
"""Of the beginning and of the end of a longer text."""
MAX_HIDDEN = 4
"""How many encoded or invisible texts of one message are looked at."""

_TAGS = re.compile("[\U000e0020-\U000e007e][\U000e0020-\U000e007e]*")
_PERCENT = re.compile("%(?:[46][1-9A-Fa-f]|[57][0-9Aa]|20|[Cc][3-5]%[89ABab])")
"""A letter, maybe with an accent, or a space."""
_PERCENTS = re.compile("(?:%[0-9A-Fa-f]{2})+")
_READABLE = 0.6
"""Least share of letters, digits and spaces in what was written to be read: an identifier may decode to anything."""
_LEAST_BASE64 = 12
_ENCODING = bytes(
    char if chr(char) in f"{string.ascii_letters}{string.digits}+/_-=" else ord(" ") for char in range(256)
)
_NO_TEXT = bytes(char for char in range(32) if chr(char) not in string.printable)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{_LEAST_BASE64},8000}}={{0,2}}(?![A-Za-z0-9+/_=-])")


def hidden_texts(text: str) -> tuple[str, ...]:
    """What a text holds in tag characters or in base64, decoded; only what reads as text, MAX_HIDDEN at most.

    Last comes the text itself with all that in its place, and with what is percent-encoded outside addresses, if there
    is any.
    """
    head, tail = READ_CHARS
    if len(text) > head + tail:
        text = f"{text[:head]} {text[-tail:]}"
    found = [] if text.isascii() else [_untagged(run) for run in _TAGS.findall(text)]
    words = text.encode("ascii", "replace").translate(_ENCODING).decode().split()
    long = dict.fromkeys(word for word in words if len(word) >= _LEAST_BASE64)
    found += [decoded for word in long for run in _BASE64.findall(word) if (decoded := _decoded(run))]
    if not found and "%" not in text:
        return ()
    text = ADDRESS.sub(" url ", text)
    if found or _PERCENT.search(text):
        return (*found[:MAX_HIDDEN], _revealed(text))
    return ()


def _revealed(text: str) -> str:
    text = _TAGS.sub(lambda run: f" {_untagged(run[0])} ", text)
    text = _BASE64.sub(lambda run: f" {decoded} " if (decoded := _decoded(run[0])) else run[0], text)
    return _PERCENTS.sub(lambda run: bytes.fromhex(run[0].replace("%", "")).decode(errors="replace"), text)


def _untagged(run: str) -> str:
    return "".join(chr(ord(char) - 0xE0000) for char in run)


def _decoded(run: str) -> str:
    if run.isalpha() and (run.islower() or run[1:].islower() or run.isupper()):  # a long word
        return ""
    unpadded = run.rstrip("=").encode().translate(_URL_SAFE)
    try:
        raw = binascii.a2b_base64(unpadded + b"=" * (-len(unpadded) % 4))
        decoded = "" if raw != raw.translate(None, _NO_TEXT) else raw.decode()
    except (binascii.Error, UnicodeDecodeError):  # an ordinary word, an id, a key
        return ""
    said = sum(char.isalnum() or char.isspace() for char in decoded)
    readable = said >= _READABLE * len(decoded) and (decoded.isprintable() or not set(decoded) - set(string.printable))
    return decoded if readable else ""
