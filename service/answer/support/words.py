"""How much of a claim's words its sources have: all together, and close to each other."""

from collections.abc import Collection, Iterable, Sequence

from service.lexer import lexemes

ASKED_WEIGHT = 0.5
"""Of a word that the question has too: any sentence on the subject has it."""
COMMON_WEIGHT = 0.25
LEAST_PREFIX = 4
PREFIX_SHARE = 0.65
"""Two words are kin when they begin alike in this share of the longer one: arroser, arrosage; thick, thicken."""
WINDOW = 2
"""Sentences of a source in a row that a claim may be drawn from."""
NEAR_WEIGHT = 0.5

# What a writer adds without a source: verbs for all purposes, and talk of the forum.
_COMMON = frozenset(
    lexemes(
        "not no without ne pas sans need needs want wants use used uses keep put give gives take make makes get set"
        " good works best better well count about around instead rather example instance member members forum thread"
        " post posts source user says said according advise suggest recommend usually generally often simply"
        " besoin demande demander utiliser utilise emploie employer employez comptez mettre mettez mets met"
        " donner donne prendre prenez garder gardez bon bonne mieux environ plutot exemple membre membres discussion"
        " message messages selon conseille conseiller recommande indique precise propose juge souvent generalement"
        " simplement condition afin seul seule seulement only also even juste just"
    )
)


def word_weights(claim: str, asked: Collection[str]) -> dict[str, float]:
    """The words of a claim that want a source, each with its weight; figures are left to be checked exactly."""
    words = [word for word in dict.fromkeys(lexemes(claim)) if not word[0].isdigit()]
    return {word: COMMON_WEIGHT if word in _COMMON else ASKED_WEIGHT if word in asked else 1.0 for word in words}


def word_support(weights: dict[str, float], sentences: Sequence[frozenset[str]]) -> float:
    """The share of the weights whose words a source has, 0 to 1: half of it counts in WINDOW sentences in a row.

    Without a word that wants a source it is 1.
    """
    total = sum(weights.values())
    if not total:
        return 1.0
    anywhere = _share(weights, frozenset[str]().union(*sentences)) / total
    runs = (frozenset[str]().union(*sentences[at : at + WINDOW]) for at in range(len(sentences)))
    near = max((_share(weights, run) for run in runs), default=0.0) / total
    return NEAR_WEIGHT * near + (1 - NEAR_WEIGHT) * anywhere


def _share(weights: dict[str, float], told: Collection[str]) -> float:
    beginnings = _beginnings(told)
    return sum(weight for word, weight in weights.items() if word in told or _has_kin(word, beginnings))


def _beginnings(words: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(word[:LEAST_PREFIX], []).append(word)
    return found


def _has_kin(word: str, beginnings: dict[str, list[str]]) -> bool:
    return len(word) >= LEAST_PREFIX and any(
        _common_prefix(word, other) >= PREFIX_SHARE * max(len(word), len(other))
        for other in beginnings.get(word[:LEAST_PREFIX], ())
    )


def _common_prefix(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
