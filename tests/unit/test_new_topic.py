"""The prefilled new-topic link: what the member wrote arrives whole, and never leaves its address."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eval.endtoend.judge import Fault, faults
from service.answer.abstain import abstention, with_new_topic
from service.answer.markup.invisible import strip_invisible
from service.answer.messages import Message, message
from service.answer.new_topic import BODY_CHARS, LONGEST_URL, PATH, TITLE_CHARS, new_topic_link, new_topic_url
from service.domain import ENGLISH, FRENCH, CategoryId, Lang, Question, Trace
from tests.fakes.answering import BASE_URL
from tests.unit.forum_rules import live

QUESTION = Question("Puis-je composter des agrumes ?\nEt des oignons [x](y) & co ?", FRENCH, category_id=CategoryId(4))


def query(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)


def test_title_body_and_category_arrive_as_they_were_written() -> None:
    url = new_topic_url(QUESTION, f"{BASE_URL}/")
    assert url.startswith(f"{BASE_URL}{PATH}?title=Puis-je%20composter")
    assert query(url) == {
        "title": ["Puis-je composter des agrumes ? Et des oignons [x](y) & co ?"],
        "body": [QUESTION.text],
        "category_id": ["4"],
    }


def test_without_a_category_none_is_named() -> None:
    assert set(query(new_topic_url(replace(QUESTION, category_id=None), BASE_URL))) == {"title", "body"}


def test_a_long_question_is_cut_at_a_word() -> None:
    filled = query(new_topic_url(Question("water the pots " * 400, ENGLISH), BASE_URL))
    assert len(filled["title"][0]) <= TITLE_CHARS and filled["title"][0].endswith(("water…", "the…", "pots…"))
    assert len(filled["body"][0]) <= BODY_CHARS and filled["body"][0].endswith(("water…", "the…", "pots…"))


def test_a_question_that_is_a_topic_needs_no_other() -> None:
    assert with_new_topic("Nothing.", replace(QUESTION, title="Compost"), BASE_URL, seed=0) == "Nothing."


@pytest.mark.parametrize("lang", [ENGLISH, FRENCH])
def test_there_are_several_wordings(lang: Lang) -> None:
    told = {new_topic_link(replace(QUESTION, lang=lang), BASE_URL, seed=seed).split("](")[0] for seed in range(9)}
    assert len(told) >= 3


ESCAPES = st.lists(st.sampled_from(list(") ](\\\"'<>&=?#%\n\t`*_~!@[:/.a é\u202e\ud800\x00€😀")), max_size=80).map(
    "".join
)


@given(ESCAPES | st.text(), st.sampled_from([ENGLISH, FRENCH]), st.booleans())
@example(")[x](https://evil.example) ", ENGLISH, False)
@example('" onclick="x', ENGLISH, False)
@example("x&category=staff&tags=y#z", FRENCH, True)
@example("😀" * 2_000, FRENCH, True)
def test_nothing_of_the_members_leaves_the_address(text: str, lang: Lang, placed: bool) -> None:
    question = Question(text, lang, category_id=CategoryId(4) if placed else None)
    url = new_topic_url(question, BASE_URL)
    assert len(url) <= len(BASE_URL) + LONGEST_URL
    filled = query(url)
    assert list(filled) == ["title", "body", "category_id"][: 3 if placed else 2]
    visible = strip_invisible(text)[0].strip().encode(errors="replace").decode()
    assert visible.startswith(filled["body"][0].removesuffix("…"))
    told = abstention(question, Trace(), base_url=BASE_URL, seed=0).markdown
    assert live(told, [url]) == []
    assert faults(told, set(), base_url=BASE_URL, told=set(), new_topic=True) == frozenset()
    assert faults(told, set(), base_url=BASE_URL, told=set()) == {Fault.LINK}
    assert told.startswith(message(Message.ABSTAIN, question.lang, 0, question=text))


@pytest.mark.parametrize("url", [f"{PATH}?title=a&body=b&tags=c", f"{PATH}?title=a b", "/new-message?title=a&body=b"])
def test_the_judge_takes_no_other_link_for_it(url: str) -> None:
    assert Fault.LINK in faults(f"[x](<{BASE_URL}{url}>)", set(), base_url=BASE_URL, told=set(), new_topic=True)
