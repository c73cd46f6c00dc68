"""Whether code stands word for word in a source: spaces and line breaks are all alike, letter case is not."""

import re

_MARKS = 8
"""Most punctuation between a space and what is looked for: it bounds the search in a text of nothing else."""
_BEFORE = rf"(?:\A|(?<= ))[\"'`(\[{{«“‘…]{{0,{_MARKS}}}"
_AFTER = rf"(?=[.,;:!?…)\]}}\"'`»”’]{{0,{_MARKS}}}(?: |\Z))"
_CALL = re.compile(r"[();]+\Z")


def collapsed(text: str) -> str:
    """The text with one space for any run of spaces and line breaks."""
    return " ".join(text.split())


def stands_in(code: str, text: str) -> bool:
    """Whether every line of the code stands in the collapsed text, whole and in order: lines may be left out.

    Only punctuation may follow or precede a line directly: `rm -rf /` doesn't stand in `rm -rf /tmp`.
    """
    end = 0
    for line in filter(None, map(collapsed, code.split("\n"))):
        end = _end_of(line, text, end)
        if end < 0:
            return False
    return True


def names(span: str, text: str) -> bool:
    """Whether inline code stands in the collapsed text: a lone word as a word, with or without call brackets."""
    plain = collapsed(span)
    if " " in plain:
        return stands_in(plain, text)
    word = _CALL.sub("", plain)
    return word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _end_of(line: str, text: str, start: int) -> int:
    """Where the line's first whole occurrence from `start` on ends; -1 when there is none."""
    if text.find(line, start) < 0:
        return -1
    found = re.compile(f"{_BEFORE}{re.escape(line)}{_AFTER}").search(text, start)
    return found.end() if found else -1
