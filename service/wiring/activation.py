"""Turning the switches under the configuration in use, and how that one stands."""

from service.answer.activation import OVERRIDE, ActivatedFlags, Activation, activation, missing
from service.domain import EmbeddingProfile, EvaluationRun, RunKind, UserId
from service.errors import Rejected
from service.settings import Settings
from service.store.corpus import CorpusStore
from service.store.evaluations import EvaluationStore
from service.store.flag_names import DEFAULT, EMBEDDING_PROFILE, check
from service.store.flags import PIPELINE, FlagStore
from service.store.pool import Pool
from service.wiring.configuration import configuration, configured_profiles, embedding_profile

MAX_REASON_CHARS = 500


def activated_flags(pool: Pool, settings: Settings) -> ActivatedFlags:
    """The switches as they are in force under these settings, whose signatures are made here, once."""
    others = {name: configuration(settings, name) for name in configured_profiles(settings.models)[1:]}
    signature = configuration(settings)
    return ActivatedFlags(FlagStore(pool), EvaluationStore(pool), signature, settings.activation, others=others)


async def present_activation(pool: Pool, settings: Settings) -> Activation:
    """How the configuration of these settings stands now."""
    flags = await FlagStore(pool).read()
    return await activation(flags, EvaluationStore(pool), configuration(settings, flags.embedding_profile))


async def covered_percent(pool: Pool, profile: EmbeddingProfile) -> float:
    """How many of 100 indexed posts have a vector of this profile; 0 of an empty index."""
    census = await CorpusStore(pool).census(profile)
    embedded = census.indexed - census.left_to_embed - census.unembeddable
    return 100 * embedded / census.indexed if census.indexed else 0.0


async def turn(
    pool: Pool,
    settings: Settings,
    name: str,
    value: str,
    *,
    by: str,
    reason: str,
    user_id: UserId | None = None,
    override: bool = False,
) -> None:
    """Turn a switch under these settings, whoever asks and however: the one way for people to do it.

    Raises Rejected (422) for a switch or value that can't be and without a reason, (409) with what posts_pipeline or
    the profile that is to answer lacks.
    """
    _check_reason(reason)
    if (name, value) == (PIPELINE, "on"):
        await switch_on(pool, settings, by=by, reason=reason, user_id=user_id, override=override)
    else:
        if name == EMBEDDING_PROFILE:
            await _may_answer(pool, settings, value)
        await FlagStore(pool).set(name, value, by=by, reason=reason, user_id=user_id)


async def sign_off(pool: Pool, settings: Settings, tried: str, *, passed: bool, by: str, reason: str) -> None:
    """Record what a person makes of a real test, by the signature that was tried: a verdict like any test's.

    Raises Rejected (422) without a reason, (409) where that configuration is no more the one in use.
    """
    _check_reason(reason)
    signature = configuration(settings, (await FlagStore(pool).read()).embedding_profile)
    if tried != signature.sha256:
        raise Rejected("the configuration has changed since this was answered: try it once more", status=409)
    await EvaluationStore(pool).record_run(EvaluationRun(signature, RunKind.SIGNED_OFF, passed, by, reason))


def _check_reason(reason: str) -> None:
    if not reason.strip() or len(reason) > MAX_REASON_CHARS:
        raise Rejected(f"a reason is kept with every change: 1 to {MAX_REASON_CHARS} characters", status=422)


async def _may_answer(pool: Pool, settings: Settings, value: str) -> None:
    """Raise Rejected unless the profile that would answer is configured and covers the index."""
    check(EMBEDDING_PROFILE, value)
    names = configured_profiles(settings.models)
    wanted = names[0] if value == DEFAULT else value
    if wanted not in names:
        raise Rejected(
            f"no embedder of {wanted} is configured, but of {', '.join(names)}: set models.other_embedder", status=409
        )
    covered = await covered_percent(pool, embedding_profile(settings.models, wanted))
    least = settings.activation.least_coverage_percent
    if covered < least:
        raise Rejected(
            f"{covered:.1f} % of the posts have a vector of {wanted}, activation.least_coverage_percent is {least:g}:"
            " let `ariane worker` embed the rest",
            status=409,
        )


async def switch_on(
    pool: Pool,
    settings: Settings,
    *,
    by: str,
    reason: str,
    user_id: UserId | None = None,
    override: bool = False,
) -> None:
    """Turn posts_pipeline on under these settings; raises Rejected (409) with all that is missing, and what to do.

    With `override` nothing is needed: the override, who and why are recorded as a run.
    """
    answering = (await FlagStore(pool).read()).embedding_profile
    signature = configuration(settings, answering)
    runs = EvaluationStore(pool)
    covered = await covered_percent(pool, embedding_profile(settings.models, answering))
    if override:
        figures = {"covered_percent": covered}
        await runs.record_run(EvaluationRun(signature, RunKind.OVERRIDE, True, by, reason, figures=figures))
    else:
        least = settings.activation.least_coverage_percent
        own, tested = await runs.latest_run(signature.sha256), await runs.latest_passed()
        if faults := missing(signature, own, tested, covered_percent=covered, least_percent=least):
            said = "; ".join(faults)
            raise Rejected(f"posts_pipeline stays as it is: {said}. To do it all the same: {OVERRIDE}", status=409)
    await FlagStore(pool).set(PIPELINE, "on", by=by, reason=reason, signature=signature.sha256, user_id=user_id)
