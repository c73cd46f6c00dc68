"""Evidence: the part of a post that matches, whole sentences, never longer than allowed."""

from hypothesis import given
from hypothesis import strategies as st

from service.answer.evidence import excerpt, number_sources
from service.lexer import query_lexemes
from tests.fakes.answering import candidate

FILLER = "Nothing to see in this one, it only fills the page. "
WANTED = query_lexemes("How often should I water tomatoes?")


def test_a_short_post_is_whole() -> None:
    assert excerpt("  Water tomatoes daily.\n", WANTED, 300) == "Water tomatoes daily."


def test_the_sentences_that_match_are_kept_whole() -> None:
    body = FILLER * 30 + "My tomatoes are in pots. Water them every morning! " + FILLER * 30
    told = excerpt(body, WANTED, 160)
    assert "My tomatoes are in pots. Water them every morning!" in told
    assert told[0] == told[-1] == "…"
    assert len(told) <= 160


def test_the_beginning_wins_a_tie() -> None:
    told = excerpt(FILLER * 30, WANTED, 120)
    assert told.startswith("Nothing to see")
    assert told.endswith("fills the page.…")


def test_a_sentence_too_long_is_cut_at_words_around_its_match() -> None:
    body = "word " * 100 + "tomatoes " + "word " * 100
    told = excerpt(body, WANTED, 80)
    assert "tomatoes" in told
    assert set(told.strip("…").split()) == {"word", "tomatoes"}
    assert len(told) <= 80


def test_a_number_is_no_end_of_sentence() -> None:
    assert "Use 3.5 litres for tomatoes." in excerpt(
        FILLER * 9 + "Use 3.5 litres for tomatoes. " + FILLER * 9, WANTED, 90
    )


@given(
    st.text(st.sampled_from("ab .!?\n…tomates water "), max_size=600) | st.text(max_size=600),
    st.integers(20, 200),
)
def test_an_excerpt_is_bounded_and_taken_from_the_post(body: str, max_chars: int) -> None:
    told = excerpt(body, WANTED, max_chars)
    assert len(told) <= max_chars
    assert told in body or told.removeprefix("…").removesuffix("…").strip("…") in body
    assert bool(told) == bool(body.strip())


def test_sources_are_numbered_in_order() -> None:
    sources = number_sources([candidate(8, cosine=0.9), candidate(5)], WANTED, 300)
    assert [(source.n, source.post_id, source.cosine) for source in sources] == [(1, 8, 0.9), (2, 5, None)]
    assert sources[0].excerpt == candidate(8).body


def test_a_hostile_post_is_read_quickly() -> None:
    for body in ("." * 200_000, "a" * 200_000, "a. " * 60_000, "\n" * 100_000 + "x" * 9_999, "!? " * 60_000):
        assert len(excerpt(body, WANTED, 1250)) <= 1250
