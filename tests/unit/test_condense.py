"""Condensing by rules: what leans on earlier turns gets their subject; what stands alone stays as it is."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from service.answer.condense.dependence import Dependence, dependence
from service.answer.condense.rules import MAX_CHARS, MIN_CHARS, clean, condense
from service.lexer import lexemes
from tests.shared import SHARED, needs_shared

DEMO = Path(__file__).parents[2] / "eval" / "demo" / "questions.yml"

SLUGS = (
    ("user", "What keeps slugs off my lettuce plants?"),
    ("bot", "Nematodes such as Nemaslug work from 5 degrees on."),
)

LEANING = (
    "and in winter?",
    "What about copper tape?",
    "does it also work on a clay soil after heavy rain?",
    "Is that safe for hedgehogs and for the neighbour's dog?",
    "gypsum then?",
    "Thanks a lot! Would those survive the frost of a mountain garden?",
    "which ones are best on a north facing balcony wall?",
    "et pour les pots ?",
    "Ça marche aussi pour les haricots grimpants du voisin ?",
    "Merci. Même quand il gèle la nuit ?",
    "je les arrose combien de fois pendant les grosses chaleurs ?",
    "celles qui sont déjà abîmées, on peut les sauver avec du cuivre ?",
)
STANDING_ALONE = (
    "Why do the leaves of my young pepper plants turn yellow between the veins?",
    "A fox digs up my raised bed every night, how do I keep it out?",
    "Is it true that coffee grounds acidify garden soil over the years?",
    "When it rains for days, do potato tubers rot in heavy clay?",
    "Quelle distance faut-il laisser entre deux rangs de poireaux d'hiver ?",
    "Mes semis de tomates filent sur le rebord de fenêtre, comment les sauver ?",
    "Faut-il tailler les framboisiers remontants en automne ou au printemps ?",
    "Pourquoi les fleurs de courgette tombent-elles avant de donner des fruits ?",
)
NEW_SUBJECTS = (
    ("Other question: how deep do leeks go?", "how deep do leeks go?"),
    ("ok great. Different topic, can fig trees grow in tubs?", "can fig trees grow in tubs?"),
    ("Merci ! Autre chose : quand tailler la vigne ?", "quand tailler la vigne ?"),
    ("Rien à voir, mais quel paillage pour les fraisiers ?", "mais quel paillage pour les fraisiers ?"),
)


@pytest.mark.parametrize("text", LEANING)
def test_what_cannot_stand_alone_gets_its_subject(text: str) -> None:
    assert dependence(clean(text)) is Dependence.LEANS
    full = condense(text, SLUGS)
    assert "slugs off my lettuce" in full
    assert set(lexemes(full)) >= set(lexemes(text)) - {"merc", "lot"}


@pytest.mark.parametrize("text", STANDING_ALONE)
def test_a_question_that_stands_alone_is_never_touched(text: str) -> None:
    assert condense(text, SLUGS) == ""
    assert condense(text, ()) == ""


@pytest.mark.parametrize(("text", "alone"), NEW_SUBJECTS)
def test_a_new_subject_leaves_the_old_one_behind(text: str, alone: str) -> None:
    assert condense(text, SLUGS) == alone


def test_only_names_are_taken_of_what_the_bot_said() -> None:
    turns = (
        ("user", "How do I mix sounds?"),
        ("bot", "Nobody knows. Use [Sound rooms](https://x.example/t/1) or the AudioMixer of Brasilia.\nFlag it"),
    )
    full = condense("and at night?", turns)
    assert full == "at night? at night? How do I mix sounds? AudioMixer Brasilia"
    assert condense("and at night?", turns[1:]) == "at night? at night? AudioMixer Brasilia"


def test_the_last_three_human_posts_are_read_and_no_more() -> None:
    turns = (
        ("title", "A hedge for a windy slope"),
        ("user", "Do beeches like chalk?"),
        ("user", "and hornbeam?"),
        ("user", "and box?"),
    )
    full = condense("and yew?", turns)
    assert "hornbeam" in full
    assert "box" in full
    assert "hedge" in full
    assert "beeches" not in full


def test_nothing_is_carried_over_from_behind_another_subject() -> None:
    turns = (
        ("user", "What keeps slugs off my lettuce?"),
        ("user", "New subject: how do I store dahlia tubers safely through a cold and wet winter?"),
        ("bot", "In dry sand."),
        ("user", "ok, thanks!"),
    )
    full = condense("and begonias?", turns)
    assert "dahlia" in full
    assert "slugs" not in full
    assert "New subject" not in full


def test_a_long_post_gives_its_first_sentence_and_its_last_question() -> None:
    story = (
        "My pond is two metres wide. "
        + "It has been there for years and we love it. " * 8
        + "Why is it green? Regards."
    )
    full = condense("and the newts?", (("user", story),))
    assert full == "the newts? the newts? My pond is two metres wide. Why is it green?"


@pytest.mark.parametrize("text", ["and this?", "et ça ?", "???", "", "ok"])
def test_with_nothing_to_carry_over_it_stays_as_it_is(text: str) -> None:
    assert condense(text, ()) == ""
    assert condense(text, (("bot", "Nothing was found."), ("user", "ok thanks"))) == ""


def test_code_quotes_addresses_and_mentions_are_not_carried_over() -> None:
    said = "Look at https://a.example/x @marie\n> quoted words\n```\ncode_here\n```\nHow do I prune the old pear?"
    full = condense("and the new one?", (("user", said),))
    assert "prune the old pear" in full
    assert not any(gone in full for gone in ("a.example", "@marie", "quoted", "code_here"))


ROLES = st.sampled_from(["user", "bot", "title"])
WORDS = st.sampled_from(
    [*LEANING, *STANDING_ALONE, "and", "et", "it", "ça", "```", "> x", "https://a.b", "ParticleEmitter"]
)
TEXTS = st.one_of(st.text(max_size=400), st.lists(WORDS, max_size=12).map(" ".join))


@given(TEXTS, st.lists(st.tuples(ROLES, TEXTS), max_size=6))
def test_any_text_gives_a_bounded_line_that_tells_no_address(text: str, turns: list[tuple[str, str]]) -> None:
    full = condense(text, turns)
    assert not full or MIN_CHARS <= len(full) <= MAX_CHARS
    assert "\n" not in full
    assert "://" not in full
    assert condense(text, turns) == full


@given(TEXTS, st.lists(st.tuples(ROLES, TEXTS), max_size=6))
def test_standing_alone_does_not_depend_on_what_was_said_before(text: str, turns: list[tuple[str, str]]) -> None:
    if dependence(clean(text)) is Dependence.ALONE:
        assert condense(text, turns) == ""


def questions(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return found


def touched(path: Path) -> tuple[list[str], list[str], list[str]]:
    """Of a dataset: the standalone questions changed after other exchanges, those asked, and follow-ups not helped."""
    asked = questions(path)
    followups = [one for one in asked if one["slice"] == "followup"]
    alone = [one["question"] for one in asked if one["slice"] != "followup"]
    turns = [tuple((turn["role"], turn["text"]) for turn in one["history"]) for one in followups]
    changed = [text for n, text in enumerate(alone) if condense(text, turns[n % len(turns)])]
    assert not [text for text in alone if condense(text, ())]
    missed = [one["id"] for one, said in zip(followups, turns, strict=True) if not condense(one["question"], said)]
    return changed, alone, missed


def test_other_exchanges_seldom_touch_the_demos_questions_and_its_follow_ups_are_all_helped() -> None:
    changed, alone, missed = touched(DEMO)
    assert len(changed) <= 0.05 * len(alone)
    assert missed == []


@needs_shared
def test_other_exchanges_touch_no_question_of_a_real_forum() -> None:
    changed, alone, missed = touched(SHARED / "data" / "urho3d" / "questions.yml")
    assert len(alone) > 100
    assert changed == []
    assert missed == []
