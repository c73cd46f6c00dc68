"""What members' replies say of an answer: thanks, an objection, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.opinion import READ_CHARS, Opinion, opinion


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "thank you, I'll try that tonight",
        "It worked. Cheers",
        "Merci beaucoup",
        "Je te remercie, c’est exactement ça",
        "Génial, ça a marché !",
        "Thanks. Is there a cheaper one?",
        "Merci, ce n’est pas faux",
    ],
)
def test_thanks(text: str) -> None:
    assert opinion(text) is Opinion.THANKS


@pytest.mark.parametrize(
    "text",
    [
        "That's wrong.",
        "This doesn’t answer my question",
        "Thanks, but that didn't work",
        "thanks for nothing",
        "not what I asked",
        "Ca ne marche pas",
        "C’est faux !",
        "Merci mais ça ne répond pas à ma question",
        "N’importe quoi",
        "Complètement hors-sujet",
        "INUTILE",
    ],
)
def test_objections(text: str) -> None:
    assert opinion(text) is Opinion.OBJECTS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "How old is the valve?",
        "Is this wrong?",
        "Something is wrong with my pump",
        "What's wrong with it",
        "C’est un faux contact",
        "Est-ce que c’est faux ?",
        "My boiler doesn't work",
        "I wrongly closed it",
        "Ma pompe ne marche pas",
        "x" * READ_CHARS + " thanks",
    ],
)
def test_neither(text: str) -> None:
    assert opinion(text) is None


@given(st.text(max_size=3000))
def test_any_text_is_read(text: str) -> None:
    assert opinion(text) in (None, Opinion.THANKS, Opinion.OBJECTS)


@given(st.text(alphabet="abc ?\n", max_size=80), st.sampled_from(["That is wrong.", "C’est faux."]))
def test_an_objection_is_found_wherever_it_stands(around: str, objection: str) -> None:
    assert opinion(f"{around}\n{objection}\n{around}") is Opinion.OBJECTS
