"""The words of the project as frozen dataclasses: what a forum holds, what is asked, what is answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import NewType

import numpy as np
from numpy.typing import NDArray

PostId = NewType("PostId", int)
TopicId = NewType("TopicId", int)
CategoryId = NewType("CategoryId", int)
UserId = NewType("UserId", int)
ProfileId = NewType("ProfileId", int)
InboxId = NewType("InboxId", int)
Lang = NewType("Lang", str)
"""A language that has a wording file ("en", "fr", ...)."""

Vector = NDArray[np.float32]
"""One embedding: shape (dimensions,), unit length."""

ENGLISH = Lang("en")
FRENCH = Lang("fr")


class PostType(IntEnum):
    """Discourse's post types (docs/discourse: posts.post_type)."""

    REGULAR = 1
    MODERATOR_ACTION = 2
    SMALL_ACTION = 3
    WHISPER = 4


@dataclass(frozen=True, slots=True)
class Category:
    id: CategoryId
    name: str
    slug: str
    parent_id: CategoryId | None
    read_restricted: bool


@dataclass(frozen=True, slots=True)
class Topic:
    """A thread's state, as an anonymous reader of the forum sees it."""

    id: TopicId
    title: str
    slug: str
    category_id: CategoryId | None
    archetype: str
    visible: bool = True
    closed: bool = False
    archived: bool = False
    deleted: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Post:
    """A post as a webhook, a REST read or an archive gave it: a snapshot, dated by `updated_at`.

    `category_id` and `archetype` are None where the source didn't say; unknown means private.
    """

    id: PostId
    topic_id: TopicId
    post_number: int
    post_type: int
    user_id: UserId | None
    username: str
    cooked: str
    created_at: datetime
    updated_at: datetime
    reply_to_post_number: int | None = None
    reply_to_username: str | None = None
    hidden: bool = False
    deleted: bool = False
    user_deleted: bool = False
    via_email: bool = False
    archetype: str | None = None
    category_id: CategoryId | None = None
    topic_title: str = ""
    topic_slug: str = ""


class IndexKind(StrEnum):
    """How a profile's vectors are searched (docs/inference: the index kind belongs to the profile)."""

    EXACT = "exact"
    HNSW_HALFVEC = "hnsw_halfvec"
    HNSW_BINARY = "hnsw_binary"


@dataclass(frozen=True, slots=True)
class EmbeddingProfile:
    """What made a set of vectors: model, text strategy and version; `window_tokens` is the model's limit.

    `cosine_floor` is the best cosine under which nothing is answered when no reranker can judge: 1, so never, until it
    is measured for the model.
    """

    model: str
    strategy: int
    version: int
    dimensions: int
    window_tokens: int
    index_kind: IndexKind = IndexKind.EXACT
    cosine_floor: float = field(default=1.0, compare=False)

    @property
    def name(self) -> str:
        return f"{self.model}/{self.strategy}.{self.version}"


@dataclass(frozen=True, slots=True)
class RerankerProfile:
    """A reranker's name and the top logits that divide the zones: abstain < weak <= logit < normal <= logit."""

    name: str
    weak: float
    normal: float
    provisional: bool


class Zone(StrEnum):
    NORMAL = "normal"
    WEAK = "weak"
    ABSTAIN = "abstain"


class Mode(StrEnum):
    """How the candidates were found and scored; the same words in metrics, pages and replies."""

    RERANKED = "reranked"
    RERANKER_DOWN = "reranker-down"
    KEYWORD = "keyword"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class Question:
    """What a member asks: `text` without the mention, bounded.

    `exclude_from` is the asking topic and the number of its first post that must not answer (the question itself).
    """

    text: str
    lang: Lang
    title: str = ""
    exclude_from: tuple[TopicId, int] | None = None
    history: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A post that may answer; `cosine` in [-1, 1], `bm25` >= 0, `fused` a sum of reciprocal ranks, `logit` as given."""

    post_id: PostId
    topic_id: TopicId
    post_number: int
    title: str
    slug: str
    body: str
    username: str
    created_at: datetime
    cosine: float | None = None
    bm25: float | None = None
    fused: float = 0.0
    logit: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Numbered evidence: what the answerer reads and what `[[n]]` may cite; `excerpt` is bounded plain text."""

    n: int
    post_id: PostId
    topic_id: TopicId
    post_number: int
    title: str
    slug: str
    excerpt: str
    username: str
    created_at: datetime
    cosine: float | None
    logit: float | None


@dataclass(frozen=True, slots=True)
class Draft:
    """An answerer's private Markdown, citing its sources as `[[n]]`; `by` names what wrote it.

    `shown` are the numbers of the sources it was written from, the first ones: all when None. `notes` go to the trace.
    """

    text: str
    by: str
    shown: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TruncatedVector:
    """The vector of a text longer than the model's window: it stands for the beginning of the text only."""

    vector: Vector


@dataclass(frozen=True, slots=True)
class TextFailure:
    """A text that a model can't work on while it works on others, and what the model's server said."""

    error: str


Embedded = Vector | TruncatedVector | TextFailure
"""What became of one text sent to an embedder."""


@dataclass(frozen=True, slots=True)
class ReferenceVector:
    """A text and its vector; `query` tells which of the model's prefixes it was embedded with."""

    text: str
    vector: tuple[float, ...]
    query: bool = False


class Role(StrEnum):
    """Who speaks in a chat prompt."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's text, without its reasoning; `truncated` when it met the token limit. Counts are None if not told."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    truncated: bool
    thinking_stripped: bool


class Result(StrEnum):
    """What answering came to, before any posting."""

    ANSWERED = "answered"
    GATED = "gated"
    ABSTAINED = "abstained"
    FAILED = "failed"
    HELPED = "helped"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of the pipeline for one question; `markdown` is ready to be posted, `cited` are source numbers."""

    result: Result
    markdown: str
    zone: Zone | None = None
    mode: Mode | None = None
    sources: tuple[Source, ...] = ()
    cited: tuple[int, ...] = ()


@dataclass(slots=True)
class Trace:
    """What happened to one question, stage by stage: what moderators see and what evaluation replays."""

    queries: list[str] = field(default_factory=list)
    lang: str = ""
    mode: Mode | None = None
    zone: Zone | None = None
    candidates: Sequence[Candidate] = ()
    sources: Sequence[Source] = ()
    draft: str = ""
    drafted_by: str = ""
    removed: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)


class SkipReason(StrEnum):
    """Why a post got no answer; the same words in metrics and traces."""

    NOT_ADDRESSED = "not_addressed"
    OWN_POST = "own_post"
    KNOWN_BOT = "known_bot"
    SYSTEM_USER = "system_user"
    STAGED_USER = "staged_user"
    WHISPER = "whisper"
    SMALL_ACTION = "small_action"
    MODERATOR_ACTION = "moderator_action"
    PRIVATE = "private"
    POST_GONE = "post_gone"
    POST_HIDDEN = "post_hidden"
    TOPIC_GONE = "topic_gone"
    TOPIC_CLOSED = "topic_closed"
    MENTION_IN_QUOTE = "mention_in_quote"
    MENTION_IN_CODE = "mention_in_code"
    MENTION_IN_ONEBOX = "mention_in_onebox"
    MENTION_IN_ELIDED = "mention_in_elided"
    THANKS = "thanks"
    HELP_GIVEN = "help_given"
    ANSWERING_OFF = "answering_off"
    PIPELINE_OFF = "posts_pipeline_off"
    MEMBER_LIMIT = "member_limit"
    TOPIC_LIMIT = "topic_limit"
    HOURLY_LIMIT = "hourly_limit"
    SOURCE_GONE = "source_gone"
    FORUM_REFUSED = "forum_refused"
    FORUM_FORBIDS = "forum_forbids"
    TOO_OLD = "too_old"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Posted:
    """One reply is on the forum, or waits for approval there (`enqueued`, then without a post id)."""

    result: Result
    reply_post_id: PostId | None
    enqueued: bool = False
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Shadowed:
    """The answer was computed and kept, not posted."""

    result: Result


@dataclass(frozen=True, slots=True)
class Skipped:
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Duplicate:
    """This post already has its answer."""


Outcome = Posted | Shadowed | Skipped | Duplicate
