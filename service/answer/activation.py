"""Whether the configuration in use may answer by itself: tested, switched on after that, and unchanged since (A4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from service.answer.ports import AnsweringMode, FlagReader, Flags
from service.answer.signature import differences
from service.domain import RunKind, Signature, StoredRun
from service.settings import ActivationSettings, OnChange
from service.telemetry import ACTIVATION, log

SHOWN_DIFFERENCES = 6
TEST_FIRST = "record a passed run (docs/eval.md, Activation), then"
SWITCH_ON = '`ariane flags set posts_pipeline on --why "..."`'
OVERRIDE = '`ariane flags set posts_pipeline on --override --why "..."`'


class EvaluationRuns(Protocol):
    """The recorded verdicts."""

    async def latest_run(self, signature: str) -> StoredRun | None:
        """The run that counts for this signature (SHA-256 in hex), or None when there is none."""
        ...


class State(StrEnum):
    """How the configuration in use stands to the one that posts_pipeline was switched on under."""

    OFF = "off"
    ACTIVE = "active"
    CHANGED = "changed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Activation:
    """The state; the run that counts for the configuration in use, and for the one it was switched on under."""

    state: State
    own: StoredRun | None = None
    before: StoredRun | None = None
    differences: tuple[str, ...] = ()

    @property
    def overridden(self) -> bool:
        """Whether it is active without a test, by an override."""
        return self.state is State.ACTIVE and self.own is not None and self.own.run.kind is RunKind.OVERRIDE


async def activation(flags: Flags, runs: EvaluationRuns, signature: Signature) -> Activation:
    """How this configuration stands now, by the flags and the recorded runs. Raises what reading them does."""
    own = await runs.latest_run(signature.sha256)
    if not flags.posts_pipeline:
        return Activation(State.OFF, own)
    if own is not None and not own.run.passed:
        return Activation(State.FAILED, own)
    if flags.signature == signature.sha256:
        return Activation(State.ACTIVE if own else State.UNKNOWN, own)
    before = await runs.latest_run(flags.signature) if flags.signature else None
    if before is None or not before.run.passed:
        return Activation(State.UNKNOWN, own, before)
    return Activation(State.CHANGED, own, before, differences(before.run.signature, signature))


def held(activated: Activation, on_change: OnChange) -> bool:
    """Whether answers are computed but not posted: unless active, or changed where the setting keeps them.

    While posts_pipeline is off the legacy path answers: with the same models and prompts, so under the same test.
    """
    if activated.state is State.CHANGED:
        return on_change is not OnChange.KEEP
    if activated.state is State.OFF:
        return activated.own is None or not activated.own.run.passed
    return activated.state is not State.ACTIVE


def told(activated: Activation) -> str:
    """The activation in a sentence for moderators: which test, which change."""
    match activated.state:
        case State.ACTIVE if activated.own:
            return _of(activated.own)
        case State.FAILED if activated.own:
            return f"the test of this configuration failed: {_of(activated.own)}"
        case State.CHANGED if activated.before:
            return f"changed since it was switched on: {listed(activated.differences)} ({_of(activated.before)})"
        case State.UNKNOWN if activated.before:
            return f"changed, and what it was switched on under failed: {_of(activated.before)}"
        case State.UNKNOWN:
            return "posts_pipeline is on under no tested configuration"
        case State.OFF if activated.own:
            return _of(activated.own) if activated.own.run.passed else f"failed: {_of(activated.own)}"
    return "this configuration was never tested"


def mend(activated: Activation) -> str:
    """What makes the configuration in use the active one."""
    tested = activated.own is not None and activated.own.run.passed
    return f"Decide: {SWITCH_ON}." if tested else f"First {TEST_FIRST} {SWITCH_ON}; without a test, {OVERRIDE}."


def missing(
    signature: Signature,
    own: StoredRun | None,
    tested: StoredRun | None,
    *,
    covered_percent: float,
    least_percent: float,
) -> list[str]:
    """What keeps posts_pipeline from being switched on under this configuration; empty when nothing does.

    `own` is the run that counts for it, `tested` the last that passed under any.
    """
    faults = []
    if own is None:
        changed = listed(differences(tested.run.signature, signature)) if tested else ""
        since = f"; changed since the last one: {changed}" if changed else ""
        faults.append(f"this configuration has no passed test{since}: {TEST_FIRST} try again")
    elif not own.run.passed:
        faults.append(f"the last test of this configuration failed ({_of(own)}): mend what it shows and test again")
    if covered_percent < least_percent:
        faults.append(
            f"{covered_percent:.1f} % of the posts are indexed with a vector, activation.least_coverage_percent is"
            f" {least_percent:g}: run `ariane backfill`, or let `ariane worker` embed the rest"
        )
    return faults


def listed(changed: Sequence[str]) -> str:
    """The first differences in one line, and how many more there are."""
    shown, more = ", ".join(changed[:SHOWN_DIFFERENCES]), len(changed) - SHOWN_DIFFERENCES
    return f"{shown} and {more} more" if more > 0 else shown


def _of(stored: StoredRun) -> str:
    run, when = stored.run, f"{stored.recorded_at:%Y-%m-%d}"
    words = {
        RunKind.EVAL: f"evaluated on {run.dataset}",
        RunKind.SIGNED_OFF: "signed off",
        RunKind.OVERRIDE: "override, not tested",
    }
    return f"{words[run.kind]} by {run.by}, {when}: {run.reason}"


class ActivatedFlags:
    """FlagReader that lets answers go on in shadow while the configuration in use isn't the active one."""

    def __init__(
        self,
        flags: FlagReader,
        runs: EvaluationRuns,
        signature: Signature,
        settings: ActivationSettings,
        *,
        others: Mapping[str, Signature] | None = None,
    ) -> None:
        """`others` are the signatures under the values of embedding_profile that change the configuration."""
        self._flags = flags
        self._runs = runs
        self._signature = signature
        self._others = others or {}
        self._settings = settings
        self._told = ""

    async def read(self) -> Flags:
        """The flags as they are in force now: `answering` on is shadow while the activation holds it.

        A change of the activation is logged, as a warning unless it is well; the metric shows every state.
        """
        flags = await self._flags.read()
        signature = self._others.get(flags.embedding_profile, self._signature)
        activated = await activation(flags, self._runs, signature)
        holds = held(activated, self._settings.on_change)
        self._tell(activated, holds)
        if holds and flags.answering is AnsweringMode.ON:
            return replace(flags, answering=AnsweringMode.SHADOW)
        return flags

    def _tell(self, activated: Activation, holds: bool) -> None:
        for state in State:
            ACTIVATION.labels(state).set(state is activated.state)
        words = f"{activated.state}: {told(activated)}"
        if words == self._told:
            return
        self._told = words
        if activated.state in (State.OFF, State.ACTIVE) and not holds:
            log.info("activation", state=activated.state, told=told(activated))
        else:
            answers = "shadow" if holds else "kept"
            log.warning(
                "activation", state=activated.state, told=told(activated), answers=answers, mend=mend(activated)
            )
