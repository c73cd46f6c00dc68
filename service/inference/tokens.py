"""What a text is to a model server: what of it can be sent, and about how many tokens it has."""

import re

_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def sendable(text: str) -> str:
    """The text without what no server can take: lone surrogates, and NUL (where C code ends a string)."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def estimated_tokens(text: str) -> float:
    """About how many tokens a multilingual tokenizer makes of a text, rather too many.

    Fitted to XLM-RoBERTa's on 468 titles and posts (French law, English game programming): at least the true number
    for 95 of 100 posts, 1.2 to 1.3 times it in the middle.
    """
    total = 0.0
    for piece in _PIECE.findall(text):
        if piece[0].isdigit():
            total += max(1.0, 0.6 * len(piece))
        elif piece[0] >= "\u2e80" or not piece[0].isalpha():  # ideographs and kana; signs
            total += len(piece)
        else:
            total += max(1.0, 0.35 * len(piece))
    return total
