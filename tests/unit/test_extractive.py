import html
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.answer.sanitize import sanitize
from service.domain import ENGLISH, FRENCH, Lang, PostId, Question, Source, TopicId, Zone
from service.inference.extractive import LEADS, MOST, ExtractiveAnswerer
from service.inference.sentences import MAX_CHARS, sentences

QUESTION = Question("How do I stop my sourdough starter from smelling of acetone?", ENGLISH)
CITED = re.compile(r" \[\[(\d+)\]\]$")


def source(n: int, excerpt: str, logit: float | None = 1.0, *, post_number: int = 2) -> Source:
    return Source(
        n=n,
        post_id=PostId(n),
        topic_id=TopicId(n),
        post_number=post_number,
        title="Sourdough",
        slug="sourdough",
        excerpt=excerpt,
        username="anna",
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
        cosine=0.9,
        logit=logit,
    )


SOURCES = [
    source(
        1,
        "Hi all!\n\nHave you tried feeding it more often? The acetone smell means that the starter is hungry. "
        "Feed it twice a day for a week and the acetone goes away.\n\nThanks, and good luck with it!",
    ),
    source(2, "We went to the river last summer with the whole family. The weather was quite nice.", logit=-3.0),
    source(3, "My starter smelled of acetone until I kept it below 24 degrees in the cellar.", logit=0.5),
]


async def test_the_sentences_that_answer_are_quoted_in_reading_order() -> None:
    draft = await ExtractiveAnswerer().draft(QUESTION, SOURCES, Zone.NORMAL)
    assert draft.by == "extractive"
    lead, blank, *lines = draft.text.split("\n")
    assert (lead, blank) == (LEADS[ENGLISH], "")
    assert lines == [
        "- The acetone smell means that the starter is hungry. [[1]]",
        "- Feed it twice a day for a week and the acetone goes away. [[1]]",
        "- My starter smelled of acetone until I kept it below 24 degrees in the cellar. [[3]]",
    ]


async def test_the_weak_zone_quotes_less() -> None:
    draft = await ExtractiveAnswerer().draft(QUESTION, SOURCES, Zone.WEAK)
    assert 1 <= draft.text.count("\n- ") <= MOST[Zone.WEAK]


@pytest.mark.parametrize(("lang", "lead"), [(FRENCH, LEADS[FRENCH]), (ENGLISH, LEADS[ENGLISH]), ("de", LEADS[ENGLISH])])
async def test_the_lead_is_in_the_language_of_the_question(lang: Lang, lead: str) -> None:
    draft = await ExtractiveAnswerer().draft(replace(QUESTION, lang=lang), SOURCES, Zone.NORMAL)
    assert draft.text.startswith(lead + "\n")


async def test_neighbours_are_quoted_with_the_sentence_that_matches() -> None:
    told = [
        source(1, "It rained. We went to the river. The acetone means that it starves. Feed it now. We are glad of it.")
    ]
    draft = await ExtractiveAnswerer().draft(QUESTION, told, Zone.WEAK)
    quoted = [line[2 : -len(" [[1]]")] for line in draft.text.split("\n")[2:]]
    assert quoted == ["We went to the river.", "The acetone means that it starves."]


async def test_every_likely_source_after_the_first_gives_one_sentence() -> None:
    told = [source(n, f"The jar {n} smells of acetone. Feeding helps jar {n} at once.", 1.0 - n / 9) for n in (1, 2, 3)]
    draft = await ExtractiveAnswerer().draft(QUESTION, told, Zone.NORMAL)
    assert re.findall(r"\[\[(\d)\]\]", draft.text) == ["1", "1", "2", "3"]


@pytest.mark.parametrize(("logits", "cited"), [((1, 0), {"1", "2"}), ((1, -1), {"1"}), ((None, None), {"1", "2"})])
async def test_a_source_far_less_likely_than_the_best_is_not_quoted(
    logits: tuple[float | None, float | None], cited: set[str]
) -> None:
    told = [
        source(1, "The starter is hungry when it smells.", logits[0]),
        source(2, "Acetone in the sourdough starter goes away when it is fed.", logits[1]),
    ]
    draft = await ExtractiveAnswerer().draft(QUESTION, told, Zone.NORMAL)
    assert set(re.findall(r"\[\[(\d)\]\]", draft.text)) == cited


@pytest.mark.parametrize(
    ("asking", "post_number"),
    [
        ("Mine smells of acetone every day. What do I do? I feed it weekly.", 1),
        ("Acetone smell?", 1),
        ("So many opinions about acetone here. Does feeding help?", 3),
    ],
)
async def test_the_list_of_sources_stands_for_a_best_topic_that_only_asks(asking: str, post_number: int) -> None:
    other = source(2, "My starter smelled of acetone until I fed it.")
    draft = await ExtractiveAnswerer().draft(QUESTION, [source(1, asking, post_number=post_number), other], Zone.NORMAL)
    assert draft.text == ""


async def test_a_reply_in_the_best_topic_is_quoted_for_its_question() -> None:
    asking = source(1, "Mine smells of acetone every day. What do I do?", post_number=1)
    reply = replace(source(2, "My starter smelled of acetone until I fed it."), topic_id=asking.topic_id)
    draft = await ExtractiveAnswerer().draft(QUESTION, [asking, reply], Zone.NORMAL)
    assert draft.text.split("\n")[2:] == ["- My starter smelled of acetone until I fed it. [[2]]"]


async def test_a_first_post_that_tells_is_quoted() -> None:
    told = source(1, "I measured when the starter smells of acetone, for a month.", post_number=1)
    draft = await ExtractiveAnswerer().draft(QUESTION, [told], Zone.NORMAL)
    assert draft.text.count("[[1]]") == 1


async def test_the_same_sentence_is_quoted_once() -> None:
    twice = [source(1, "Feed the acetone starter twice a day."), source(2, "Feed the acetone starter twice a day!")]
    draft = await ExtractiveAnswerer().draft(QUESTION, twice, Zone.NORMAL)
    assert draft.text.count("\n- ") == 1


@pytest.mark.parametrize("excerpt", ["", "ok", "What about you?", "int main() { return 0; }"])
async def test_nothing_to_quote_gives_an_empty_draft(excerpt: str) -> None:
    draft = await ExtractiveAnswerer().draft(QUESTION, [source(1, excerpt)], Zone.NORMAL)
    assert draft.text == ""


@pytest.mark.parametrize(
    ("said", "posted"),
    [
        ("Acetone *smells* when __starters__ starve, says `anna`.", "Acetone *smells* when __starters__ starve"),
        ("Feed it [[9]] twice a day, so that acetone goes away.", "Feed it twice a day"),
        ("- Keep the starter | cool and acetone stays away.", "Keep the starter | cool"),
        ("1) Keep the acetone away from it, always.", "1) Keep the acetone away"),
        (
            "A std::vector<int> holds 2 * 3 acetone_smells_here now.",
            "A std::vector<int> holds 2 * 3 acetone_smells_here",
        ),
    ],
)
async def test_quotes_read_as_they_were_written(said: str, posted: str) -> None:
    draft = await ExtractiveAnswerer().draft(QUESTION, [source(1, said)], Zone.NORMAL)
    post = sanitize(draft.text, [source(1, said)], zone=Zone.NORMAL, base_url="https://forum.example").post
    assert post is not None
    shown = html.unescape(re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", post.splitlines()[-1]))
    assert shown.startswith("- " + posted)


def test_sentences_worth_quoting() -> None:
    text = (
        "Hello everyone!\n\nI run version 1.9.3 here, e.g. on Debian. It works fine since May. Does it for you?\n"
        "    int x = 3;\nfoo->bar();\nVector3 ToPlane(Camera* camera, const Plane& plane)\n"
        "see https://example.com for more of this\nThis is how I did it there:\n"
        "The line goes on\nover its end and then stops. Short.\nHope this helps you all!"
    )
    assert sentences(text) == [
        "I run version 1.9.3 here, e.g. on Debian.",
        "It works fine since May.",
        "The line goes on over its end and then stops.",
    ]


def test_items_of_a_list_are_sentences_also_where_they_end_in_a_semicolon() -> None:
    text = (
        "Voici comment :\nvidez le bac sur une bâche ;\nremettez deux seaux de brun (feuilles, broyat) ;\n"
        "ça sent bon en trois jours.\nLay compost on top each autumn;\nnever walk on the beds again;\n"
        "const int smell = new Smell;\nstarter->Feed(the whole jar);\nfeed(all of these jars);"
    )
    assert sentences(text) == [
        "videz le bac sur une bâche",
        "remettez deux seaux de brun (feuilles, broyat)",
        "ça sent bon en trois jours.",
        "Lay compost on top each autumn",
        "never walk on the beds again",
    ]


def test_a_remark_in_brackets_before_a_semicolon_makes_no_code() -> None:
    text = "Il leur faut de la pression (0,5 à 1 bar) ; un programmateur à vanne ; et une cuve."
    assert sentences(text) == [text]


def test_a_long_sentence_ends_at_a_word() -> None:
    (only,) = sentences("bread " * 200)
    assert len(only) <= MAX_CHARS
    assert only.endswith("bread…")


@given(st.text() | st.text(alphabet="ab .?!\n…[]{}();:/'1é", max_size=200))
def test_sentences_are_parts_of_the_text(text: str) -> None:
    for sentence in sentences(text):
        assert 0 < len(sentence) <= MAX_CHARS
        assert "\n" not in sentence
        assert sentence.rstrip("…") in " ".join(text.split())


@given(st.lists(st.text(max_size=120), max_size=4), st.sampled_from(list(Zone)))
@settings(max_examples=60)
async def test_nothing_but_the_lead_and_cited_sentences_is_written(excerpts: list[str], zone: Zone) -> None:
    sources = [source(n, excerpt) for n, excerpt in enumerate(excerpts, start=1)]
    draft = await ExtractiveAnswerer().draft(QUESTION, sources, zone)
    if draft.text:
        lead, blank, *lines = draft.text.split("\n")
        assert (lead, blank) == (LEADS[ENGLISH], "")
        assert len(lines) <= MOST[Zone.NORMAL]
        for line in lines:
            cited = CITED.search(line)
            assert cited is not None
            written = re.sub(r"\\(.)", r"\1", line[2 : cited.start()])
            assert written in sentences(sources[int(cited[1]) - 1].excerpt)
