"""The BM25 baseline against another implementation, on every question about the demo forum."""

import math
from pathlib import Path

import bm25s
import numpy as np
import pytest
from rank_bm25 import BM25Okapi

import eval.demo
from eval.datasets import load_dataset, read_cases
from eval.domain import Labels
from eval.systems import Followups
from eval.systems.baselines import STOP_WORDS, Bm25
from eval.systems.documents import Documents
from service.discourse.cooked import plain_text
from service.ingest.archive import read_topics

K1 = 1.5


def demo_documents(folder: Path) -> Documents:
    """Every post of the archive; no vector."""
    posts = sorted(
        (topic.topic.id, post.post_number, f"{topic.topic.title}\n\n{plain_text(post.cooked)}")
        for topic in read_topics(folder / "topics.jsonl.gz")
        for post in topic.posts
    )
    none = np.zeros((0, 1), dtype=np.float32)
    return Documents(
        np.array([post[0] for post in posts]),
        np.array([post[1] for post in posts]),
        tuple(post[2] for post in posts),
        none,
        np.zeros(0, dtype=np.int64),
    )


async def test_rank_bm25_gives_every_post_the_same_score() -> None:
    dataset = load_dataset(Path(eval.demo.__file__).parent)
    documents = demo_documents(dataset.folder)
    ours = Bm25(documents, Followups.FULL, 900)
    tokens = bm25s.tokenize(list(documents.texts), stopwords=STOP_WORDS, show_progress=False, return_ids=False)
    theirs = BM25Okapi(tokens, k1=K1, b=0.75)
    for word in theirs.idf:  # its own is Robertson's, which goes below zero: Lucene's in its place
        n = sum(word in counts for counts in theirs.doc_freqs)
        theirs.idf[word] = math.log(1 + (len(tokens) - n + 0.5) / (n + 0.5))
    rows = {key: row for row, key in enumerate(zip(documents.topics, documents.numbers, strict=True))}
    compared = 0
    for case in read_cases(dataset, Labels.QUESTIONS):
        found = await ours.rank(case)
        (asked,) = bm25s.tokenize(found.queries, stopwords=STOP_WORDS, show_progress=False, return_ids=False)
        scores = theirs.get_scores(asked) / (K1 + 1)  # Lucene leaves out the constant factor
        for hit in found.hits:
            assert scores[rows[hit.topic_id, hit.post_number]] == pytest.approx(hit.score, rel=1e-4)
        if found.hits:
            assert found.hits[0].score == pytest.approx(scores.max(), rel=1e-4)
        compared += len(found.hits)
    assert compared > 1_000
