"""Mechanical rewrites of a message that leave what it wants: what a member who was declined would try next."""

import re
import unicodedata
from collections.abc import Callable

_HALVES = re.compile(r"\s*[,:;.!?]\s+|\s+(?:and|et|then|puis)\s+")
_PREPOSITION = re.compile(r"(?<= )(?:in|on|for|with|to|from|at|about|before|pour|dans|sur|en|avec|sans|chez|par) ")
_SYNONYMS = (
    ("translate", "render"),
    ("write", "compose"),
    ("make", "produce"),
    ("build", "put together"),
    ("find", "look up"),
    ("give", "send"),
    ("tell", "show"),
    ("ignore", "disregard"),
    ("forget", "ignore"),
    ("hack", "break"),
    ("buy", "order"),
    ("get", "obtain"),
    ("print", "display"),
    ("reveal", "show"),
    ("repeat", "copy"),
    ("summarise", "sum up"),
    ("solve", "work out"),
    ("kill", "murder"),
    ("list", "show"),
    ("écris", "rédige"),
    ("rédige", "écris"),
    ("traduis", "traduisez"),
    ("fais", "prépare"),
    ("donne", "envoie"),
    ("dis", "explique"),
    ("trouve", "donne"),
    ("ignore", "oublie"),
    ("oublie", "ignore"),
    ("affiche", "montre"),
    ("répète", "recopie"),
    ("fabriquer", "construire"),
    ("acheter", "commander"),
    ("pirater", "hacker"),
    ("résume", "synthétise"),
    ("invente", "répands"),
)
_FILLERS = {"en": ("um", "you know", "please", "like"), "fr": ("euh", "en fait", "stp", "genre")}


def order(text: str, lang: str) -> str:
    """The second half first; a message of one piece begins with what follows its last preposition."""
    parts = [part for part in _HALVES.split(text.strip()) if part]
    if len(parts) > 1:
        return ", ".join(parts[1:] + parts[:1])
    places = [found.start() for found in _PREPOSITION.finditer(text)]
    return f"{text[places[-1] :].strip()}, {text[: places[-1]].strip()}" if places and not _spaced(text) else text


def _spaced(text: str) -> bool:
    """Whether its letters are set apart, so that words can't be moved or put between."""
    words = text.split()
    return sum(len(word) == 1 for word in words) > len(words) / 3


def verb(text: str, lang: str) -> str:
    """The first verb that has a synonym put in other words."""
    for word, other in _SYNONYMS:
        replaced, count = re.subn(rf"\b{word}\b", other, text, count=1, flags=re.IGNORECASE)
        if count:
            return replaced
    return text


def typo(text: str, lang: str) -> str:
    """Two inner letters of the longest word swapped, one letter of the next longest left out."""
    words = sorted(set(re.findall(r"[^\W\d_]{5,}", text)), key=lambda word: (-len(word), word))[:2]
    for at, word in enumerate(words):
        middle = len(word) // 2
        slip = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :] if at == 0 else ""
        text = text.replace(word, slip or word[:middle] + word[middle + 1 :], 1)
    return text


def accents(text: str, lang: str) -> str:
    """Without its accents, or, where it has none, with one on every second e."""
    bare = "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
    if bare != text:
        return bare
    places = [found.start() for found in re.finditer("e", text)][::2]
    return "".join("é" if at in places else char for at, char in enumerate(text))


def filler(text: str, lang: str) -> str:
    """A word that says nothing after every third word."""
    fillers, words = _FILLERS[lang], text.split()
    if _spaced(text):
        return text
    return " ".join(
        f"{word} {fillers[at // 3 % len(fillers)]}" if at % 3 == 2 and at < len(words) - 1 else word
        for at, word in enumerate(words)
    )


REWRITES: tuple[Callable[[str, str], str], ...] = (order, verb, typo, accents, filler)
