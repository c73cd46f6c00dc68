"""The known profiles and an operator's own: YAML read into what adapters are made with, faults told in one line."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import yaml
from pydantic import Field, ValidationError, model_validator

from service.domain import PASSAGES, EmbeddingProfile, RerankerProfile
from service.errors import Misconfigured
from service.inference.calibration import (
    BordersEntry,
    Calibration,
    CalibrationEntry,
    Entry,
    Finite,
    Recalibration,
    Text,
    ZoneModelEntry,
)
from service.inference.embedding import EmbedderOptions, Overflow
from service.inference.pairs import PairOptions
from service.inference.references import ReferencePair

KNOWN = Path(__file__).with_name("profiles.yml")
MAX_DIMENSIONS = 4000
"""What a halfvec index holds (docs/inference, pgvector)."""
MAX_FILE_BYTES = 1_000_000
PASSAGE_TOKENS, OVERLAP_TOKENS = 400, 40
"""Of a passage, and shared by two neighbours, where a profile that splits doesn't say (spec A9)."""
MIN_PASSAGE_TOKENS, MIN_WINDOW_TOKENS = 32, 64

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class KnownEmbedder:
    """An embedding profile, and how its model wants its texts; how it is indexed is a setting."""

    profile: EmbeddingProfile
    texts: EmbedderOptions
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True)
class KnownReranker:
    """A reranker profile, what its model reads of a pair, and the pairs that prove it."""

    profile: RerankerProfile
    pairs: PairOptions
    references: tuple[ReferencePair, ...]
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True)
class Profiles:
    """Every profile by its short name."""

    embedders: Mapping[str, KnownEmbedder]
    rerankers: Mapping[str, KnownReranker]

    def embedder(self, name: str) -> KnownEmbedder:
        """Raises Misconfigured with the names there are."""
        return _named(name, self.embedders, "models.embedder.profile")

    def reranker(self, name: str) -> KnownReranker:
        """Raises Misconfigured with the names there are."""
        return _named(name, self.rerankers, "models.reranker.profile")


class _Embedder(Entry):
    model: Text
    strategy: int
    version: int
    dimensions: int = Field(ge=1, le=MAX_DIMENSIONS)
    window_tokens: int = Field(gt=0)
    passage_tokens: int | None = Field(None, ge=MIN_PASSAGE_TOKENS)
    overlap_tokens: int | None = Field(None, ge=0)
    cosine_floor: float = Field(1.0, ge=-1, le=1)
    query_prefix: str = ""
    passage_prefix: str = ""
    overflow: Overflow = Overflow.TRUNCATE
    calibration: CalibrationEntry | None = None

    @model_validator(mode="after")
    def _splits(self) -> Self:
        if self.strategy != PASSAGES and (self.passage_tokens, self.overlap_tokens) != (None, None):
            raise ValueError(f"passage_tokens and overlap_tokens belong to strategy {PASSAGES}")
        if 2 * self._size(self.overlap_tokens, OVERLAP_TOKENS) > self._size(self.passage_tokens, PASSAGE_TOKENS):
            raise ValueError("overlap_tokens must be at most half of passage_tokens")
        if self.strategy == PASSAGES and self.window_tokens < MIN_WINDOW_TOKENS:
            raise ValueError(f"window_tokens must be at least {MIN_WINDOW_TOKENS} for titles and passages")
        return self

    def _size(self, given: int | None, default: int) -> int:
        if self.strategy != PASSAGES:
            return 0
        return default if given is None else given

    def known(self) -> KnownEmbedder:
        profile = EmbeddingProfile(
            self.model,
            self.strategy,
            self.version,
            self.dimensions,
            self.window_tokens,
            cosine_floor=self.cosine_floor,
            passage_tokens=self._size(self.passage_tokens, PASSAGE_TOKENS),
            overlap_tokens=self._size(self.overlap_tokens, OVERLAP_TOKENS),
        )
        texts = EmbedderOptions(self.query_prefix, self.passage_prefix, self.overflow)
        return KnownEmbedder(profile, texts, self.calibration.known() if self.calibration else None)


class _Pair(Entry):
    question: Text
    title: str
    excerpt: str
    logit: Finite


class _Reranker(BordersEntry):
    name: Text
    provisional: bool = True
    keyword: BordersEntry | None = None
    zone_model: ZoneModelEntry | None = None
    window_tokens: int = Field(512, ge=16)
    excerpt_chars: int = Field(300, ge=1)
    references: tuple[_Pair, ...] = ()

    def known(self) -> KnownReranker:
        profile = RerankerProfile(
            self.name,
            self.weak,
            self.normal,
            self.provisional,
            self.keyword.borders() if self.keyword else None,
            self.zone_model.known() if self.zone_model else None,
        )
        return KnownReranker(
            profile,
            PairOptions(self.excerpt_chars, self.window_tokens),
            tuple(ReferencePair(one.question, one.title, one.excerpt, one.logit) for one in self.references),
            self.calibration.known() if self.calibration else None,
        )


class _File(Entry):
    embedders: dict[Text, _Embedder] = Field(default_factory=dict)
    rerankers: dict[Text, _Reranker] = Field(default_factory=dict)


def load_profiles(own: Path | str | None = None) -> Profiles:
    """The profiles we know, and those of a file of the same shape, which add to them or replace one.

    `own` may be the setting as it is: an empty one names no file.
    Raises Misconfigured in one line: the file, the field and what is wrong with it.
    """
    files = [_read(path) for path in ([KNOWN, Path(own)] if own else [KNOWN])]
    return Profiles(
        {name: entry.known() for file in files for name, entry in file.embedders.items()},
        {name: entry.known() for file in files for name, entry in file.rerankers.items()},
    )


def recalibrated(own: Path | None, measured: Recalibration, *, embedder: str, reranker: str) -> str:
    """A profiles file (YAML) with all that `own` has, and the two profiles named with the thresholds measured.

    Raises Misconfigured as `load_profiles` and for a name that isn't there.
    """
    known, mine = _read(KNOWN), _read(own) if own else _File()
    judge = _named(reranker, {**known.rerankers, **mine.rerankers}, "models.reranker.profile")
    rerankers = {**mine.rerankers, reranker: judge.model_copy(update=measured.zones())}
    embedders = dict(mine.embedders)
    if measured.floor is not None:
        vectors = _named(embedder, {**known.embedders, **mine.embedders}, "models.embedder.profile")
        floor, calibration = measured.floor
        embedders[embedder] = vectors.model_copy(
            update={"cosine_floor": floor, "calibration": CalibrationEntry.of(calibration)}
        )
    content = _File(embedders=embedders, rerankers=rerankers).model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)


def _read(path: Path) -> _File:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise Misconfigured(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        value = yaml.load(content.decode("utf-8"), yaml.CSafeLoader)  # ten times as fast
        return _File.model_validate({} if value is None else value)
    except OSError as exc:
        raise Misconfigured(f"{path}: {exc.strerror}") from exc
    except ValidationError as exc:
        faults = (f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in exc.errors(include_input=False))
        raise Misconfigured(f"{path}: {'; '.join(faults)}") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:  # no UTF-8, an impossible date, endless nesting
        raise Misconfigured(f"{path}: {' '.join(str(exc).split())}") from exc


def _named(name: str, known: Mapping[str, K], setting: str) -> K:
    if name not in known:
        raise Misconfigured(f"{setting}: there is no profile {name!r}: {', '.join(known)}; add it to profiles_file")
    return known[name]
