"""The words of a report, in every language that has a file here, and how each language writes its numbers."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from math import isnan

import yaml
from pydantic import BaseModel, ConfigDict

from eval.domain import Interval

UNKNOWN = "–"
_LEAST_P = 0.001


class MeasureWords(BaseModel):
    """A measure in a table's head, and in a sentence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    say: str


class Explained(BaseModel):
    """A word of the legend; `of`: the commands in whose reports it stands, all when empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    term: str
    meaning: str
    of: tuple[str, ...] = ()


class Wording(BaseModel):
    """One language's file. `names` are by group and word; a word that a group lacks is shown as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    texts: dict[str, str]
    measures: dict[str, MeasureWords]
    names: dict[str, dict[str, str]]
    legend: list[Explained]

    def text(self, key: str, **values: object) -> str:
        """A text with its values put in, as they are: whoever shows it escapes the whole."""
        return self.texts[key].format(**values)

    def name(self, group: str, word: str) -> str:
        return self.names[group].get(word, word)

    def measure(self, name: str) -> MeasureWords:
        return self.measures.get(name) or MeasureWords(name=name, say=name)


@cache
def wordings() -> Mapping[str, Wording]:
    """Every language that has a file in this folder."""
    texts = {one.name: one.read_text(encoding="utf-8") for one in files(__name__).iterdir() if one.name[-4:] == ".yml"}
    return {name[:-4]: Wording(**yaml.load(texts[name], yaml.CSafeLoader)) for name in sorted(texts)}


class Numbers:
    """Numbers and dates as a language writes them."""

    def __init__(self, lang: str) -> None:
        self._comma = lang == "fr"

    def share(self, value: float, digits: int = 0) -> str:
        """A share as so many of 100."""
        return UNKNOWN if isnan(value) else self._written(f"{100 * value:.{digits}f}")

    def between(self, one: Interval) -> str:
        """The ends of an interval, of 100; "" where they aren't known."""
        return "" if isnan(one.low) else f"{self.share(one.low)}–{self.share(one.high)}"

    def signed(self, value: float) -> str:
        """A difference of shares, in 100, with its sign."""
        return UNKNOWN if isnan(value) else self._written(f"{100 * value:+.1f}".replace("-", "−"))

    def chance(self, p: float) -> str:
        if isnan(p):
            return UNKNOWN
        return self._written(f"< {_LEAST_P}" if p < _LEAST_P else f"{p:.3f}")

    def ms(self, value: float) -> str:
        """Milliseconds to three figures, but no fractions above 100."""
        return self._written(f"{value:,.0f}".replace(",", "\u202f") if value >= 100 else f"{value:.3g}")

    def plain(self, value: float) -> str:
        """A score."""
        return self._written(f"{value:.2f}".replace("-", "−"))

    def date(self, when: datetime) -> str:
        return f"{when:%d/%m/%Y %H:%M} UTC" if self._comma else f"{when:%Y-%m-%d %H:%M} UTC"

    def _written(self, number: str) -> str:
        return number.replace(".", ",") if self._comma else number
