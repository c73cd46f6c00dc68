"""The server's own texts: every language whole, no two alike, nothing of a member's Markdown let through."""

import re
from string import Formatter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.answer.messages import SHOWN_CHARS, Message, folded_words, message, shown, wordings
from service.domain import ENGLISH, FRENCH, Lang

MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": True})
BOTH = [ENGLISH, FRENCH]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_french_and_english_are_there() -> None:
    assert {ENGLISH, FRENCH} <= set(wordings())


@pytest.mark.parametrize("key", list(Message))
def test_every_language_has_every_message_in_several_wordings(key: Message) -> None:
    wanted = placeholders(wordings()[ENGLISH].messages[key][0])
    for lang, wording in wordings().items():
        texts = wording.messages[key]
        assert len(set(texts)) == len(texts) >= 3, lang
        assert all(placeholders(text) == wanted for text in texts), lang


@pytest.mark.parametrize("lang", BOTH)
def test_every_footer_says_bot_and_flag_and_tells_replies_apart(lang: Lang) -> None:
    for text in wordings()[lang].messages[Message.FOOTER]:
        assert re.search(r"\bbot\b", text)
        assert re.search(r"\b(?:flag|drapeau)\b", text, re.IGNORECASE)
        assert placeholders(text) == {"reference"}


def test_french_is_set_with_its_spaces() -> None:
    for texts in wordings()[FRENCH].messages.values():
        for text in texts:
            assert not re.search(r"[ \w)»][?!;]", text.replace("\u202f", "#")), text
            assert not re.search(r"[^\u00a0]:|«[^\u00a0]|[^\u00a0]»|'", text), text


@pytest.mark.parametrize("lang", BOTH)
def test_seeds_go_round_the_wordings(lang: Lang) -> None:
    told = {message(Message.ABSTAIN, lang, seed, question="x") for seed in range(10)}
    assert len(told) == len(wordings()[lang].messages[Message.ABSTAIN])


def test_an_unknown_language_reads_english() -> None:
    assert message(Message.HELP, Lang("eo"), 0) == message(Message.HELP, ENGLISH, 0)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Comment tailler un rosier ?", "Comment tailler un rosier ?"),
        ("Is 3.5 bar (50 psi) too much for a 1/2 hose?", "Is 3.5 bar (50 psi) too much for a 1/2 hose?"),
        ("ask @bob, @everyone", "ask bob, everyone"),
        ("see https://evil.example/a?b=c now", "see now"),
        ("see //evil.example and www.evil.example", "see and"),
        ("evil.example/path is", "evil example/path is"),
        ("[click](javascript:alert(1)) ![i](x)", "click (javascript alert(1)) ! i (x)"),
        ("# title\n> quote\n- item", "title quote - item"),
        ("`code` **bold** _it_ ~~no~~ ||s||", "code bold it no s"),
        ("[spoiler]x[/spoiler] <b>y</b> &#64;bob", "spoiler x /spoiler b y /b 64 bob"),
        (":smile: note: this :x:y", "smile: note: this x y"),
        ("½ m² d’œuf…", "½ m² d’œuf"),
        ("#tag and ＠bob", "tag and bob"),
        ("a\u202eb\u200bc\x00d", "a b c d"),
        ("a..com a...", "a com a."),
        ("", ""),
    ],
)
def test_a_members_words_are_shown_plain(text: str, plain: str) -> None:
    assert shown(text) == plain


def test_a_long_question_is_cut_at_a_word() -> None:
    text = shown("pourquoi mes tomates " * 20)
    assert len(text) <= SHOWN_CHARS
    assert text.endswith(("pourquoi…", "mes…", "tomates…"))


MARKUP = (
    "@bob|#tag|http://|evil.com|www.|://|[|](|)|`|```|*|_|~~|<b>|<!--|&#64;|\n|\n\n| |1.|- |>|:|:smile:|[quote]"
    "|mailto:|.|．|\\|a|é|\u202e|{question}|{0}|$|=|---|…|1|٠|'|\"|&"
)
HOSTILE = st.lists(st.sampled_from(MARKUP.split("|")), max_size=30).map("".join)


@given(HOSTILE | st.text(), st.sampled_from(BOTH), st.sampled_from([Message.ABSTAIN, Message.SOURCES_INTRO]))
@example("a.com", ENGLISH, Message.ABSTAIN)
@example("x:// y.fr ٠.com", FRENCH, Message.ABSTAIN)
def test_nothing_of_a_question_becomes_markup(text: str, lang: Lang, key: Message) -> None:
    for seed in range(5):
        told = message(key, lang, seed, question=text)
        (opening, inline, closing) = MARKDOWN.parse(told)
        assert (opening.type, closing.type) == ("paragraph_open", "paragraph_close")
        assert [child.type for child in inline.children or []] == ["text"]
        assert not set(told) & set("@#[]<>`*_~|\\&^=\n")
        assert not re.search(r":[\w+-]+:|://", told)


@given(st.text())
def test_showing_is_idempotent_and_bounded(text: str) -> None:
    assert len(shown(text)) <= SHOWN_CHARS
    assert shown(shown(text)).rstrip(".… ") == shown(text).rstrip(".… ")


@given(st.text())
def test_folded_words_hold_words_only(text: str) -> None:
    assert folded_words(folded_words(text)) == folded_words(text)
