"""When two usernames are the same (docs/discourse, section 6)."""

from unicodedata import normalize


def folded_name(username: str) -> str:
    """The form in which usernames compare: NFC-normalised and case-folded, and NFC again since folding can undo it."""
    return normalize("NFC", normalize("NFC", username).casefold())
