"""How well the sources that a sentence cites support it: what is exact must be there, the rest by words and vectors."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.answer.markup.language import is_foreign
from service.answer.support.figures import Figures, read_figures, unfounded
from service.answer.support.polarity import Clause, clauses, inverted
from service.answer.support.verbatim import collapsed, names, stands_in
from service.answer.support.words import word_support, word_weights
from service.domain import Source
from service.lexer import lexemes

VERSION = 4
"""Of the rules by which a sentence is held against its sources: another one makes other answers."""

READ_CHARS = 8_000
MOST_SENTENCES = 120
LONGEST_CLAIM = 1_000
"""No sentence comes near: a longer one is not read, so it has no support."""
_FORUM = r"(?:sources?|posts?|messages?|threads?|discussions?|forum|members?|membres?)"
_TELLS = (
    r"(?:say|mention|tell|answer|cover|explain|discuss|give|dit|disent|précise|mentionne|répond|parle|explique|donne)"
)
_LIMIT = re.compile(
    rf"\b{_FORUM}\b[^.;]{{0,40}}?(?:\b(?:not|no|nothing|ne|aucune?)\b|n['’](?:t\b|(?=[^\W\d_])))[^.;]{{0,60}}\b{_TELLS}"
    rf"|\b(?:no|none of the|aucune?|aucun des)\b[^.;]{{0,20}}\b{_FORUM}\b[^.;]{{0,60}}\b{_TELLS}",
    re.IGNORECASE,
)
_LIMIT_CHARS = 120
"""Of what the forum doesn't say, after the words that say so: a longer sentence says more."""
_TURN = re.compile(
    r"[;:.!?–—]\s|\b(?:but|however|though|although|yet|only|instead|so|still|therefore"
    r"|mais|cependant|toutefois|pourtant|en revanche|par contre|seulement|sauf|donc|alors)\b",
    re.IGNORECASE,
)
_LEAST_SAID = 3
"""Words of its own by which a sentence that leads to others, or tells a limit, says something besides."""
_LEAD = re.compile(rf"[:?]\W*\Z|\b{_FORUM}\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?…\n]+(?:[.!?…]+(?=\s|\Z)|[.!?…]|\n|\Z)")


class Support(StrEnum):
    """FULL: the source says it. WEAK: perhaps, so the sentence is hedged. NONE: it doesn't, so the sentence goes."""

    FULL = "full"
    WEAK = "weak"
    NONE = "none"


class Reason(StrEnum):
    FIGURE = "figure"
    CODE = "code"
    INVERTED = "inverted"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Judgement:
    support: Support
    reason: Reason | None = None
    score: float = 1.0
    open: bool = False
    """Whether vectors, which weren't asked, could tell more."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Scores, 0 to 1: a sentence goes under `drop`, is hedged under `hedge`; chosen on the half `dev` of the labels."""

    drop: float = 0.25
    hedge: float = 0.5


THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source, read once: its figures (also of its title and date), its clauses, and the words of its sentences.

    `text` is its title and excerpt, collapsed: where code must stand.
    """

    text: str
    sentences: tuple[str, ...]
    words: tuple[frozenset[str], ...]
    figures: Figures
    clauses: tuple[Clause, ...]
    foreign: bool


@dataclass(frozen=True, slots=True)
class Near:
    """A claim's support by vectors, 0 to 1: in the sources of its language, in those of others; None without any."""

    same: float | None
    other: float | None


def read_source(source: Source, lang: str) -> Evidence:
    """The source as it is held against claims in `lang`. Total."""
    text = source.excerpt[:READ_CHARS]
    sentences = tuple(found[0].strip() for found in _SENTENCE.finditer(text) if found[0].strip())[:MOST_SENTENCES]
    dated = f"{source.title}\n{source.created_at:%d %B %Y}\n{text}"
    return Evidence(
        collapsed(f"{source.title}\n{text}"),
        sentences,
        (frozenset(lexemes(source.title)), *(frozenset(lexemes(sentence)) for sentence in sentences)),
        read_figures(dated, claimed=False),
        clauses(text),
        is_foreign(text, lang),
    )


def judge(
    claim: str,
    cited: Sequence[Evidence],
    asked: str,
    limits: Thresholds = THRESHOLDS,
    *,
    own: bool = True,
    spans: Sequence[str] = (),
    near: Near | None = None,
) -> Judgement:
    """What the sources `cited` are worth for a claim on the question `asked`; `near` is its support by vectors, if any.

    A figure, a month, a name with a digit or inline code (`spans`) that is in no cited source, nor in the question, is
    invented; so is the opposite of what the source says. The rest is a matter of words, or of vectors where those say
    more: a paraphrase has other words. A source in another language has nearly none of them and is left to vectors:
    without those a claim that cites nothing else passes, and one that cites others too is hedged at worst. A sentence
    without a citation of its `own` leads to others or sums them up: it goes when no source is near it, and is never
    hedged. That the forum does not say something can't be found in it; what a sentence says besides has to be.
    """
    if len(claim) > LONGEST_CLAIM:
        return Judgement(Support.NONE, score=0.0)
    known = [one.figures for one in cited]
    if unfounded(read_figures(claim, claimed=True), [*known, read_figures(asked, claimed=False)]):
        return Judgement(Support.NONE, Reason.FIGURE, 0.0)
    if spans:
        told = (collapsed(asked), *(one.text for one in cited))
        if not all(any(names(span, text) for text in told) for span in spans):
            return Judgement(Support.NONE, Reason.CODE, 0.0)
    told_limit = _LIMIT.search(claim)
    if told_limit:
        claim = _besides(claim, *told_limit.span())
    if (told_limit or (not own and _LEAD.search(claim))) and not _says_more(claim, cited, asked):
        return Judgement(Support.FULL)
    read = [one for one in cited if not one.foreign]
    if own and inverted(clauses(claim), [clause for one in read for clause in one.clauses]):
        return Judgement(Support.NONE, Reason.INVERTED, 0.0)
    all_foreign = bool(cited) and not read
    score = 0.0 if all_foreign else _by_words(claim, read, asked, near)
    if near is not None and near.other is not None:
        score = max(score, near.other)
    elif all_foreign:
        score = 1.0  # nothing but vectors could tell
    elif own and len(read) < len(cited):
        score = max(score, limits.drop)  # a source that only vectors could read may say it
    if score >= (limits.hedge if own else limits.drop):
        return Judgement(Support.FULL, score=score, open=near is None and all_foreign)
    support = Support.WEAK if own and score >= limits.drop else Support.NONE
    return Judgement(support, Reason.WORDS, score, open=near is None)


def _besides(claim: str, start: int, end: int) -> str:
    """A claim without the clause around a limit that stands between `start` and `end`."""
    turns = [turn.span() for turn in _TURN.finditer(claim)]
    begin = max((stop for _, stop in turns if stop <= start), default=0)
    until = min((first for first, _ in turns if first >= end), default=len(claim))
    return f"{claim[:begin]} {claim[min(until, end + _LIMIT_CHARS) :]}"


def _says_more(claim: str, cited: Sequence[Evidence], asked: str) -> bool:
    """Whether a claim has several words that neither its sources nor the question have."""
    known = frozenset[str]().union(*(words for one in cited for words in one.words))
    weights = word_weights(claim, frozenset(lexemes(asked)))
    return sum(weight == 1.0 and word not in known for word, weight in weights.items()) >= _LEAST_SAID


def _by_words(claim: str, read: Sequence[Evidence], asked: str, near: Near | None) -> float:
    """How much of a claim sources in its language say, 0 to 1: vectors count half, where they say more than words."""
    words = [sentence for one in read for sentence in one.words]
    score = word_support(word_weights(claim, frozenset(lexemes(asked))), words)
    return score if near is None or near.same is None else max(score, (score + near.same) / 2)


def judge_code(code: str, shown: Sequence[Evidence], asked: str) -> Judgement:
    """What a block of code is worth: FULL when all its lines stand in one source or in the question, else NONE."""
    if any(stands_in(code, text) for text in (collapsed(asked), *(one.text for one in shown))):
        return Judgement(Support.FULL)
    return Judgement(Support.NONE, Reason.CODE, 0.0)
