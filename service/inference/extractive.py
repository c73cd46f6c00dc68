"""The bundled answerer: quotes the likeliest sources where they match the question, under a lead of one line."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from service.domain import ENGLISH, FRENCH, Draft, Question, Source, Zone
from service.inference.sentences import sentences
from service.lexer import query_lexemes

MOST = {Zone.NORMAL: 4, Zone.WEAK: 3}
"""Sentences quoted in each zone: all but one may be of the first source that has any, one of each after it."""
LIKELY = 0.3
"""The odds, relative to the best source's, that a source needs to be quoted at all."""
ALIKE = 0.6
"""Two sentences that share this much of their lexemes say the same."""
LEADS = {FRENCH: "Voici ce que des membres en disent :", ENGLISH: "Here is what members wrote:"}

_MARKDOWN = re.compile(r"([\\`*_\[\]<>~|#&$])")
_BULLET = re.compile(r"^(?=[-+=])")
_NUMBERED = re.compile(r"^(\d{1,9})(?=[.)])")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of source `n`."""

    n: int
    text: str
    words: frozenset[str]


class ExtractiveAnswerer:
    """Answerer that trusts the order of the sources, and picks by words what it quotes of each."""

    async def draft(self, question: Question, sources: Sequence[Source], zone: Zone) -> Draft:
        """A lead in the question's language and a list of quotes that cite their sources.

        Empty where the best topic has nothing to quote: the list of sources, it first, then says more than the others.
        """
        asked = frozenset(query_lexemes(question.scored))
        most = MOST.get(zone, MOST[Zone.WEAK])
        chosen: list[Quote] = []
        for source in _likely(sources):
            if len(chosen) >= most or (not chosen and source.topic_id != sources[0].topic_id):
                break
            for quote in _run(_quotes(source), asked, 1 if chosen else most - 1):
                if not any(_alike(quote, other) for other in chosen):
                    chosen.append(quote)
        if not chosen:
            return Draft("", "extractive")
        lead = LEADS.get(question.lang, LEADS[ENGLISH])
        return Draft("\n".join([lead, "", *map(_line, chosen)]), "extractive")


def _likely(sources: Sequence[Source]) -> list[Source]:
    """The sources that the reranker's odds set near enough to the best; by place when it was down."""
    best = max((source.logit for source in sources if source.logit is not None), default=0.0)
    return [
        source
        for source in sources
        if (math.exp(source.logit - best) if source.logit is not None else 1 / source.n) >= LIKELY
    ]


def _quotes(source: Source) -> list[Quote]:
    """The sentences of a source that tells: none of a first post that asks, nor the only one beside a question."""
    found = sentences(source.excerpt)
    if "?" in source.excerpt and (source.post_number == 1 or len(found) == 1):
        return []
    return [Quote(source.n, text, frozenset(query_lexemes(text))) for text in found]


def _run(quotes: Sequence[Quote], asked: Collection[str], most: int) -> Sequence[Quote]:
    """The `most` sentences on end that hold the most of the words asked, the earliest of equals.

    An answer seldom is one sentence, and seldom the one that repeats the question: its neighbours go with it.
    """

    def held(first: int) -> int:
        words = frozenset[str]().union(*(quote.words for quote in quotes[first : first + most]))
        return len(words.intersection(asked))

    first = max(range(max(1, len(quotes) - most + 1)), key=held)
    return quotes[first : first + most]


def _alike(one: Quote, other: Quote) -> bool:
    either = one.words | other.words
    return one.text == other.text or len(one.words & other.words) > ALIKE * len(either)


def _line(quote: Quote) -> str:
    escaped = _NUMBERED.sub(r"\1\\", _BULLET.sub(r"\\", _MARKDOWN.sub(r"\\\1", quote.text)))
    return f"- {escaped} [[{quote.n}]]"
