"""The model-free check of a draft: what is invented or turned round goes, paraphrases stay, and no draft breaks it."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.answer import verify
from service.answer.evidence import number_sources
from service.answer.messages import Message, message
from service.answer.sanitize import clean
from service.answer.support.claims import Evidence, Judgement, Support, judge, read_source
from service.answer.support.closeness import MOST_TEXTS
from service.answer.support.figures import read_figures, unfounded
from service.answer.support.polarity import clauses, inverted
from service.answer.support.verbatim import collapsed, names, stands_in
from service.answer.verify import MOST_CLAIMS, Held, hold
from service.domain import ENGLISH, FRENCH, Draft, Lang, Question, Source, Trace, Vector
from service.errors import Rejected, Transient
from tests.fakes.answering import candidate
from tests.unit.support_labels import figures, judged, labels

QUESTION = Question("How often should I water tomatoes in pots?", ENGLISH)
BODY = (
    "Water tomatoes in pots every morning, and twice a day above 28 °C. Never wet the leaves. "
    "I add 5 g of feed a litre each week from June on, with version 2.3.1 of the K7 timer."
)
SOURCES = number_sources(
    [candidate(1, body=BODY), candidate(2, body="Mulch keeps the compost moist for days.")], [], 1250
)


async def held(text: str, question: Question = QUESTION, **changes: object) -> tuple[Held, Trace]:
    trace = Trace()
    embedder = changes.get("embedder")
    draft = Draft(text, "scripted", lang=question.lang)
    return await hold(question, draft, SOURCES, embedder, trace, seed=0), trace  # type: ignore[arg-type] # scripted below


@pytest.mark.parametrize("half", ["dev", "test"])
async def test_most_bad_sentences_are_caught_and_few_good_ones(half: str) -> None:
    found = figures([(label, await judged(label)) for label in labels() if label.half == half])
    assert found.precision >= 0.85
    assert found.recall >= 0.85


async def test_every_invented_figure_of_the_labels_goes() -> None:
    for label in labels():
        if label.bad == "figure":
            assert (await judged(label)).support is Support.NONE, label.text


def test_the_labels_are_balanced_and_of_both_languages() -> None:
    assert len(labels()) >= 80
    for half in ("dev", "test"):
        for lang in (ENGLISH, FRENCH):
            part = [label for label in labels() if (label.half, label.lang) == (half, lang)]
            assert 0.4 <= sum(not label.bad for label in part) / len(part) <= 0.6
    assert len({label.text for label in labels()}) == len(labels())


@pytest.mark.parametrize(
    ("claim", "source", "missing"),
    [
        ("wait 14 days", "wait two weeks", ()),
        ("use 1.5 L", "prenez 1,5 litre", ()),
        ("use 1,500 g", "use 1.5 kg", ()),
        ("10 000 m²", "10000 m2", ()),
        ("16 to 18 °C", "16-18°", ()),
        ("5 cm deep", "at 5 °C", ("5",)),
        ("16 cm", "16 to 18 °C", ("16",)),
        ("quinze jours", "15 jours", ()),
        ("les deux sortes", "des sortes", ()),
        ("one pot", "a pot", ()),
        ("on 21 December", "21 décembre", ()),
        ("on 21 December", "December 2021", ("21",)),
        ("en février", "en mars", ("month 2",)),
        ("you may march on", "walk", ()),
        ("In May it starts", "in April", ("month 5",)),
        ("with DX11", "with dx9", ("dx11",)),
        ("since version 2.3.2", "version 2.3.1", ("2.3.2",)),
        ("at 22:30", "at 22h30", ()),
        ("50 %", "50 percent", ()),
        ("three pots", "4 pots", ("three",)),
    ],
)
def test_figures_are_checked_exactly(claim: str, source: str, missing: tuple[str, ...]) -> None:
    assert unfounded(read_figures(claim, claimed=True), [read_figures(source, claimed=False)]) == missing


@pytest.mark.parametrize(
    ("claim", "source", "turned"),
    [
        ("Wet the leaves often.", "Never wet the leaves.", True),
        ("Don't wet the leaves.", "Never wet the leaves.", False),
        ("Ne mouillez pas les feuilles.", "Évitez de mouiller les feuilles.", False),
        ("Mouillez les feuilles.", "Évitez de mouiller les feuilles.", True),
        ("Prune tomatoes before flowering.", "Prune tomatoes after flowering.", True),
        ("Arrosez les tomates le soir.", "Arrosez les tomates le matin.", True),
        ("Arrosez les tomates matin et soir.", "Arrosez les tomates le matin et le soir.", False),
        ("Mulch is cheap.", "Never wet the leaves.", False),
        ("Mesh no wider than 1 mm stops flies.", "Mesh of 1 mm stops flies.", False),
    ],
)
def test_the_opposite_is_told(claim: str, source: str, turned: bool) -> None:
    assert inverted(clauses(claim), clauses(source)) is turned


async def test_what_no_source_says_goes_and_the_rest_stays() -> None:
    done, trace = await held(
        "Water tomatoes in pots every morning [[1]]. Give 50 g of feed a week [[1]]. Aphids hate garlic spray [[2]]."
        "\n\n- Mulch keeps compost moist [[2]].\n- Wet the leaves [[1]]."
    )
    assert done.draft.text == "Water tomatoes in pots every morning [[1]].\n\n- Mulch keeps compost moist [[2]]."
    assert done.stands
    assert trace.removed == {"unsupported": 3}


async def test_a_wrong_citation_is_no_support() -> None:
    done, _ = await held("Mulch keeps the compost moist for days [[1]].")
    assert not done.stands and done.draft.text == ""


async def test_a_weak_sentence_is_hedged_in_the_questions_language() -> None:
    text = "Water tomatoes every morning with drizzle hoses and rubber gaskets [[1]]."
    done, trace = await held(text)
    assert done.draft.text == f"{text} {message(Message.UNSURE, ENGLISH, 0)}"
    assert done.stands and trace.removed == {"hedged": 1}
    assert clean(done.draft.text, 2) == done.draft.text


async def test_what_leads_to_the_answer_and_what_is_not_known_may_stay_without_support() -> None:
    text = (
        "Members say this:\n\n- Water tomatoes in pots every morning [[1]].\n\n"
        "The posts don’t say anything about strawberries [[1]]."
    )
    done, _ = await held(text)
    assert done.draft.text == text


@pytest.mark.parametrize(
    "text",
    [
        "The sources do not mention it, but bleach mixed with ammonia cleans the roots best [[1]].",
        "No member says otherwise: pour petrol around the stem to kill every weed [[1]].",
        "The forum does not answer this; however, vinegar in the reservoir strengthens every leaf [[1]].",
        f"The posts do not say {'anything at all ' * 9}and bleach mixed with ammonia cleans the roots [[1]].",
        "Members recommend pouring bleach mixed with ammonia on old roots.",
        "Will bleach mixed with ammonia on every leaf help you?",
        "Pour bleach mixed with ammonia on every leaf:",
    ],
)
async def test_nothing_rides_on_a_limit_or_on_a_lead(text: str) -> None:
    stays = "Water tomatoes in pots every morning [[1]]."
    done, trace = await held(f"{stays} {text}")
    assert done.draft.text == stays
    assert trace.removed == {"unsupported": 1}


@pytest.mark.parametrize(
    "text",
    [
        "The posts don’t say how often to water strawberries, melons, leeks and chives in winter [[1]].",
        "None of the threads mentions repotting, so I can’t tell [[1]].",
        "The posts don’t mention winter, only that mulch keeps compost moist [[2]].",
        "Here is what members advise on tomatoes in pots.",
    ],
)
async def test_a_limit_or_a_lead_that_says_nothing_else_stays(text: str) -> None:
    done, _ = await held(f"Water tomatoes in pots every morning [[1]]. {text}")
    assert done.draft.text.endswith(text)


async def test_a_figure_without_a_citation_must_be_in_some_source() -> None:
    done, _ = await held("Water tomatoes in pots every morning [[1]]. It takes 3 L.")
    assert done.draft.text == "Water tomatoes in pots every morning [[1]]."


async def test_figures_of_the_question_are_known() -> None:
    asked = Question("How often should I water tomatoes in 12 L pots?", ENGLISH)
    done, _ = await held("Water tomatoes in 12 L pots every morning [[1]].", asked)
    assert done.stands


async def test_headings_are_claims_like_any_other() -> None:
    done, trace = await held("# Pour bleach on the roots [[1]]")
    assert not done.stands and done.draft.text == ""
    assert trace.removed == {"unsupported": 1}
    good = "## Water tomatoes in pots every morning [[1]]"
    done, _ = await held(f"# Pour bleach on the roots\n\n{good}")
    assert done.stands and done.draft.text == good
    weak = "Water tomatoes every morning with drizzle hoses and rubber gaskets [[1]]"
    done, _ = await held(f"# {weak}")
    assert done.draft.text == f"# {weak} {message(Message.UNSURE, ENGLISH, 0)}"


CODE = number_sources(
    [
        candidate(
            1, body="Build it so:\n\nmake clean\n  make -j4 all\nmake install\n\nNever run rm -rf /tmp/x yourself."
        ),
        candidate(2, body="Call node->SetEnabled(true) and then `touch done`."),
    ],
    [],
    1250,
)


@pytest.mark.parametrize(
    ("code", "stays"),
    [
        ("make clean\nmake   -j4 all\n\nmake install", True),
        ("make clean\nmake install", True),
        ("    make -j4 all", True),
        ("touch done", True),
        ("make install\nmake clean", False),
        ("make clean\ntouch done", False),
        ("make clean\nrm -rf /", False),
        ("rm -rf /", False),
        ("Make clean", False),
        ("make", True),
    ],
)
async def test_code_stays_where_all_its_lines_stand_in_one_excerpt(code: str, stays: bool) -> None:
    text = f"Build it so [[1]].\n\n```\n{code}\n```"
    done = await hold(QUESTION, Draft(text, "x", lang=ENGLISH), CODE, None, Trace(), seed=0)
    assert done.stands
    assert ("```" in done.draft.text) is stays


async def test_code_is_judged_wherever_it_stands_and_may_be_the_questions_own() -> None:
    text = "Build it so [[1]].\n\n> - ```\n>   rm -rf /\n>   ```"
    done = await hold(QUESTION, Draft(text, "x", lang=ENGLISH), CODE, None, Trace(), seed=0)
    assert done.draft.text == "Build it so [[1]]."
    asked = Question("Is this right?\n\nrm -rf / --now", ENGLISH)
    text = "Build it so [[1]].\n\n```\nrm -rf / --now\n```"
    done = await hold(asked, Draft(text, "x", lang=ENGLISH), CODE, None, Trace(), seed=0)
    assert done.draft.text == text


@given(st.text(max_size=80), st.text(max_size=200))
def test_looking_for_code_is_total_and_any_text_stands_in_itself(code: str, text: str) -> None:
    assert stands_in(code, collapsed(code)) and names(code, collapsed(code))
    assert stands_in(code, collapsed(f"{text} {code} {text}"))
    stands_in(code, collapsed(text))
    names(code, collapsed(text))


def test_a_text_of_nothing_but_quotes_is_looked_through_soon() -> None:
    assert not stands_in('"\n' * 300, '"' * 8_000 + "x")


@pytest.mark.parametrize(
    ("span", "stays"),
    [
        ("SetEnabled()", True),
        ("SetEnabled", True),
        ("node->SetEnabled(true);", True),
        ("touch done", True),
        ("HOME", True),
        ("SetDisabled", False),
        ("Enabled", False),
        ("setenabled", False),
        ("touch don", False),
    ],
)
async def test_inline_code_is_exact(span: str, stays: bool) -> None:
    asked = Question("How do I call it with HOME set?", ENGLISH)
    text = f"Call it on the node and then it is done: `{span}` [[2]]."
    done = await hold(asked, Draft(text, "x", lang=ENGLISH), CODE, None, Trace(), seed=0)
    assert done.stands is stays


async def test_code_alone_or_a_citation_alone_is_no_answer() -> None:
    text = "```\nmake clean\n```\n\n[[1]]"
    done = await hold(QUESTION, Draft(text, "x", lang=ENGLISH), CODE, None, Trace(), seed=0)
    assert done.draft.text == text and not done.stands


async def test_the_head_of_a_table_is_judged_and_its_weak_rows_are_hedged() -> None:
    weak = "water tomatoes every morning with drizzle hoses and rubber gaskets"
    done, trace = await held(f"| bleach the roots [[1]] | tomatoes |\n| --- | --- |\n| {weak} | pots [[1]] |")
    hedge = message(Message.UNSURE, ENGLISH, 0)
    assert done.draft.text == f"|  | tomatoes |\n| --- | --- |\n| {weak} | pots [[1]] {hedge} |"
    assert done.stands and trace.removed == {"hedged": 1, "unsupported": 1}
    assert clean(done.draft.text, 2) == done.draft.text


async def test_a_table_that_loses_its_rows_goes_with_its_head() -> None:
    done, _ = await held("| Water tomatoes in pots every morning [[1]] |\n| --- |\n| Feed 9 g [[1]] |")
    assert done.draft.text == "" and not done.stands
    done, _ = await held("| bleach the roots |\n| --- |")
    assert done.draft.text == ""


async def test_a_sentence_without_end_is_read_to_its_end_or_goes() -> None:
    done, _ = await held(f"{'Water tomatoes in pots every morning, ' * 30} and pour bleach on the roots [[1]].")
    assert not done.stands


async def test_rows_of_a_table_are_sentences() -> None:
    done, _ = await held("| what | how |\n| --- | --- |\n| water | every morning [[1]] |\n| feed | 9 g [[1]] |")
    assert "every morning" in done.draft.text and "9 g" not in done.draft.text


class Vectors:
    """Embeds every text alike, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.texts: list[str] = []

    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        if self.error:
            raise self.error
        return [np.array([1.0, 0.0], dtype=np.float32)] * len(texts)


async def test_vectors_speak_for_a_paraphrase_and_are_asked_only_where_words_do_not() -> None:
    near = Vectors()
    done, _ = await held("Water tomatoes in pots every morning [[1]].", embedder=near)
    assert near.texts == []
    text = "Soak tomatoes daily at dawn with plenty to drink [[1]]."
    done, _ = await held(text, embedder=near)
    assert done.draft.text == text and near.texts
    done, _ = await held(" ".join(f"Word{'abcdefghijklmnop'[n]} stays unsaid [[1]]." for n in range(16)), embedder=near)
    assert len(near.texts) <= 2 * MOST_TEXTS


async def test_sources_are_read_once_and_nothing_is_judged_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    judged_in: list[int] = []

    def reading(source: Source, lang: str) -> Evidence:
        read.append(source.n)
        return read_source(source, lang)

    def judging(*args: Any, **options: Any) -> Judgement:
        judged_in.append(threading.get_ident())
        return judge(*args, **options)

    monkeypatch.setattr(verify, "read_source", reading)
    monkeypatch.setattr(verify, "judge", judging)
    near = Vectors()
    await held("Soak tomatoes daily at dawn with plenty to drink [[1]].", embedder=near)
    assert near.texts and read == [1, 2]
    assert len(judged_in) == 2 and threading.get_ident() not in judged_in


@pytest.mark.parametrize("error", [Transient("slow"), Rejected("not today", status=422)])
async def test_without_vectors_words_decide(error: Exception) -> None:
    text = "Soak tomatoes daily at dawn with plenty to drink [[1]]."
    done, _ = await held(text, embedder=Vectors(error))
    alone, _ = await held(text)
    assert done.draft == alone.draft


async def test_a_source_in_another_language_is_judged_by_figures_and_vectors() -> None:
    french = Question("Quand arroser les tomates en pot ?", FRENCH)
    done, _ = await held("Arrosez chaque matin, et deux fois par jour au-dessus de 28 °C [[1]].", french)
    assert done.stands
    done, _ = await held("Arrosez chaque matin, et deux fois par jour au-dessus de 35 °C [[1]].", french)
    assert not done.stands


FRENCH_TOO = number_sources(
    [
        candidate(1, body=BODY),
        candidate(2, body="Le paillis est utile pour les tomates, et il ne faut pas le retirer avant les gelées."),
    ],
    [],
    1250,
)
ONLY_THE_FRENCH_SAYS = "Straw mulch is useful until frost comes"


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("Water tomatoes in pots every morning [[1]] [[2]].", Support.FULL),
        ("Wet the leaves [[1]] [[2]].", Support.NONE),
        (f"{ONLY_THE_FRENCH_SAYS} [[1]] [[2]].", Support.WEAK),
        (f"{ONLY_THE_FRENCH_SAYS} [[2]].", Support.FULL),
        (f"{ONLY_THE_FRENCH_SAYS} [[1]].", Support.NONE),
        (f"{ONLY_THE_FRENCH_SAYS}.", Support.NONE),
        ("Wait until 5 May [[1]] [[2]].", Support.NONE),
    ],
)
async def test_a_source_in_another_language_speaks_for_itself_alone(text: str, support: Support) -> None:
    done = await hold(QUESTION, Draft(text, "x", lang=ENGLISH), FRENCH_TOO, None, Trace(), seed=0)
    assert [one.support for one in done.judged.values()] == [support]


class Near:
    """Embeds the French at one cosine of all that is English, and the claim at another of the English sources."""

    def __init__(self, french: float, english: float) -> None:
        self.french, self.english = french, english
        self.texts: list[str] = []

    async def embed_sentences(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        if text.startswith(ONLY_THE_FRENCH_SAYS):
            return np.array([1.0, 0.0], dtype=np.float32)
        cosine = self.french if "paillis" in text else self.english
        return np.array([cosine, np.sqrt(1 - cosine**2)], dtype=np.float32)


@pytest.mark.parametrize(
    ("near", "support"),
    [
        (Near(french=0.9, english=0.5), Support.FULL),
        (Near(french=0.5, english=0.88), Support.NONE),  # near for French, not for English
        (Near(french=0.5, english=0.99), Support.FULL),
        (Near(french=0.5, english=0.5), Support.NONE),
    ],
)
async def test_vectors_are_read_on_the_scale_of_each_sources_language(near: Near, support: Support) -> None:
    draft = Draft(f"{ONLY_THE_FRENCH_SAYS} [[1]] [[2]].", "x", lang=ENGLISH)
    done = await hold(QUESTION, draft, FRENCH_TOO, near, Trace(), seed=0)
    assert any("paillis" in text for text in near.texts) and any("morning" in text for text in near.texts)
    assert [one.support for one in done.judged.values()] == [support]


PIECES = ("[[1]]", "[[2]]", "[[9]]", "Water ", "tomatoes ", "never ", "5 g ", ". ", "! ", "\n", "\n\n", "- ", "# ")
MORE = ("| a | b |\n| --- | --- |\n", "|", "**", "_", "`", "```", "le ", "ne ", "pas ", "28 °C ", "e.g. ")
CODES = ("\n```\n", "\n\n    ", "> ", "`water` ")
DRAFTS = st.lists(st.sampled_from(PIECES + MORE + CODES), max_size=40).map("".join) | st.text(max_size=200)


@given(DRAFTS, st.sampled_from([ENGLISH, FRENCH, Lang("xx")]))
@settings(max_examples=150)
async def test_any_draft_is_held_and_what_stays_was_there(text: str, lang: Lang) -> None:
    done, _ = await held(text, Question("How?", lang))
    assert len(done.draft.text) <= 3 * len(clean(text, 2)) + 200
    if all(one.support is Support.FULL for one in done.judged.values()):
        assert done.draft.text == clean(text, 2)
    assert clean(done.draft.text, 2) == done.draft.text


@given(st.text(max_size=80), st.text(max_size=200))
def test_judging_is_total(claim: str, source: str) -> None:
    (read,) = number_sources([candidate(1, body=source)], [], 1250)
    found = judge(claim, [read_source(read, ENGLISH)], "")
    assert found.support in Support and 0.0 <= found.score <= 1.0


async def test_a_source_supports_itself() -> None:
    for source in SOURCES:
        assert judge(source.excerpt, [read_source(source, ENGLISH)], "").support is Support.FULL


async def test_what_is_beyond_any_answer_goes_unjudged() -> None:
    letters = "abcdefghijkl"
    done, _ = await held(" ".join(f"Water tomatoes every morning {a}{b} [[1]]." for a in letters for b in letters))
    assert done.draft.text.count("[[1]]") == MOST_CLAIMS


async def test_the_longest_draft_is_held() -> None:
    done, _ = await held("Water tomatoes in pots every morning, never at 99 °C [[1]]. " * 600)
    assert not done.stands
