"""The figures of a text, with their units, and those of a claim that no source has."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isclose

from service.lexer import fold

_UNITS: dict[str, tuple[str, float]] = {
    form: (base, factor)
    for forms, base, factor in (
        ("mm", "length", 1.0),
        ("cm centimetre centimetres centimeters", "length", 10.0),
        ("m metre metres meter meters", "length", 1e3),
        ("km kilometre kilometres kilometers", "length", 1e6),
        ("m2", "area", 1.0),
        ("ml", "volume", 1.0),
        ("cl", "volume", 10.0),
        ("l litre litres liter liters", "volume", 1e3),
        ("m3", "volume", 1e6),
        ("mg", "mass", 1e-3),
        ("g gram grams gramme grammes", "mass", 1.0),
        ("kg kilo kilos", "mass", 1e3),
        ("ms", "time", 1e-3 / 60),
        ("s sec second seconds seconde secondes", "time", 1 / 60),
        ("min mins minute minutes", "time", 1.0),
        ("h hour hours heure heures", "time", 60.0),
        ("day days jour jours", "time", 1440.0),
        ("week weeks semaine semaines", "time", 7 * 1440.0),
        ("month months mois", "months", 1.0),
        ("year years an ans annee annees", "months", 12.0),
        ("° °c c degre degres degree degrees", "celsius", 1.0),
        ("°f", "fahrenheit", 1.0),
        ("% percent", "share", 1.0),
        ("€ euro euros", "euro", 1.0),
        ("$ dollar dollars", "dollar", 1.0),
        ("bar bars", "bar", 1.0),
        ("mb", "bytes", 1.0),
        ("gb", "bytes", 1e3),
        ("px pixel pixels", "pixel", 1.0),
    )
    for form in forms.split()
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january janvier jan",
            "february fevrier feb",
            "march mars",
            "april avril apr",
            "may mai",
            "june juin",
            "july juillet",
            "august aout aug",
            "september septembre sept",
            "october octobre oct",
            "november novembre nov",
            "december decembre dec",
        ),
        start=1,
    )
    for name in names.split()
}
_WORDS = {
    word: number
    for number, words in (
        (2, "two deux"), (3, "three trois"), (4, "four quatre"), (5, "five cinq"), (6, "six"), (7, "seven sept"),
        (8, "eight huit"), (9, "nine neuf"), (10, "ten dix"), (11, "eleven onze"), (12, "twelve douze dozen douzaine"),
        (13, "thirteen treize"), (14, "fourteen quatorze"), (15, "fifteen quinze quinzaine"), (16, "sixteen seize"),
        (20, "twenty vingt"), (30, "thirty trente"), (40, "forty quarante"), (50, "fifty cinquante"),
        (60, "sixty soixante"), (100, "hundred cent"),
    )
    for word in words.split()
}  # fmt: skip
_ONE = {"one": 1, "un": 1, "une": 1, "first": 1, "premier": 1, "premiere": 1, "twice": 2, "once": 1}
"""Said of nearly anything: they count where a source is looked through for a figure, and claim none."""

_FIGURE = re.compile(
    r"(?<![\w.,])(?:(?P<clock>\d{1,2}(?::|h)\d{2}(?!\w))"
    r"|(?P<digits>\d{1,3}(?:[ ']\d{3})+(?!\d)|\d+)(?P<decimals>[.,]\d+)?(?!\.\d)(?:(?:st|nd|rd|th|er|eme|e)(?!\w))?)"
    rf"|(?<!\w)(?P<word>{'|'.join([*_WORDS, *_ONE])})(?!\w)"
)
_BOTH = re.compile(r"\b(?:les|des|ces|nos|vos|the|these|those)\s\Z")
_UNIT = re.compile(rf"[\s-]?(?P<unit>{'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![\w°%])")
_MONTH = re.compile(rf"\s?(?:of |the )?(?P<month>{'|'.join(_MONTHS)})\b")
_SPAN = re.compile(r"\s?(?:-|–|—|/|a|au|to|or|ou|et|and|x|sur|by)\s?")
_LONGEST_SPAN = 5
# "may", "march" and short forms are words too: a month where they follow a day, or begin with a capital inside a text.
_PLAIN_MONTH = re.compile(
    rf"\b(?:{'|'.join(name for name in _MONTHS if len(name) > 3 and name not in ('march', 'sept'))}|mai)\b"
)
_MONTH_NAME = re.compile(rf"\b(?:{'|'.join(name.capitalize() for name in _MONTHS)})\b")
_NAMED = re.compile(r"(?<![\w.])(?:[A-Za-z][\w.+-]*+|\d++(?:\.\d++){2,})")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what it counts: the ways to read the number, the unit, "" where none is known, and its factor."""

    values: frozenset[float]
    unit: str
    factor: float
    shown: str

    def agrees(self, other: "Figure") -> bool:
        """Whether both may say the same: units are converted, an unknown one may be any."""
        if self.unit and other.unit and self.unit != other.unit:
            return False
        both = self.unit and other.unit
        mine, theirs = (self.factor, other.factor) if both else (1.0, 1.0)
        return any(isclose(one * mine, two * theirs, rel_tol=1e-6) for one in self.values for two in other.values)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a text says exactly: figures, months, and names that hold a digit."""

    figures: tuple[Figure, ...]
    months: frozenset[int]
    names: frozenset[str]


def read_figures(text: str, *, claimed: bool) -> Figures:
    """The figures of a text; of a claim (`claimed`) only those that are surely meant as figures. Total."""
    folded = fold(text)
    plain = folded.casefold()
    months = {_MONTHS[found[0]] for found in _PLAIN_MONTH.finditer(plain)}
    months |= {_MONTHS[found[0].casefold()] for found in _MONTH_NAME.finditer(folded) if found.start() or not claimed}
    words = (found[0].casefold().strip(".+-") for found in _NAMED.finditer(folded))
    names = frozenset(word for word in words if any(char.isdigit() for char in word))
    return Figures(tuple(_read(plain, claimed=claimed)), frozenset(months), names)


def unfounded(claim: Figures, known: Iterable[Figures]) -> tuple[str, ...]:
    """What the claim says exactly and none of the `known` texts says: as shown in the claim."""
    texts = tuple(known)
    figures = [figure for text in texts for figure in text.figures]
    months = frozenset[int]().union(*(text.months for text in texts))
    names = frozenset[str]().union(*(text.names for text in texts))
    missing = [one.shown for one in claim.figures if not any(one.agrees(other) for other in figures)]
    missing += [f"month {month}" for month in sorted(claim.months - months)]
    return (*missing, *sorted(claim.names - names))


def _read(plain: str, *, claimed: bool) -> Iterator[Figure]:
    found = [match for match in _FIGURE.finditer(plain) if not (claimed and _says_nothing(match, plain))]
    unit: tuple[str, float] = ("", 1.0)
    following = len(plain)
    for match in reversed(found):
        between = plain[match.end() : following]
        joined = len(between) <= _LONGEST_SPAN and _SPAN.fullmatch(between)  # in "16 to 18 °C" both are degrees
        unit = _unit_after(plain, match.end()) or (unit if joined else ("", 1.0))
        following = match.start()
        yield _figure(match, *unit)


def _says_nothing(match: re.Match[str], plain: str) -> bool:
    word = match["word"]
    return word is not None and (word in _ONE or bool(_BOTH.search(plain, max(0, match.start() - 7), match.start())))


def _unit_after(plain: str, end: int) -> tuple[str, float] | None:
    if month := _MONTH.match(plain, end):
        return f"day of month {_MONTHS[month['month']]}", 1.0
    unit = _UNIT.match(plain, end)
    return _UNITS[unit["unit"]] if unit else None


def _figure(match: re.Match[str], unit: str, factor: float) -> Figure:
    if word := match["word"]:
        return Figure(frozenset({float(_WORDS.get(word) or _ONE[word])}), unit, factor, word)
    if match["clock"]:
        hours, minutes = re.split("[:h]", match["clock"])
        return Figure(frozenset({60.0 * int(hours) + int(minutes)}), "time", 1.0, match[0])
    digits, decimals = re.sub(r"\D", "", match["digits"])[:15], (match["decimals"] or "")[1:12]
    values = {float(f"{digits}.{decimals or 0}")}
    if len(decimals) == 3:  # 1,500 is one and a half in French, and fifteen hundred in English
        values.add(float(digits + decimals))
    return Figure(frozenset(values), unit, factor, match[0])
