import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import ENGLISH, FRENCH, Lang
from service.inference.language import LanguageDetector

UNTOLD = Lang("??")
detect = LanguageDetector()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do I keep my sourdough starter alive?", ENGLISH),
        ("Comment garder mon levain en vie ?", FRENCH),
        ("levain trop liquide après rafraîchi", FRENCH),
        ("starter smells like nail polish", ENGLISH),
        ("Où est passée l'option d'export ?", FRENCH),
        ("Pourquoi mon build échoue avec une erreur the file is missing", FRENCH),
        ("", UNTOLD),
        ("ok merci", UNTOLD),
        ("42 1337 0x7f", UNTOLD),
        ("xq zzkv wpt", UNTOLD),
    ],
)
def test_language_of_a_question(text: str, expected: Lang) -> None:
    assert detect(text, fallback=UNTOLD) == expected


def test_other_languages_come_from_the_model() -> None:
    assert LanguageDetector((ENGLISH, FRENCH, Lang("es")))("¿Cómo puedo guardar la masa?", fallback=UNTOLD) == "es"


def test_plain_questions_do_not_load_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    fresh = LanguageDetector()
    assert fresh("How do I keep the dough warm?", fallback=UNTOLD) == ENGLISH
    assert fresh("Comment garder la pâte au chaud ?", fallback=UNTOLD) == FRENCH
    with pytest.raises(ImportError):
        fresh("dough temperature fridge overnight", fallback=UNTOLD)


@given(st.text(max_size=200))
def test_detection_is_total(text: str) -> None:
    assert detect(text, fallback=UNTOLD) in {ENGLISH, FRENCH, UNTOLD}
