"""Turns text into the lexemes of the keyword channel: the same way for what is indexed and what is asked."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

import Stemmer

MAX_TEXT_CHARS = 100_000
MAX_LEXEME_CHARS = 64
MAX_PARTS = 8

# Negations are kept; French words that mean something else in English (car, son, plus) are, too.
_ENGLISH_STOP = """
a about after again all also am an and any are as at be because been before being below between both but by can could
did do does doing down during each either else ever few for from further had has have having he hello her here hers
herself hi him himself his how however i if in into is it its itself just let like may maybe me might more most much
must my myself of off on once only or other our ours ourselves out over own please same shall she should so some such
than thank thanks that the their theirs them themselves then there these they this those though through to too under
until up us very want was we well were what when where which while who whom whose why will with wo would yet you your
yours yourself yourselves
"""
_FRENCH_STOP = """
a afin ai aie ainsi alors apres au aussi aux avait avec avez avoir avons ayant beaucoup bien bonjour ca ce ceci cela
celle celles celui ces cet cette ceux chaque chez ci comme comment dans de des depuis deux doit donc dont du elle elles
en encore entre est et etaient etait etant ete etes etre eu eux faire faut fois font ici il ils je la le les lequel
laquelle leur leurs lors lorsque lui ma mais me meme memes merci mes mon ne nos notre nous on ont ou par parce pendant
peu peut peuvent peux pour pourquoi puis puisque qu quand que quel quelle quelles quels quelque quelques qui quoi sa
salut se selon sera serait seront ses si sinon soit sommes sont sous suis sur ta te tes toi tous tout toute toutes tres
trop tu un une va vais vers veut veux voici voila vos votre vous vu
"""
_STOP = frozenset((_ENGLISH_STOP + _FRENCH_STOP).split())

_NEGATION = re.compile(r"n['’]t\b", re.IGNORECASE)
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’](?=\w)", re.IGNORECASE)
_CONTRACTION = re.compile(r"['’](?:s|re|ve|ll|d|m)\b", re.IGNORECASE)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)+[^\W_]*|[^\W_]+(?:_[^\W_]+)*(?:\+\+|#(?!\w))?")
_PART = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_LIGATURES = str.maketrans({"œ": "oe", "Œ": "OE", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"})

# Without a cache of their own the stemmers keep no state between calls, and a call holds the interpreter lock.
_english = Stemmer.Stemmer("english", 0)
_french = Stemmer.Stemmer("french", 0)


def fold(text: str) -> str:
    """The text in compatibility form (NFKD) without accents; case is kept, since identifiers are split by it."""
    # Run by run: neither a decomposition nor the order of accents reaches over an ASCII character.
    return text if text.isascii() else _NOT_ASCII.sub(_fold_run, text)


def _fold_run(run: re.Match[str]) -> str:
    decomposed = unicodedata.normalize("NFKD", run[0])
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_LIGATURES)


def _stem(word: str) -> str:
    # The French stem of the English stem: on the mixed and the French forum this beats either stemmer alone, and
    # beats indexing both stems, which counts twice every word on which they differ.
    if len(word) < 3 or not word.isalpha():
        return word
    stemmed: str = _french.stemWord(_english.stemWord(word))
    return stemmed


@lru_cache(maxsize=32_768)
def _token_lexemes(token: str) -> tuple[str, ...]:
    whole = token.casefold()[:MAX_LEXEME_CHARS]
    if whole in _STOP:
        return ()
    if token.isascii() and ("_" in token or not (token.islower() or token.isupper())):
        parts = [part.casefold() for part in _PART.findall(token)[:MAX_PARTS] if len(part) > 1]
        if len(parts) > 1:
            return _stem(whole), *(_stem(part[:MAX_LEXEME_CHARS]) for part in parts if part not in _STOP)
    return (_stem(whole),)


def lexemes(text: str) -> list[str]:
    """The lexemes of a text in reading order, repeats included; total, never an empty string.

    Accents and case folded, English and French stop words dropped (negations kept), stemmed. An identifier such as
    `CreateComponent` or `max_size` gives itself whole and its parts. Only the first MAX_TEXT_CHARS are read.
    """
    folded = fold(text[:MAX_TEXT_CHARS])
    if "'" in folded or "’" in folded:
        folded = _CONTRACTION.sub("", _ELISION.sub("", _NEGATION.sub(" not", folded)))
    return [lexeme for token in _TOKEN.findall(folded) for lexeme in _token_lexemes(token)]


def term_counts(text: str) -> tuple[dict[str, int], int]:
    """What BM25 stores of a text: how often each lexeme occurs, and the number of lexemes."""
    found = lexemes(text)
    return dict(Counter(found)), len(found)


def query_lexemes(text: str) -> list[str]:
    """The distinct lexemes of a question, in order of first use."""
    return list(dict.fromkeys(lexemes(text)))
