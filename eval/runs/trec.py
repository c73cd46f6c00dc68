"""TREC run files: what other tools of the field read."""

from collections.abc import Sequence
from pathlib import Path

from eval.domain import Retrieved


def write_trec(path: Path, found: Sequence[Retrieved], *, tag: str) -> None:
    """One line a hit: question, Q0, document as `<topic>.<post>`, rank from 1, score, tag."""
    beside = path.with_suffix(".trec.part")
    with beside.open("w", encoding="utf-8") as file:
        for one in found:
            for rank, hit in enumerate(one.hits, start=1):
                file.write(f"{one.case_id} Q0 {hit.topic_id}.{hit.post_number} {rank} {hit.score!r} {tag}\n")
    beside.replace(path)
