"""What a marker between double brackets names: the numbers of sources, or nothing."""

import re
from unicodedata import digit, normalize

_LABEL = re.compile(r"(?:sources?|posts?|refs?|réfs?|docs?|fils?|threads?|n°|nos?\.?|#)\s*:?\s*", re.IGNORECASE)
_JOIN = re.compile(r"\s*(?:[,;&、]|\b(?:et|and|und|y|e)\b)\s*|\s+")
_RANGE = re.compile(r"(\d{1,9})\s*[-–—]\s*(\d{1,9})")


def read_numbers(body: str, sources: int) -> tuple[tuple[int, ...], int] | None:
    """The numbers in `body` that name one of `sources` sources, and how many name none; None if it names nothing.

    Any script's digits are read; `1-3` counts when every source of it exists.
    """
    text = (
        _LABEL.sub("", normalize("NFKC", body).strip(), count=1) if not body[:1].isdigit() else normalize("NFKC", body)
    )
    text = re.sub(r"\s*([-–—])\s*", r"\1", text.strip())
    parts = [part for part in _JOIN.split(text) if part]
    if not parts:
        return None
    found: list[int] = []
    missing = 0
    for part in parts:
        span = _RANGE.fullmatch(part)
        if span:
            first, last = _value(span[1]), _value(span[2])
            if 1 <= first < last <= sources:
                found.extend(range(first, last + 1))
            else:
                missing += 1
        elif part.isdecimal():
            n = _value(part)
            if 1 <= n <= sources:
                found.append(n)
            else:
                missing += 1
        else:
            return None
    return tuple(dict.fromkeys(found)), missing


def _value(digits: str) -> int:
    """The number, or 0 when it is longer than any count of sources could be."""
    plain = "".join(str(digit(char)) for char in digits).lstrip("0")
    return int(plain) if 0 < len(plain) <= 4 else 0
