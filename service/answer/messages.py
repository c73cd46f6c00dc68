"""The texts the server writes itself: several wordings each, in every language that has a file in `wording/`."""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict

from service.domain import ENGLISH, Lang
from service.lexer import fold

SHOWN_CHARS = 80
"""How much of a member's words a message repeats."""


class Message(StrEnum):
    ABSTAIN = "abstain"
    LIMIT = "limit"
    UNSURE = "unsure"
    NEW_TOPIC = "new_topic"
    CAUTION = "caution"
    SOURCES_INTRO = "sources_intro"
    LATE = "late"
    HELP = "help"
    QUESTION_CUT = "question_cut"
    FOOTER = "footer"
    WITHDRAWN = "withdrawn"
    DECLINE_GENERALIST = "decline_generalist"
    DECLINE_VIOLENCE = "decline_violence"
    DECLINE_SELF_HARM = "decline_self_harm"
    DECLINE_ILLEGAL_TRADE = "decline_illegal_trade"
    DECLINE_INTRUSION = "decline_intrusion"
    DECLINE_PERSONAL_DATA = "decline_personal_data"
    DECLINE_INJECTION = "decline_injection"
    DECLINE_MEDICAL_ADVICE = "decline_medical_advice"
    DECLINE_LEGAL_FINANCIAL_ADVICE = "decline_legal_financial_advice"
    DECLINE_HARASSMENT = "decline_harassment"


def folded_words(text: str) -> str:
    """The words of a text without case, accents and punctuation, parted by single spaces."""
    return " ".join(re.findall(r"[^\W_]+", fold(text).casefold()))


Phrase = Annotated[str, AfterValidator(folded_words)]


class Wording(BaseModel):
    """One language's file: its messages, the words and phrases of posts that ask nothing, and those of posts that say
    what an answer was worth; phrases are folded on reading.

    What `no_objections` has is no objection, though a phrase of `objections` stands in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    messages: dict[Message, tuple[str, ...]]
    greetings: frozenset[Phrase]
    thanks: frozenset[Phrase]
    thanks_filler: frozenset[Phrase]
    gratitude: frozenset[Phrase]
    objections: frozenset[Phrase]
    no_objections: frozenset[Phrase]


@cache
def wordings() -> Mapping[Lang, Wording]:
    """Every language that has a file in `wording/`."""
    folder = files("service.answer").joinpath("wording")
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".yml")}
    return {
        Lang(name.removesuffix(".yml")): Wording(**yaml.load(texts[name], yaml.CSafeLoader)) for name in sorted(texts)
    }


def message(key: Message, lang: Lang, seed: int, **values: str) -> str:
    """One wording of a message, chosen by `seed`, with its values shown plain; an unknown language reads English."""
    known = wordings()
    texts = known.get(lang, known[ENGLISH]).messages[key]
    return texts[seed % len(texts)].format(**{name: shown(value) for name, value in values.items()})


_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//\S*|www\.\S*|mailto:\S*", re.IGNORECASE)
_INNER_DOT = re.compile(r"(?<!\d)\.(?=\S)|\.(?=[^\s\d])")
_GLUED_MARK = re.compile(r"[:;](?=\S)")
_KEPT_MARKS = frozenset(" '’,.;:?!()-%/+€$£°")


def shown(text: str) -> str:
    """A member's words as plain text that Markdown, BBCode, HTML, mentions, hashtags and links can't come out of.

    At most SHOWN_CHARS characters, cut at a word, in one line. Only letters, digits and harmless marks survive; dots
    and colons only where no link or emoji code can be read into them.
    """
    text = _URL.sub(" ", unicodedata.normalize("NFC", text[: 20 * SHOWN_CHARS]))
    kept = "".join(c if c in _KEPT_MARKS or unicodedata.category(c)[0] in "LMN" else " " for c in text)
    kept = _GLUED_MARK.sub(" ", _INNER_DOT.sub(" ", re.sub(r"([./])\1+", r"\1", kept)))
    words = " ".join(kept.split())
    return words if len(words) <= SHOWN_CHARS else words[: SHOWN_CHARS - 1].rsplit(" ", 1)[0].rstrip(" ,;:.-") + "…"
