"""Tells whether a message can be understood without what was said before it, in English and French."""

import re
from enum import Enum, auto

from service.lexer import lexemes

FEW = 4
"""Content words of a message that says too little to stand alone once something was said before it."""
FEWER = 2
"""The same of a message that is put as a whole question."""
MANY = 12
"""Content words of a message that stands alone, whatever it begins with or points at."""
ANTECEDENT = 2
"""Content words before a pronoun that let it mean one of them, in a message of more than FEW."""
MARKER_CHARS = 80
"""Where the words that announce another subject are looked for."""

_FLAGS = re.IGNORECASE | re.VERBOSE

_NEW_SUBJECT = re.compile(
    r"""\b(?:
        (?:an?\ |one\ )?(?:other|another|different|new|separate|unrelated)\ (?:thing|subject|topic|question|issue)
        | something\ else | on\ another\ note | (?:completely|totally)\ (?:unrelated|different)
        | change\ of\ (?:subject|topic) | off[ -]topic | by\ the\ way | btw
        | autre\ (?:chose|question|sujet|point) | nouvelle\ question | nouveau\ sujet | question\ diff[eé]rente
        | rien\ [aà]\ voir | sans\ rapport | (?:je\ )?change(?:r|ons)?\ de\ sujet | changement\ de\ sujet | au\ fait
        | hors[ -]sujet
    )\b[^\w(?]*""",
    _FLAGS,
)
_COURTESY = re.compile(
    r"""(?:\s*(?:
        (?:ok(?:ay)?|thank\ you|thanks?|thx|hi|hello|hey|merci|d'accord|bonjour|bonsoir|salut)
        (?:\ (?:beaucoup|a\ lot|so\ much|very\ much|again|bien|all|everyone|[aà]\ tous))?\b[^\w(]+
        | (?:yes|no|nice|super|great|perfect|good|fine|right|cool|got\ it|i\ see|cheers|well|sorry|alright|ah|oh|hmm*
            |oui|non|parfait|g[eé]nial|bien|compris|je\ vois|entendu)\s?[,.!;:…]+\s
    ))+""",
    _FLAGS,
)
_CONNECTIVE = re.compile(
    r"\s*(?:(?:and|but|so|also|then|what\ about|how\ about|et|mais|donc|alors|du\ coup|par\ contre)\b[\s,.:…]*)+",
    _FLAGS,
)
_OPENING = re.compile(
    r"""\s*(?:and|but|so|also|then|or|plus|what\ about|how\ about|what\ if|even|same|why\ not|only|not|with|without
    |et|mais|donc|alors|du\ coup|sinon|m[eê]me|aussi|par\ contre|pareil|idem|sauf|avec|sans|seulement)\b""",
    _FLAGS,
)
_WHOLE = re.compile(
    r"""\s*(?:how|what|which|when|where|why|who|can|could|should|do|does|are
    |comment|quand|que|qu'est|quels?|quelles?|pourquoi|combien|o[uù]|faut-il|peut-on|est-ce
    |(?:[aà]|au|de|dans|pour|en|par)\ (?:bout\ de\ combien|combien|quels?|quelles?|quoi)
    )\b""",
    _FLAGS,
)
_POINTER = re.compile(
    r"""\b(?:
        (?:is|does|did|would|will)\ it(?!\ (?:true|possible|normal|ok(?:ay)?|safe|worth|legal|necessary|make|take)\b)
        | (?<!is\ )(?<!does\ )(?<!did\ )(?<!would\ )(?<!will\ )it(?!\ (?:rains|freezes|snows|is\ (?:true|possible)))
        | its|they|them|their|theirs|these|those
        | ones?(?=\W*$|[,;]|\ (?:that|i|you|we|is|are|in|with|on|for|too|then|instead)\b)
        | this(?!\ (?:year|week|month|morning|evening|summer|winter|spring|autumn|season|time|forum))
        | that(?='s|\ (?:is|was|does|would|works?|one|way|case)\b|\W*$|[,;])
        | the\ (?:same|others?|latter|former)(?!\ (?:time|day|year))
        | there(?!\ (?:is|are|was|were|an?|any)\b)(?!'s) | instead|otherwise|afterwards|as\ well|either
        | too(?=\W*$|[,;]) | him|her|she|he
        | [cç]a|cela|celui|celles?|ceux|lequel|laquelle|lesquels|lesquelles|dedans|dessus|dessous|pareil(?:le)?s?
        | non\ plus | (?<!-)(?:ils|elles?)
        | (?<!-)il(?!\ (?:n'y|ne|existe|faut|y\ a|pleut|g[eè]le|fait|est\ (?:possible|vrai|normal)))
        | (?:le|la|les)\ m[eê]mes?|l'autre|les\ autres | aussi(?=\W*$|[,;])
        | (?:je|tu|on|nous|vous|ne)\ (?:le|la|les|lui|leur|en|y|l'\w+)\b | (?:j|t|m|n|l|d)'(?:en|y)(?!\ a\b)
    )\b""",
    _FLAGS,
)


class Dependence(Enum):
    """How a message relates to the turns before it."""

    ALONE = auto()
    NEW_SUBJECT = auto()
    LEANS = auto()


def dependence(text: str) -> Dependence:
    """How a cleaned message (straight apostrophes) relates to what was said before it, where something was.

    It leans on that when it opens as a continuation, points at what it doesn't name, or says little.
    """
    if _NEW_SUBJECT.search(text[:MARKER_CHARS]):
        return Dependence.NEW_SUBJECT
    said = without_courtesy(text)
    words = len(lexemes(said))
    if words >= MANY:
        return Dependence.ALONE
    pointer = _POINTER.search(said)
    points = pointer is not None and (words <= FEW or len(lexemes(said[: pointer.start()])) < ANTECEDENT)
    few = words <= (FEWER if _WHOLE.match(said) else FEW)
    return Dependence.LEANS if few or points or _OPENING.match(said) else Dependence.ALONE


def without_courtesy(text: str) -> str:
    """The text without the thanks and agreement that it opens with; as it is when it is nothing else."""
    opened = _COURTESY.match(text)
    return text[opened.end() :].strip() or text if opened else text


def without_connective(text: str) -> str:
    """The text without courtesy and the "and", "what about", "et" that tie it to the turn before."""
    said = without_courtesy(text)
    opened = _CONNECTIVE.match(said)
    return said[opened.end() :].strip() or said if opened else said


def without_marker(text: str) -> str:
    """What a message says after the words that announce another subject; as it is when it says nothing after them."""
    found = _NEW_SUBJECT.search(text[:MARKER_CHARS])
    return text[found.end() :].strip() or text if found else text
