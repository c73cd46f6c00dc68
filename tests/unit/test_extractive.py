import html
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.answer.sanitize import sanitize
from service.domain import ENGLISH, FRENCH, Lang, PostId, Question, Source, TopicId, Vector, Zone
from service.errors import Transient
from service.inference.extractive import LEADS, MAX_EMBEDDED, MOST, ExtractiveAnswerer
from service.inference.sentences import MAX_CHARS, sentences

QUESTION = Question("How do I stop my sourdough starter from smelling of acetone?", ENGLISH)
CITED = re.compile(r" \[\[(\d+)\]\]$")


class FakeEmbedder:
    """Every sentence is as near as the share of its words that begin with "ac"; can be down."""

    def __init__(self, *, down: bool = False) -> None:
        self.down = down
        self.embedded: list[str] = []

    async def embed_query(self, text: str) -> Vector:
        if self.down:
            raise Transient("down")
        return np.array([1.0, 0.0], dtype=np.float32)

    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]:
        self.embedded += texts
        near = [sum(word.startswith("ac") for word in text.split()) / (1 + len(text.split())) for text in texts]
        return [np.array([x, np.sqrt(1 - x * x)], dtype=np.float32) for x in near]


def source(n: int, excerpt: str, logit: float | None = 1.0) -> Source:
    return Source(
        n=n,
        post_id=PostId(n),
        topic_id=TopicId(n),
        post_number=2,
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
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(QUESTION, SOURCES, Zone.NORMAL)
    assert draft.by == "extractive"
    lead, blank, *lines = draft.text.split("\n")
    assert (lead, blank) == (LEADS[ENGLISH], "")
    assert lines == [
        "- The acetone smell means that the starter is hungry. [[1]]",
        "- Feed it twice a day for a week and the acetone goes away. [[1]]",
        "- My starter smelled of acetone until I kept it below 24 degrees in the cellar. [[3]]",
    ]


async def test_the_weak_zone_quotes_less() -> None:
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(QUESTION, SOURCES, Zone.WEAK)
    assert 1 <= draft.text.count("\n- ") <= MOST[Zone.WEAK]


@pytest.mark.parametrize(("lang", "lead"), [(FRENCH, LEADS[FRENCH]), (ENGLISH, LEADS[ENGLISH]), ("de", LEADS[ENGLISH])])
async def test_the_lead_is_in_the_language_of_the_question(lang: Lang, lead: str) -> None:
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(replace(QUESTION, lang=lang), SOURCES, Zone.NORMAL)
    assert draft.text.startswith(lead + "\n")


async def test_words_decide_while_the_embedder_is_down() -> None:
    draft = await ExtractiveAnswerer(FakeEmbedder(down=True)).draft(QUESTION, SOURCES, Zone.NORMAL)
    assert "hungry" in draft.text
    assert "river" not in draft.text


async def test_few_sentences_are_embedded() -> None:
    embedder = FakeEmbedder()
    many = [source(n, " ".join(f"Sentence {n} {i} tells of acetone." for i in range(50))) for n in range(1, 7)]
    await ExtractiveAnswerer(embedder).draft(QUESTION, many, Zone.NORMAL)
    assert 0 < len(embedder.embedded) <= MAX_EMBEDDED


async def test_the_same_sentence_is_quoted_once() -> None:
    twice = [source(1, "Feed the acetone starter twice a day."), source(2, "Feed the acetone starter twice a day!")]
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(QUESTION, twice, Zone.NORMAL)
    assert draft.text.count("\n- ") == 1


@pytest.mark.parametrize("excerpt", ["", "ok", "What about you?", "int main() { return 0; }"])
async def test_nothing_to_quote_gives_an_empty_draft(excerpt: str) -> None:
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(QUESTION, [source(1, excerpt)], Zone.NORMAL)
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
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(QUESTION, [source(1, said)], Zone.NORMAL)
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
@settings(deadline=None, max_examples=60)
async def test_nothing_but_the_lead_and_cited_sentences_is_written(excerpts: list[str], zone: Zone) -> None:
    sources = [source(n, excerpt) for n, excerpt in enumerate(excerpts, start=1)]
    draft = await ExtractiveAnswerer(FakeEmbedder()).draft(QUESTION, sources, zone)
    if draft.text:
        lead, blank, *lines = draft.text.split("\n")
        assert (lead, blank) == (LEADS[ENGLISH], "")
        assert len(lines) <= MOST[Zone.NORMAL]
        for line in lines:
            cited = CITED.search(line)
            assert cited is not None
            written = re.sub(r"\\(.)", r"\1", line[2 : cited.start()])
            assert written in sentences(sources[int(cited[1]) - 1].excerpt)
