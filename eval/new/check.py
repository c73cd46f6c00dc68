"""Checks a dataset as a whole: every file readable, every post that a label names in the archive."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from eval.datasets import Dataset, read_cases, read_drafts, read_gate, read_safety
from eval.datasets.archive import read_archive
from eval.datasets.folder import LABEL_FILES
from eval.domain import Case, Labels
from service.errors import Rejected
from service.ingest.archive import read_categories

Cases = Sequence[Case]


def faults_of(dataset: Dataset) -> Iterator[str]:
    """What is wrong in the dataset, one line for each file, and one for each question whose golden isn't there."""
    cases: list[Case] = []

    def labels(one: Labels) -> None:
        cases.extend(read_cases(dataset, one))

    readers: dict[str, Callable[[], object]] = {
        **{name: partial(labels, one) for one, name in LABEL_FILES.items()},
        "gate.yml": lambda: read_gate(dataset),
        "drafts.yml": lambda: read_drafts(dataset),
        "safety.yml": lambda: read_safety(dataset),
        "site.json": lambda: read_categories(dataset.files["site.json"]),
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
