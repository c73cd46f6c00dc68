import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.lexer import MAX_LEXEME_CHARS, MAX_TEXT_CHARS, fold, lexemes, query_lexemes, term_counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("the and of le la les", []),
        ("I don't know", ["not", "know"]),
        ("ça ne marche pas", ["march", "pas"]),
        ("L’éclairage d'un œuf", lexemes("eclairage oeuf")),
        ("CreateComponents", lexemes("createcomponents create component")),
        ("max_size", ["max_size", "max", "siz"]),
        ("Urho3D iPhone", ["urho3d", *lexemes("iphone")]),
        ("HTTPServer", lexemes("httpserver http server")),
        ("version 1.9.3, 12.5mm", ["version", "1.9.3", "12.5mm"]),
        ("C++ or C#?", ["c++", "c#"]),
        ("ﬁle ２０", ["fil", "20"]),
    ],
)
def test_text_becomes_lexemes(text: str, expected: list[str]) -> None:
    assert lexemes(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("shadows", "Shadow"),
        ("rendering", "rendered"),
        ("données", "DONNEE"),
        ("chevaux", "cheval"),
        ("tailler", "taillé"),
        ("cafe\u0301", "cafés"),
        ("STRASSE", "Straße"),
    ],
)
def test_word_forms_meet(one: str, other: str) -> None:
    assert lexemes(one) == lexemes(other) != []


@pytest.mark.parametrize(("one", "other"), [("shadow", "light"), ("pas", ""), ("car", ""), ("not", "no")])
def test_words_that_differ_stay_apart(one: str, other: str) -> None:
    assert lexemes(one) != lexemes(other)


def test_counts_and_query() -> None:
    assert term_counts("shadow shadows light") == ({"shadow": 2, "light": 1}, 3)
    assert query_lexemes("light shadow light") == ["light", "shadow"]


def test_long_text_is_cut() -> None:
    assert lexemes("a1, " * MAX_TEXT_CHARS) == ["a1"] * (MAX_TEXT_CHARS // 4)
    assert lexemes("x" * 5000 + "_Y" * 5000)[0] == "x" * MAX_LEXEME_CHARS


@given(st.text() | st.text(alphabet="aA é’e\u0301\u0327\u0323ﬁ①œ각\u1100\u1161\ud800", max_size=60))
def test_folding_run_by_run_is_folding_the_whole(text: str) -> None:
    decomposed = unicodedata.normalize("NFKD", text)
    whole = "".join(c for c in decomposed if not unicodedata.combining(c))
    ligatures = str.maketrans({"œ": "oe", "Œ": "OE", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"})
    assert fold(text) == whole.translate(ligatures)


@given(st.text() | st.text(alphabet="aA1_.,'’+#é\u0301œ\0\ud800 nt", max_size=60))
def test_total_deterministic_and_clean(text: str) -> None:
    found = lexemes(text)
    assert found == lexemes(text)
    for lexeme in found:
        assert 0 < len(lexeme) <= MAX_LEXEME_CHARS
        assert "\0" not in lexeme
        assert not any(c.isspace() for c in lexeme)
        lexeme.encode("utf-8")
    counts, length = term_counts(text)
    assert sum(counts.values()) == length == len(found)
    assert set(query_lexemes(text)) == set(counts)
