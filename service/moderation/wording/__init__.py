"""The words of the moderators' pages: a folder for each language, in it a file for each page and one for all."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

from service.domain import ENGLISH, Lang

UNKNOWN = "–"
_TEXTS = TypeAdapter(dict[str, str])


@cache
def texts() -> Mapping[Lang, Mapping[str, str]]:
    """The texts of every language that has a folder here, by `file.key`."""
    folders = [folder for folder in files(__name__).iterdir() if folder.is_dir() and not folder.name.startswith("_")]
    return {
        Lang(folder.name): {
            f"{file.name.removesuffix('.yml')}.{key}": text
            for file in sorted(folder.iterdir(), key=lambda file: file.name)
            if file.name.endswith(".yml")
            for key, text in _TEXTS.validate_python(
                yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
            ).items()
        }
        for folder in sorted(folders, key=lambda folder: folder.name)
    }


class Words:
    """One language: its texts, and how it writes numbers and times."""

    def __init__(self, lang: Lang) -> None:
        known = texts()
        self.lang = lang if lang in known else ENGLISH
        self._texts = known[self.lang]
        self._french = self.lang == "fr"

    def __call__(self, key: str, **values: object) -> str:
        """The text of `file.key` with its values put in as they are: whoever shows it escapes the whole."""
        return self._texts[key].format(**values)

    def has(self, key: str) -> bool:
        return key in self._texts

    def known(self, key: str, word: str) -> str:
        """What people read for a word of the program, from `key_word`; the word itself where no file has it."""
        return self._texts.get(f"{key}_{word}", word)

    def count(self, key: str, n: int, **values: object) -> str:
        """The text of `key_one` or `key_other`, with `n` as this language writes it; French counts 0 as one."""
        one = n in (0, 1) if self._french else n == 1
        return self(f"{key}_{'one' if one else 'other'}", n=self.number(n), **values)

    def number(self, value: float | None, digits: int = 0) -> str:
        """A number rounded to so many digits, its thousands apart; a dash where there is none."""
        if value is None:
            return UNKNOWN
        written = f"{value:,.{digits}f}".replace("-", "−")
        return written.replace(",", "\u202f").replace(".", ",") if self._french else written

    def when(self, at: datetime | None) -> str:
        """A moment to the minute, in UTC; a dash where there is none."""
        if at is None:
            return UNKNOWN
        return f"{at.astimezone(UTC):{'%d/%m/%Y %H:%M' if self._french else '%Y-%m-%d %H:%M'}} UTC"
