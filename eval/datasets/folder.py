"""A dataset folder: the files it has, their checksum, and its manifest."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from eval.datasets.parsing import Entry, Language, Line, Name, checked, read_yaml
from eval.domain import Labels
from service.errors import Rejected

MANIFEST = "manifest.yml"
CORPUS_FILES = ("topics.jsonl.gz", "topics.jsonl", "site.json", "vectors.npz")
"""What the index is made of."""

LABEL_FILES = {Labels.QUESTIONS: "questions.yml", Labels.LINKS: "links.jsonl", Labels.ACCEPTED: "accepted.jsonl"}
KNOWN_FILES = (*CORPUS_FILES, *LABEL_FILES.values(), "gate.yml", "drafts.yml", "safety.yml")
DEFAULT_LANGUAGE = "en"
UNCHECKED = f"no {MANIFEST}: nothing says that its files are whole"

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Manifest(Entry):
    """What manifest.yml says: the dataset's name, its languages, under what terms it may be used, its files."""

    name: Name
    languages: Annotated[list[Language], Field(min_length=1, max_length=50)]
    licence: Line
    files: Annotated[dict[str, Sha256], Field(max_length=len(KNOWN_FILES))]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A checked folder. `files` are the known files that are there, by name.

    `checksum` is the SHA-256 over the names and SHA-256 of all of them (the manifest is none of them); `corpus` the
    same over the files that the index is made of, so that a new judgement needs no new index.
    """

    name: str
    folder: Path
    languages: tuple[str, ...]
    files: Mapping[str, Path]
    checksum: str
    corpus: str
    warnings: tuple[str, ...] = ()

    def path(self, *names: str) -> Path:
        """The first of these files that is there; raises Rejected saying which file is needed."""
        for name in names:
            if name in self.files:
                return self.files[name]
        raise Rejected(f"{self.folder}: no {' or '.join(names)} in this dataset, and this needs it")

    @property
    def topics(self) -> Path:
        """The archive; raises Rejected when the dataset has none."""
        return self.path("topics.jsonl.gz", "topics.jsonl")

    @property
    def site(self) -> Path | None:
        """The categories, if known: without them every category of the archive is public."""
        return self.files.get("site.json")

    @property
    def labels(self) -> tuple[Labels, ...]:
        """The files of labelled questions that are there."""
        return tuple(one for one, name in LABEL_FILES.items() if name in self.files)

    @property
    def vectors(self) -> Path | None:
        return self.files.get("vectors.npz")


def load_dataset(folder: Path) -> Dataset:
    """The dataset in this folder, its files against its manifest; raises Rejected saying which file is at fault."""
    if not folder.is_dir():
        raise Rejected(f"{folder}: no such folder")
    files = files_in(folder)
    sums = checksums(files)
    manifest = read_manifest(folder)
    corpus = {name: digest for name, digest in sums.items() if name in CORPUS_FILES}
    return Dataset(
        name=manifest.name if manifest else name_of(folder),
        folder=folder,
        languages=tuple(manifest.languages) if manifest else (DEFAULT_LANGUAGE,),
        files=files,
        checksum=_total(sums),
        corpus=_total(corpus),
        warnings=_compare(folder, manifest, sums) if manifest else (f"{folder}: {UNCHECKED}",),
    )


def files_in(folder: Path) -> dict[str, Path]:
    """The known files of this folder by name; raises Rejected where there are none, or two archives."""
    files = {name: folder / name for name in KNOWN_FILES if (folder / name).is_file()}
    if not files:
        raise Rejected(f"{folder}: no dataset: none of {', '.join(KNOWN_FILES)} is there")
    if len(files.keys() & {"topics.jsonl.gz", "topics.jsonl"}) > 1:
        raise Rejected(f"{folder}: topics.jsonl and topics.jsonl.gz are both there: which one is it?")
    return files


def name_of(folder: Path) -> str:
    """The name of a dataset that nobody gave one: its folder's."""
    return re.sub(r"[^\w.:+-]+", "-", folder.resolve().name)[:100] or "dataset"


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest, if it has one; raises Rejected."""
    path = folder / MANIFEST
    return checked(read_yaml(path), Manifest, str(path)) if path.is_file() else None


def checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """The SHA-256 of each file, in hexadecimal; raises Rejected."""
    sums = {}
    for name, path in files.items():
        try:
            with path.open("rb") as file:
                sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            raise Rejected(f"{path}: can't be read: {exc.strerror}") from exc
    return sums


def _compare(folder: Path, manifest: Manifest, sums: Mapping[str, str]) -> tuple[str, ...]:
    for name, expected in manifest.files.items():
        if name not in KNOWN_FILES:
            raise Rejected(f"{folder / MANIFEST}, files: no file of a dataset is called {name!r}")
        if name not in sums:
            raise Rejected(f"{folder / name}: named in {MANIFEST}, but not there")
        if sums[name] != expected:
            raise Rejected(
                f"{folder / name}: its SHA-256 is {sums[name][:12]}…, not {expected[:12]}… as {MANIFEST} says: "
                f"damaged, or changed (then `python -m eval new --manifest {folder}`)"
            )
    return tuple(f"{folder / name}: not in {MANIFEST}" for name in sums if name not in manifest.files)


def _total(sums: Mapping[str, str]) -> str:
    return hashlib.sha256("".join(f"{name} {sums[name]}\n" for name in sorted(sums)).encode()).hexdigest()
