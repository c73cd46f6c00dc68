"""What a text is to a model server: what of it can be sent, and about how many tokens it has."""

import re

_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_CHAT_PIECE = re.compile(
    r"(?P<word>[A-Za-zÀ-ÖØ-öø-ÿ]+)"
    r"|(?P<spaces> +)"
    r"|(?P<one>[0-9!-/:-@\[-`{-~¡-¿‐-‧‰-›])"
    r"|(?P<breaks>[\t\n\r]+)"
    r"|(?P<near>[Ѐ-ۿ]+)"  # Cyrillic to Arabic
    r"|(?P<far>[\u3000-\u9fff가-힣\uff00-\uffef]+)"  # ideographs, kana, Hangul
    r"|(?P<rare>.)",
    re.DOTALL,
)
_LONGEST_WORD = 20


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


def chat_tokens(text: str) -> float:
    """About how many tokens a chat model's byte-level tokenizer makes of a text, rather too many.

    Fitted to Qwen's vocabulary. On 2,131 first and second posts (French law, English game programming) 0.98 to 1.7
    times the true number, 1.4 in the middle; on other scripts, encoded data and runs of signs never less than 0.7 of
    it, where `estimated_tokens` sinks to 0.2 (Cherokee) or 0 (runs of line breaks).
    """
    total = 0.0
    for piece in _CHAT_PIECE.finditer(text):
        found = piece[0]
        match piece.lastgroup:
            case "word":
                glued = len(found) > _LONGEST_WORD or (len(found) > 1 and found.isupper())
                total += max(1.0, (0.65 if glued else 0.35) * len(found))
            case "spaces":
                total += 0.0 if found == " " else 1.0 + len(found) / 16
            case "one":
                total += 1.0
            case "breaks":
                total += 0.5 * len(found)
            case "near":
                total += max(1.0, 0.7 * len(found))
            case "far":
                total += 1.5 * len(found)
            case _:
                total += 0.75 * len(found.encode("utf-8", "replace"))
    return total
