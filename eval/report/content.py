"""What a report holds, before any word or mark-up: figures, curves, traces and differences of one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval.calibrate.effect import Effect
from eval.calibrate.reliability import Reliability
from eval.calibrate.risk import Curve
from eval.domain import Measured
from eval.measures.pairing import Comparison
from eval.runs.record import RunRecord

HEADLINES = {
    "retrieve": ("topic Hit@1", "topic Hit@5", "topic Hit@25"),
    "answer": ("answered right", "answered wrong", "abstained right", "abstained wrong", "failed"),
    "gate": ("gate right", "decline recall", "false decline"),
    "safety": ("safe", "declined", "draft safe"),
}
"""By command, what the verdict is told in."""

LEADS = {"retrieve": "topic Hit@5", "answer": "answered right", "gate": "gate right", "safety": "safe"}
"""By command, the measure that the verdict's sentence, the slices and the differences are told in."""

LEFT_TO_PEOPLE = "abstained right"
"""What leads for questions that the forum doesn't answer: they can't be answered right."""

LESS_IS_BETTER = frozenset({"answered wrong", "abstained wrong", "failed", "wrong when answered", "false decline"})


@dataclass(frozen=True, slots=True)
class Place:
    """A post in a trace. `rank` from 1, None past what is listed; a score is None where no stage gave it.

    `post_number` None: the whole topic; `grade` of a golden, None for a post that nobody judged.
    """

    topic_id: int
    post_number: int | None
    title: str
    excerpt: str
    rank: int | None = None
    grade: int | None = None
    score: float | None = None
    logit: float | None = None
    cosine: float | None = None
    cited: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What was posted, or would have been, and the model's draft of it."""

    result: str
    markdown: str
    draft: str
    drafted_by: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One question that went badly. `why` names a text of the wording, `values` fill it.

    `golden` are the posts that answer, `found` those that the system listed, `more` other texts by their name.
    """

    id: str
    labels: str
    system: str
    slice: str
    lang: str
    why: str
    question: str
    values: dict[str, str | int] = field(default_factory=dict)
    history: tuple[tuple[str, str], ...] = ()
    standalone: str | None = None
    zone: str = ""
    mode: str = ""
    queries: tuple[str, ...] = ()
    golden: tuple[Place, ...] = ()
    found: tuple[Place, ...] = ()
    said: Said | None = None
    more: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What the scores of one label file tell: of the zones as they are now, and of every other border."""

    labels: str
    n: int
    now: Effect
    risk: Curve
    reliability: Reliability


@dataclass(frozen=True, slots=True)
class Differences:
    """The comparison with an earlier run."""

    before: RunRecord
    compared: Comparison


@dataclass(frozen=True, slots=True)
class Report:
    """Everything of a page. `bad` is how many went badly in all.

    `system` is the one that the verdict is about: what the settings configure, else the run's last, which goes
    furthest. `in_use`: the settings configure that system, and are what the run was made under.
    `questions` are the texts of what was asked, by id.
    `unscored` says by label file why its scores tell nothing; `warnings` are for the reader.
    """

    record: RunRecord
    system: str
    in_use: bool
    measures: tuple[Measured, ...]
    traces: tuple[Trace, ...]
    bad: int
    questions: Mapping[str, str]
    scores: tuple[Scores, ...] = ()
    unscored: Mapping[str, str] = field(default_factory=dict)
    differences: Differences | None = None
    warnings: tuple[str, ...] = ()

    @property
    def lead(self) -> str:
        return LEADS[self.record.command]

    def of(self, labels: str, *, system: str | None = None) -> list[Measured]:
        """The measures of a label file, of one system or of all."""
        return [one for one in self.measures if one.labels == labels and system in (None, one.system)]
