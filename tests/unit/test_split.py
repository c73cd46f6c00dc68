"""Splitting a long text: nothing but blanks is lost, no piece is too long, neighbours overlap, ends are good ones."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.inference.tokens import estimated_tokens
from service.ingest.split import CHARS_A_TOKEN, split

ROUNDING = 1e-6
"""Token counts are sums of fractions."""


def words(text: str) -> float:
    return float(len(text.split()))


TEXTS = st.text(max_size=300) | st.lists(
    st.sampled_from(["a", "bcd", "Sentence.", "«Fin!»", "x" * 90, "\n", "\n\n", "  ", "été", "漢字漢字", "🌱"]),
    max_size=120,
).map(" ".join)


@given(text=TEXTS, size=st.integers(4, 60), overlap=st.integers(0, 60))
@example(text="y" * 500, size=4, overlap=2)
@example(text="a " + "x" * 200 + " b", size=8, overlap=4)
@example(text="a" + " " * 500 + "b", size=4, overlap=1)
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, size: int, overlap: int) -> None:
    pieces = split(text, estimated_tokens, size=size, overlap=overlap)
    assert pieces == split(text, estimated_tokens, size=size, overlap=overlap)
    covered = 0
    for piece in pieces:
        assert piece == piece.strip()
        assert estimated_tokens(piece) <= size + ROUNDING
        assert len(piece) <= size * CHARS_A_TOKEN
        # Of the places where it may stand, the last that leaves out only blanks: a repetitive text has many.
        unseen = len(text) - len(text[covered:].lstrip())
        at = text.rfind(piece, 0, unseen + len(piece))
        assert at >= 0
        covered = max(covered, at + len(piece))
    assert text[covered:].strip() == ""


@given(text=TEXTS, size=st.integers(8, 40))
def test_a_text_that_fits_is_one_piece(text: str, size: int) -> None:
    if text.strip() and estimated_tokens(text) <= size and len(text) <= size * CHARS_A_TOKEN:
        assert split(text, estimated_tokens, size=size, overlap=size // 4) == [text.strip()]


def test_a_blank_text_has_no_piece() -> None:
    assert split(" \n\t", words, size=5, overlap=1) == []


def test_neighbours_share_the_overlap() -> None:
    text = " ".join(f"w{n}" for n in range(25))
    pieces = [piece.split() for piece in split(text, words, size=10, overlap=3)]
    assert [(piece[0], piece[-1]) for piece in pieces] == [("w0", "w9"), ("w7", "w16"), ("w14", "w23"), ("w21", "w24")]


@pytest.mark.parametrize(
    ("blanks", "ends"),
    [
        ({8: "\n\n", 9: "\n"}, "w8"),  # a paragraph before any later line
        ({7: "\n", 5: "\n\n"}, "w5"),
        ({7: "\n"}, "w7"),
        ({3: "\n\n"}, "w9"),  # less than half full
        ({}, "w9"),
    ],
)
def test_a_piece_ends_where_a_paragraph_or_line_does(blanks: dict[int, str], ends: str) -> None:
    text = "".join(f"w{n}{blanks.get(n, ' ')}" for n in range(30))
    assert split(text, words, size=10, overlap=0)[0].split()[-1] == ends


def test_a_piece_ends_with_a_sentence() -> None:
    text = "one two three four five six seven. (Eight nine?) ten eleven twelve"
    assert split(text, words, size=10, overlap=0) == [
        "one two three four five six seven. (Eight nine?)",
        "ten eleven twelve",
    ]


def test_what_is_added_at_the_end_changes_the_last_pieces_only() -> None:
    text = " ".join(f"w{n}" for n in range(100))
    before, after = (split(one, words, size=20, overlap=4) for one in (text, f"{text} and more"))
    assert after[: len(before) - 1] == before[:-1]
    assert after[-1].endswith("and more")


def test_a_word_is_cut_between_characters_that_count_much() -> None:
    assert split("漢字漢字漢", lambda text: 10.0 * len(text), size=20, overlap=0) == ["漢字", "漢字", "漢"]
    assert split("漢字", lambda text: 10.0 * len(text), size=5, overlap=0) == ["漢", "字"]
