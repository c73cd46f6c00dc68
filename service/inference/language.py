"""Tells the language of a question among those that Ariane has wording for."""

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from service.domain import ENGLISH, FRENCH, Lang

MIN_WORDS = 3
MIN_CONFIDENCE = 0.75
MAX_CHARS = 1_000
MIN_FUNCTION_WORDS = 2

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH_WORDS = """
the is are was how what which where when why to of and in it its my your i you we they do does did can could should
would with for that this these there have has had from not but if by be been will just any
"""
_FRENCH_WORDS = """
le la les des du un une et est sont je tu il elle nous vous ils que qui quoi pour dans avec sur sans comment pourquoi
quel quelle quels quelles où mon ma mes ton ta votre vos pas ne au aux ce cette ces mais ou si y faire fait faut peut
peux ai avez être plus qu
"""
_FUNCTION_WORDS = {ENGLISH: frozenset(_ENGLISH_WORDS.split()), FRENCH: frozenset(_FRENCH_WORDS.split())}


def _by_function_words(words: Sequence[str], langs: Sequence[Lang]) -> Lang | None:
    """The language whose function words alone occur, at least MIN_FUNCTION_WORDS of them; None leaves it open."""
    if any(lang not in _FUNCTION_WORDS for lang in langs):
        return None
    counts = {lang: sum(word in _FUNCTION_WORDS[lang] for word in words) for lang in langs}
    found = [lang for lang, count in counts.items() if count]
    return found[0] if len(found) == 1 and counts[found[0]] >= MIN_FUNCTION_WORDS else None


def _load_classifier(langs: Sequence[str]) -> Callable[[str], tuple[str, float]]:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(langs)
    # The model of the other languages is half of its memory, and nothing asks for it again.
    identifier._full_model = identifier.nb_ptc, identifier.nb_pc, identifier.nb_classes = (
        np.array(identifier.nb_ptc),
        np.array(identifier.nb_pc),
        identifier.nb_classes,
    )
    classify: Callable[[str], tuple[str, float]] = identifier.classify
    return classify


class LanguageDetector:
    """DetectLanguage: by function words where they agree, else by py3langid limited to `langs`.

    The model (0.7 s to load, 50 MB) is loaded when a text first needs it; calls from several threads take turns.
    """

    def __init__(self, langs: Sequence[Lang] = (ENGLISH, FRENCH)) -> None:
        self._langs = tuple(langs)
        self._classify: Callable[[str], tuple[str, float]] | None = None
        self._turn = threading.Lock()

    def __call__(self, text: str, *, fallback: Lang) -> Lang:
        """The language of the text, or `fallback` for under MIN_WORDS words or a confidence under MIN_CONFIDENCE."""
        words = _WORD.findall(text[:MAX_CHARS])
        if len(words) < MIN_WORDS:
            return fallback
        if plain := _by_function_words([word.casefold() for word in words], self._langs):
            return plain
        with self._turn:
            if self._classify is None:
                self._classify = _load_classifier(self._langs)
            lang, confidence = self._classify(" ".join(words))
        return Lang(lang) if confidence >= MIN_CONFIDENCE else fallback
