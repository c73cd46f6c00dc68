"""A question on its way to an answer: evidence, draft, answer, trace."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.domain.forum import CategoryId, Lang, PostId, TopicId


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
class Before:
    """The turns before a question in its topic, oldest first, and the number of the first post by a human."""

    turns: tuple[tuple[str, str], ...] = ()
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a question has used up so far of its model calls and of their seconds."""

    calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """What a member asks: `text` without the mention, bounded.

    `exclude_from` is the asking topic and the number of its first post that must not answer (the question itself),
    `category_id` that topic's category. `history` are turns before it, oldest first, as (role, text): "title" for its
    topic's title, "user" for every human, "bot" for us; `history_from` is the number of the first of these posts.
    `condensed` is the question in full where the text alone can't be understood, else empty.
    """

    text: str
    lang: Lang
    title: str = ""
    exclude_from: tuple[TopicId, int] | None = None
    history: tuple[tuple[str, str], ...] = ()
    category_id: CategoryId | None = None
    history_from: int | None = None
    condensed: str = ""
    spent: Spent = Spent()

    @property
    def scored(self) -> str:
        """The one query that candidates are scored by and excerpts are chosen by, at every stage."""
        return self.condensed or self.text

    @property
    def queries(self) -> tuple[str, ...]:
        """What is searched and fused, the scored query first."""
        return tuple(dict.fromkeys((self.scored, self.text)))


@dataclass(frozen=True, slots=True)
class TopicHit:
    """A topic that a channel found; a higher score is better."""

    topic_id: TopicId
    score: float


@dataclass(frozen=True, slots=True)
class TopicScores:
    """What a whole topic has of a question, None where that isn't known: its best post's `cosine` and `bm25`.

    `mean` is the cosine of the mean of its posts' vectors, `first` that of its first post, `words` the BM25 of its
    whole text.
    """

    cosine: float | None = None
    mean: float | None = None
    first: float | None = None
    bm25: float | None = None
    words: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A post that may answer; `cosine` in [-1, 1], `bm25` >= 0, `fused` a sum of reciprocal ranks, `logit` as given.

    `topic` tells what the rest of its topic has of the question, where topics were searched.
    """

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
    topic: TopicScores | None = None


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
    `lang` is the language it has to be in: none for quotes, which keep the language of their posts. `prompt` is the
    fixed part of what the model was told, of which nothing may be posted. `chars` is how much of each source it was
    shown, `spent` what the question has used up with it, `evidence` its sources word for word as it read them, with
    the question; all three are a model's.
    """

    text: str
    by: str
    shown: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    lang: Lang | None = None
    prompt: str = ""
    chars: int = 0
    spent: Spent = Spent()
    evidence: str = ""


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
    """What happened to one question, stage by stage: what moderators see and what evaluation replays.

    `checks` tells of each check of a draft by the model whether it passed, why it failed, or why it wasn't made;
    `draft` is the last private draft, `first_draft` the one that failed before it; `evidence` is what a model was given
    to read for the last one, word for word. `asked` is the question as it was read from the post, `waited_seconds` how
    long after it was asked the answer was begun, None where nobody waits on a forum.
    """

    asked: str = ""
    queries: list[str] = field(default_factory=list)
    lang: str = ""
    mode: Mode | None = None
    zone: Zone | None = None
    candidates: Sequence[Candidate] = ()
    sources: Sequence[Source] = ()
    evidence: str = ""
    draft: str = ""
    drafted_by: str = ""
    first_draft: str = ""
    checks: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)
    waited_seconds: float | None = None
