"""What evaluation works on: labelled questions, what a system found or answered for each, and measured values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from service.domain import TopicId

ANSWERS = 2
"""The grade of a golden that answers the question; a lower one only helps, and counts in nDCG alone."""


class Labels(StrEnum):
    """The label files of a dataset, by their stem."""

    QUESTIONS = "questions"
    LINKS = "links"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class Golden:
    """A post that answers (or helps); without a post number the whole topic does, and post grain doesn't see it."""

    topic_id: TopicId
    post_number: int | None
    grade: int = ANSWERS


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled question. No golden: the forum has no answer, and abstaining is right.

    `question` is what is asked; for links and accepted a topic's title and its first post, 900 characters together.
    `standalone` is a follow-up in full. `exclude_from` as in service.domain.Question; `exclude_post` is one post that
    must not be found (topic, number), while later posts of its topic may: whoever ranks asks for one hit more and
    drops it. `cluster` names the topics whose questions stand or fall together (eval.datasets.clusters): what the
    bootstrap draws, and folds keep whole.
    """

    id: str
    labels: Labels
    slice: str
    lang: str
    question: str
    golden: tuple[Golden, ...]
    cluster: str
    history: tuple[tuple[str, str], ...] = ()
    standalone: str | None = None
    exclude_from: tuple[TopicId, int] | None = None
    exclude_post: tuple[TopicId, int] | None = None

    @property
    def answerable(self) -> bool:
        return any(one.grade >= ANSWERS for one in self.golden)


@dataclass(frozen=True, slots=True)
class Hit:
    """A post a system found; a higher score is better."""

    topic_id: TopicId
    post_number: int
    score: float


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a system found for a case, best first.

    `logits` and `cosines` are of the same posts as `hits` (None where a stage gave none); `zone` and `mode` are
    service's words, empty for a baseline that has none.
    """

    case_id: str
    hits: tuple[Hit, ...]
    queries: tuple[str, ...] = ()
    mode: str = ""
    zone: str = ""
    logits: tuple[float | None, ...] = ()
    cosines: tuple[float | None, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A source the answerer was shown, and whether the answer cites it."""

    n: int
    topic_id: TopicId
    post_number: int
    excerpt: str
    cited: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """What the whole pipeline said to a case; `result` is service.domain.Result's word."""

    case_id: str
    result: str
    zone: str
    mode: str
    markdown: str
    sources: tuple[CitedSource, ...] = ()
    draft: str = ""
    drafted_by: str = ""
    notes: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of one system over a slice of a label file ("all": every case of it); `n` cases.

    `labels` is the file's stem: one of Labels, or "gate", "safety".
    """

    labels: str
    system: str
    slice: str
    measure: str
    n: int
    interval: Interval
