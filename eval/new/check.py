"""Checks a dataset as a whole: every file readable, every post that a label names in the archive."""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from eval.datasets import Dataset, read_cases, read_drafts, read_gate, read_safety
from eval.datasets.archive import read_archive
from eval.datasets.folder import LABEL_FILES
from eval.domain import Case, Labels
from service.domain import EmbeddingProfile
from service.errors import Rejected
from service.ingest.archive import embedded_by, read_categories, read_vectors

Cases = Sequence[Case]


def faults_of(dataset: Dataset, profiles: Iterable[EmbeddingProfile]) -> Iterator[str]:
    """What is wrong in the dataset, one line for each file, and one for each question whose golden isn't there.

    `profiles` are those that are known: vectors of their models must have their dimensions.
    """
    cases: list[Case] = []

    def labels(one: Labels) -> None:
        cases.extend(read_cases(dataset, one))

    readers: dict[str, Callable[[], object]] = {
        **{name: partial(labels, one) for one, name in LABEL_FILES.items()},
        "gate.yml": lambda: read_gate(dataset),
        "drafts.yml": lambda: read_drafts(dataset),
        "safety.yml": lambda: read_safety(dataset),
        "site.json": lambda: read_categories(dataset.files["site.json"]),
        "vectors.npz": lambda: _read_vectors(dataset.files["vectors.npz"], profiles),
    }
    for name, read in readers.items():
        if name in dataset.files:
            try:
                read()
            except Rejected as exc:
                yield str(exc)
    if dataset.files.keys() & {"topics.jsonl.gz", "topics.jsonl"}:
        try:
            yield from _absent(dataset, cases)
        except Rejected as exc:
            yield str(exc)


def _read_vectors(path: Path, profiles: Iterable[EmbeddingProfile]) -> None:
    """Read them as whoever has that model does; raises Rejected."""
    model = embedded_by(path)  # every array can be read
    with zipfile.ZipFile(path) as zipped, zipped.open("embedding.npy") as file:
        dimensions = np.lib.format.read_array(file, allow_pickle=False).shape[-1:]
    known = [one.dimensions for one in profiles if one.model == model]
    read_vectors(path, EmbeddingProfile(model, 0, 0, (*known, *dimensions, 0)[0], 0))


def _absent(dataset: Dataset, cases: Cases) -> Iterator[str]:
    posts = {read.topic.id: {post.post_number for post in read.posts} for read in read_archive(dataset.topics)}
    for case in cases:
        for golden in case.golden:
            known = posts.get(golden.topic_id)
            if known is None or (golden.post_number is not None and golden.post_number not in known):
                place = f"topic {golden.topic_id}"
                named = place if known is None else f"post {golden.post_number} of {place}"
                yield f"{dataset.folder}, {case.labels} {case.id}: {named} is not in {dataset.topics.name}"
                break
