"""Answers a moderator's trial as it would be answered now, with all its steps, and posts nothing."""

from datetime import UTC, datetime

from service.answer.gate.admit import Gating, admitted
from service.answer.gate.match import decide
from service.answer.pipeline import answer
from service.domain import Answer, Lang, Question, Trace
from service.errors import ArianeError
from service.store.trials import Asked, TrialResult, TrialStore
from service.telemetry import log
from service.wiring.configuration import configuration
from service.wiring.services import Services


async def try_question(trial_id: int, services: Services) -> None:
    """Answer a trial once and keep what it came to, or why it can't be answered: whoever asked waits for either."""
    store = TrialStore(services.pool)
    asked = await store.begin(trial_id)
    if asked is None:
        return
    try:
        result = await _tried(trial_id, asked, services)
    except ArianeError as exc:
        log.warning("trial_failed", trial_id=trial_id, error=str(exc))
        await store.failed(trial_id, str(exc), now=_now())
    except Exception as exc:
        await store.failed(trial_id, type(exc).__name__, now=_now())
        raise
    else:
        await store.done(trial_id, result, now=_now())


async def _tried(trial_id: int, asked: Asked, services: Services) -> TrialResult:
    stages, default = await services.embedders.applied(services.stages), Lang(services.settings.forum.language)
    lang = Lang(asked.lang) if asked.lang else stages.detect_language(asked.question, fallback=default)
    trace = Trace(asked=asked.question, lang=lang)
    rules, flags = await services.gate.read(), await services.flags.read()
    found = decide(rules, asked.question)
    question = Question(asked.question, lang)
    passed = await admitted(
        question, Gating(rules, ()) if flags.input_gate else None, stages.condenser, trace, seed=trial_id
    )
    answered = passed if isinstance(passed, Answer) else await answer(passed, stages, trace, seed=trial_id)
    return TrialResult(
        answered.result,
        answered.markdown,
        answered.cited,
        flags.input_gate,
        f"{found.kind}:{found.rule}" if found else "",
        trace,
        configuration(services.settings, flags.embedding_profile).sha256,
    )


def _now() -> datetime:
    return datetime.now(UTC)
