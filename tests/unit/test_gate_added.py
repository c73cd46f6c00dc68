"""Rules added to the gate's: they only decline more, and what gets an example wrong is left out."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.answer.gate.added import Extended, extended, read_rule
from service.answer.gate.compiled import Gate, build_gate
from service.answer.gate.match import decide
from service.answer.gate.rules import GateKind, bundled_files, merged
from service.errors import Misconfigured, Rejected
from service.moderation.rule_form import FIELDS, rule_text

FORM = {
    "id": "weather-en",
    "kind": "generalist",
    "language": "en",
    "verb": "(what is|what s|tell me) the weather\nweather forecast",
    "object": "tomorrow|tonight|in (paris|london)",
    "within": "5",
    "exceptions": "shader|game",
    "positives": "What is the weather tomorrow?\r\nTell me the weather in Paris\r\n\r\nWeather forecast for tonight",
    "lookalikes": "How do I fake the weather in my game tonight?\nIs there a weather shader?\nWhere is the sky node?",
}


@cache
def base() -> Gate:
    return build_gate(bundled_files())


def added(**fields: str) -> Extended:
    rule_id, text = rule_text({**FORM, **fields})
    return extended(base(), bundled_files(), {rule_id: text}, ())


def test_an_added_rule_declines_and_changes_nothing_else() -> None:
    made = added()
    assert made.faults == {}
    found = decide(made.gate, "Hello! What's the weather tonight?")
    assert found is not None
    assert (found.rule, found.kind) == ("weather-en", GateKind.GENERALIST)
    assert decide(made.gate, "Which shader draws the weather tonight?") is None
    for rule in merged(bundled_files()):
        for text in (*rule.positives, *rule.lookalikes):
            assert decide(made.gate, text) == decide(base(), text), text


@given(st.text(max_size=200) | st.sampled_from([text for rule in merged(bundled_files()) for text in rule.positives]))
def test_what_was_declined_stays_declined(text: str) -> None:
    if (found := decide(base(), text)) is not None:
        assert decide(WIDE.gate, text) == found


WIDE = added()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": "Weather"}, "rules.0.id"),
        ({"kind": "rain"}, "rules.0.kind"),
        ({"verb": ""}, "rules.0.intent.0.verb"),
        ({"verb": "Météo"}, "without accents"),
        ({"within": "many"}, "within: a number"),
        ({"within": "²"}, "within: a number"),
        ({"within": "99"}, "rules.0.intent.0.within"),
        ({"positives": "What is the weather tonight?"}, "rules.0.positives"),
        ({"verb": "x" * 9_000}, "characters at most"),
    ],
)
def test_a_form_that_says_no_rule_is_refused(fields: dict[str, str], says: str) -> None:
    with pytest.raises((Misconfigured, Rejected), match=says):
        rule_text({**FORM, **fields})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": "write-text-en"}, "the gate has a rule write-text-en already"),
        ({"verb": "weather("}, "a pattern of the gate"),
        ({"verb": "{nothing}"}, "no words 'nothing'"),
        ({"positives": "What is the weather tonight?\nTell me the weather in Paris\nWill it rain?"}, "Will it rain?"),
        ({"lookalikes": "a\nb\nWhat is the weather in London?"}, "declines a look-alike"),
        ({"lookalikes": "a\nb\nWrite me a poem about the sea"}, "declined by write-text-en"),
        ({"verb": "the", "object": "", "exceptions": ""}, "declines a look-alike"),
    ],
)
def test_a_rule_that_does_not_hold_is_left_out(fields: dict[str, str], says: str) -> None:
    made = added(**fields)
    assert says in " ".join(made.faults.values())
    assert decide(made.gate, "Tell me the weather in Paris") is None


def test_a_rule_that_does_not_hold_takes_no_other_with_it() -> None:
    texts = dict(
        [rule_text(FORM), rule_text({**FORM, "id": "greedy", "verb": "the|a|is", "object": "", "exceptions": ""})]
    )
    made = extended(base(), bundled_files(), {**texts, "broken": "{", "none": "[]"}, ())
    assert set(made.faults) == {"greedy", "broken", "none"}
    assert decide(made.gate, "Tell me the weather in Paris") is not None


def test_a_rule_of_a_kind_that_is_off_is_not_tried() -> None:
    off = (GateKind.GENERALIST,)
    rule_id, text = rule_text(FORM)
    made = extended(build_gate(bundled_files(), off=off), bundled_files(), {rule_id: text}, off)
    assert made.faults == {}
    assert decide(made.gate, "Tell me the weather in Paris") is None


@given(st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=40)))
def test_any_form_is_a_rule_or_refused(form: dict[str, str]) -> None:
    try:
        rule_id, text = rule_text({**FORM, **form})
    except (Misconfigured, Rejected):
        return
    assert read_rule(text, rule_id).id == rule_id


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", '{"id": []}', "[" * 100_000, '{"id": "\\ud800"}', "NaN"])
def test_a_stored_text_that_says_no_rule_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured):
        read_rule(text, "stored")
