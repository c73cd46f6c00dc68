"""Whether a claim says the opposite of what its source says: negations and opposites, clause against clause."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from service.lexer import fold, lexemes

LEAST_SHARED = 0.5
FEWEST_SHARED = 2
"""A clause speaks of what a source's clause speaks of, when that has this much of its words, and this many."""

_BREAK = re.compile(
    r"[,;:.!?…()\n–—]++\s|\s(?=(?:but|and|while|whereas|although|because|since|otherwise|so|or|rather than|instead of|"
    r"mais|et|tandis que|alors que|car|puisque|parce que|sinon|donc|ou|plutot que|au lieu)\b)"
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|none|nor|neither|nothing|cannot|avoid|useless|pointless|rather than|instead of|zero|"
    r"lack|pas|jamais|sans|aucune?|rien|ni|non|inutile|evite[rz]?|plutot que|au lieu|manque)\b|n['’]t\b"
)
_NO_NEGATION = re.compile(
    r"\bno \w+er than|\bno (?:more|less) than|\bnot only|\bnot just|\bpas (?:plus|moins) de|\bpas seulement"
    r"|\bsans doute"
)
_OPPOSITES = tuple(
    tuple(re.compile(rf"\b(?:{words})\b") for words in pair.split(" / "))
    for pair in (
        "before|avant / after|apres",
        "above|over|au dessus / below|under|au dessous",
        "more|higher|increases?|plus / less|fewer|lower|decreases?|moins",
        "also|still|even|aussi|encore|meme / only|seulement|uniquement",
        "wet|damp|moist|humide|mouillee?s? / dry|sec|seche",
        "warm|hot|chaud|chaude / cold|cool|froid|froide",
        "morning|matin / evening|soir",
        "inside|indoors|dedans|interieur / outside|outdoors|dehors|exterieur",
        "winter|hiver / summer|ete",
        "early|tot / late|tard",
        "fast|quickly|vite|rapidement / slowly|lentement",
        "easy|facile / hard|difficult|difficile",
        "safe|sur / unsafe|dangerous|dangereux",
        "allowed|autorisee?s? / forbidden|interdite?s?",
        "always|toujours / rarely|rarement",
        "open|ouverte? / closed|fermee?",
        "enabled|active / disabled|desactive",
        "surface / enfoui|enfouit|enfouir|enfoncer",
        "survives?|survit / dies?|meurt|meurent",
        "helps?|aide|aident / harms?|nuit",
        "gains?|adds?|ajoute / loses?|removes?|retire|enleve",
    )
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause in folded lower case, its words, and whether it denies."""

    text: str
    words: frozenset[str]
    denies: bool


def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text that hold any word. Total."""
    plain = fold(text).casefold().replace("-", " ")
    found = []
    for part in _BREAK.split(f" {plain} "):
        words = frozenset(word for word in lexemes(part) if not word[0].isdigit()) - _SAID_BY_NEGATION
        if words:
            negations = len(_NEGATION.findall(_NO_NEGATION.sub(" ", part)))
            found.append(Clause(part, words, negations > 0))
    return tuple(found)


_SAID_BY_NEGATION = frozenset(lexemes("not no never without none nothing pas jamais sans aucun rien non ne ni zero"))


def inverted(claim: Iterable[Clause], source: Iterable[Clause]) -> bool:
    """Whether some clause of the claim denies what the clauses of the source nearest to it affirm, or the reverse.

    Where several are as near, one that agrees is enough.
    """
    told = tuple(source)
    return any(_turned(clause, told) for clause in claim)


def _turned(claim: Clause, told: tuple[Clause, ...]) -> bool:
    near = [(_shared(claim, clause), clause) for clause in told]
    most = max((shared for shared, _ in near), default=0.0)
    return most > 0 and all(_opposed(claim, clause) for shared, clause in near if shared == most)


def _shared(claim: Clause, clause: Clause) -> float:
    """How many words both have, and a little for a short source; 0 where they don't speak of the same."""
    shared = len(claim.words & clause.words)
    if shared < FEWEST_SHARED or shared < LEAST_SHARED * len(claim.words):
        return 0.0
    return shared + 1 / (1 + len(clause.words))


def _opposed(claim: Clause, clause: Clause) -> bool:
    turns = claim.denies != clause.denies
    for one, other in _OPPOSITES:
        for here, there in ((one, other), (other, one)):
            if here.search(claim.text) and there.search(clause.text):
                turns ^= not (here.search(clause.text) or there.search(claim.text))
    return turns
