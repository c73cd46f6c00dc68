"""The settings by section, each with its default and what it is; the models have a module of their own."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

MIN_SECRET_CHARS = 12
"""Discourse refuses a shorter webhook secret (docs/discourse, section 1)."""

MIN_CONNECT_SECRET_CHARS = 16
"""Ours to choose: Discourse takes any, and advises random text."""


def _base_url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return value.rstrip("/")


def _secret(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < MIN_SECRET_CHARS:
        raise ValueError(f"must have at least {MIN_SECRET_CHARS} characters")
    return value


def _connect_secret(value: SecretStr) -> SecretStr:
    """None at all, or one that can't be guessed from a signed payload, which every member can get."""
    if value.get_secret_value() and len(value.get_secret_value().strip()) < MIN_CONNECT_SECRET_CHARS:
        raise ValueError(f"must have at least {MIN_CONNECT_SECRET_CHARS} characters")
    return value


class OnChange(StrEnum):
    """What becomes of answers when the configuration is no longer the one that was tested and switched on."""

    SHADOW = "shadow"
    KEEP = "keep"


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ForumSettings(Section):
    base_url: Annotated[str, AfterValidator(_base_url)] = Field(
        "http://127.0.0.1:4200", description="Address of the forum, subfolder included; every link starts with it."
    )
    api_key: SecretStr = Field(
        SecretStr(""), description="Key of the bot's account: topics:write, posts:edit, global:read."
    )
    bot_username: str = Field(
        "ariane", min_length=1, description="The account that Ariane posts as and is mentioned by."
    )
    known_bots: tuple[str, ...] = Field(
        ("system", "discobot"), description="Accounts that never get an answer and are never indexed."
    )
    language: str = Field("en", description="Language of a reply when the question's own can't be told.")
    index_banners: bool = Field(False, description="Also index topics of archetype banner.")
    timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for one answer of the forum.")
    attempts: int = Field(3, ge=1, le=10, description="Tries of one read before its job is retried later.")


class WebhookSettings(Section):
    secrets: tuple[Annotated[SecretStr, AfterValidator(_secret)], ...] = Field(
        (), description="The webhook's secret; two during a rotation. Without one the web process does not start."
    )
    max_body_bytes: int = Field(1_048_576, gt=0, description="A larger delivery is refused with 413.")


class DatabaseSettings(Section):
    url: SecretStr = Field(SecretStr(""), description="postgresql:// address; empty: an embedded Postgres in `home`.")
    pool_max_size: int = Field(8, ge=2, description="Connections of one process.")
    connect_timeout_seconds: int = Field(10, gt=0, description="Longest wait for a connection.")
    statement_timeout_seconds: float = Field(30.0, gt=0, description="Longest run of one statement.")
    search_timeout_seconds: float = Field(10.0, gt=0, description="Longest run of one statement of a search.")


class WebSettings(Section):
    host: str = Field("127.0.0.1", description="Address the web process listens on.")
    port: int = Field(4300, ge=0, le=65535, description="Port the web process listens on.")


class WorkerSettings(Section):
    answer_concurrency: int = Field(2, ge=1, description="Questions one worker answers at a time.")
    index_concurrency: int = Field(2, ge=1, description="Index jobs one worker runs at a time, beside the questions.")
    metrics_host: str = Field("127.0.0.1", description="Address of the worker's metrics page.")
    metrics_port: int = Field(4301, ge=0, le=65535, description="Port of the worker's metrics page; 0 turns it off.")
    heartbeat_seconds: float = Field(5.0, gt=0, description="How often a worker says that it lives.")
    stalled_after_seconds: float = Field(30.0, gt=0, description="Silence after which a worker's jobs are taken back.")
    sweep_seconds: float = Field(10.0, gt=0, description="How often stalled jobs are looked for.")
    shutdown_grace_seconds: float = Field(60.0, gt=0, description="Longest wait for running jobs at a stop.")
    max_attempts: int = Field(12, ge=1, description="Tries of one job before it is given up.")
    retry_base_seconds: float = Field(2.0, gt=0, description="First wait before a retry; it doubles, with jitter.")
    retry_max_seconds: float = Field(600.0, gt=0, description="Longest wait before a retry.")


class Channel(StrEnum):
    """A way to find posts; what several find is fused."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    TOPIC_MEAN = "topic-mean"
    FIRST_POST = "first-post"
    TOPIC_KEYWORD = "topic-keyword"


def _distinct(value: tuple[Channel, ...]) -> tuple[Channel, ...]:
    if len(set(value)) < len(value):
        raise ValueError("names a channel twice")
    return value


class RetrievalSettings(Section):
    channels: Annotated[tuple[Channel, ...], AfterValidator(_distinct)] = Field(
        tuple(Channel),
        min_length=1,
        description="What finds threads: vector and keyword (BM25) by their best post; topic-mean (their posts' mean "
        "vector), first-post, topic-keyword (BM25 of their whole text).",
    )
    weights: dict[Channel, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        {}, description="What a channel counts for in the fusion; 1 unless given."
    )
    candidates: int = Field(25, ge=1, le=200, description="Threads kept of the fused list, each sent by its best post.")
    rrf_k: int = Field(60, ge=1, description="Constant of reciprocal rank fusion.")
    message_percent: int = Field(
        30, ge=0, le=100, description="What a follow-up's message alone counts for, beside the question in full."
    )
    keyword_words: int = Field(30, ge=1, description="Rarest words of a question that the keyword channels search.")
    legacy_words: int = Field(8, ge=1, description="Rarest words of a question that the legacy path searches.")
    legacy_gate_percent: int = Field(
        50, ge=0, le=100, description="Of their weight, what a topic without any of them in its title must hold."
    )
    legacy_boost_percent: int = Field(
        100, ge=0, le=1000, description="How much a title, and a topic's text, that hold all of them raise it."
    )
    max_sources: int = Field(6, ge=1, le=20, description="Threads shown to the answerer, one post each.")
    excerpt_chars: int = Field(300, ge=50, description="What the reranker reads of a post.")
    evidence_chars: int = Field(1250, ge=100, description="What the answerer reads of a post.")
    question_chars: int = Field(
        1500, ge=50, description="What is kept of a question; a longer one is cut, and said so."
    )


class ActivationSettings(Section):
    on_change: OnChange = Field(
        OnChange.SHADOW,
        description="What answers do after a change of what was tested: shadow (not posted until tested and switched "
        "on anew), or keep.",
    )
    least_coverage_percent: float = Field(
        95.0, ge=0, le=100, description="Share of the indexed posts that have a vector before posts_pipeline goes on."
    )


class GateSettings(Section):
    rules_file: str = Field("", description="YAML file of gate rules of your own, merged with the known ones by id.")
    kinds_off: tuple[str, ...] = Field((), description="Kinds that the input gate lets through, such as generalist.")


class LimitSettings(Section):
    per_member_per_hour: int = Field(10, ge=1, description="Answers one member gets in an hour.")
    per_topic_per_hour: int = Field(15, ge=1, description="Answers given in one topic in an hour.")
    per_hour: int = Field(200, ge=1, description="Answers given in an hour on the whole forum.")
    max_age_minutes: int = Field(1440, ge=1, description="A mention older than this gets no answer.")
    late_minutes: int = Field(
        10,
        ge=0,
        description="A question that waited longer gets its sources alone, or nothing where people have answered; "
        "0: it never is late.",
    )


class RetentionSettings(Section):
    inbox_body_hours: int = Field(24, ge=1, description="A delivery's text goes after this even if its jobs failed.")
    inbox_days: int = Field(30, ge=1, description="How long a delivery's row is kept to refuse replays early.")
    finished_jobs_hours: int = Field(72, ge=1, description="How long failed jobs are kept to be looked at.")
    trace_days: int = Field(90, ge=1, description="How long traces and the texts of replies are kept.")
    unanswered_days: int = Field(
        90, ge=1, description="How long a question without an answer is kept after it was asked last."
    )
    unanswered_questions: int = Field(5000, ge=1, description="Questions without an answer that are kept.")


class ModerationSettings(Section):
    public_url: Annotated[str, AfterValidator(_base_url)] = Field(
        "http://127.0.0.1:4300",
        description="Address of the web process as moderators' browsers reach it; the forum sends them back there.",
    )
    connect_secret: Annotated[SecretStr, AfterValidator(_connect_secret)] = Field(
        SecretStr(""),
        description="Secret of that address in the forum's discourse_connect_provider_secrets; without one nobody "
        "signs in by the forum.",
    )
    idle_minutes: int = Field(120, ge=1, description="A moderator's session ends after this without use.")
    absolute_hours: int = Field(12, ge=1, description="A moderator's session ends after this whatever its use.")


class BackfillSettings(Section):
    requests_per_minute: float = Field(
        30.0, gt=0, le=60, description="Reads with the bot's key; the forum allows 60 to all keys of the site together."
    )
    anonymous_requests_per_minute: float = Field(
        100.0, gt=0, le=200, description="Reads without a key; the forum allows 200 to one address."
    )
    forum_database_url: SecretStr = Field(
        SecretStr(""), description="postgresql:// address of the forum's own database, for --forum-database."
    )
    statement_timeout_seconds: float = Field(
        60.0, gt=0, description="Longest run of one statement in the forum's own database."
    )


class ReconcileSettings(Section):
    requests_per_minute: float = Field(
        20.0, ge=0, le=200, description="Reads by which the worker compares the index with the forum; 0: it never does."
    )


class LogSettings(Section):
    level: str = Field("info", pattern="^(debug|info|warning|error)$", description="Least level that is logged.")
    format: str = Field(
        "console", pattern="^(json|console)$", description="One JSON object a line, or text for people."
    )
