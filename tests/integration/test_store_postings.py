"""Postings hold every word as it is, whatever it is made of."""

from dataclasses import replace

import pytest

from service.store.corpus import CorpusStore
from service.store.pool import Pool
from tests.integration.store_data import PUBLIC, TOPIC, frequencies_are_exact, indexed, post, rows

ODD = ["\\", "\\N", "\\.", "a\tb", "a\nb", "\r", "\\t", "'\"", "é", "漢字", "a\\\nb", " ", "\u2028", "%s"]


@pytest.fixture
async def corpus_pool(pool: Pool) -> Pool:
    corpus = CorpusStore(pool)
    await corpus.put_categories([PUBLIC])
    await corpus.put_topics([TOPIC])
    return pool


async def test_a_word_of_any_characters_is_stored_as_it_is(corpus_pool: Pool) -> None:
    corpus = CorpusStore(corpus_pool)
    posts = [
        replace(indexed(post(n), "x"), terms={word: n + m for m, word in enumerate(ODD, start=1)}, length=40)
        for n in range(1, 4)
    ]
    await corpus.put_posts(posts)
    stored = await rows(corpus_pool, "SELECT post_id, lexeme, topic_id, tf, length FROM postings")
    assert sorted(stored) == sorted(
        (one.post.id, word, TOPIC.id, tf, 40) for one in posts for word, tf in one.terms.items()
    )
    assert await frequencies_are_exact(corpus_pool)
    await corpus.put_posts([replace(one, terms={"plain": 1}) for one in posts])
    assert await rows(corpus_pool, "SELECT DISTINCT lexeme FROM postings") == [("plain",)]
