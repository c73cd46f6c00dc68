"""The signature of the configuration in use, from the settings and the program's own files; no model is opened."""

from collections.abc import Iterator
from dataclasses import asdict, replace

from service.answer.condense.rules import VERSION as CONDENSER_VERSION
from service.answer.gate.rules import bundled_names, rule_files
from service.answer.messages import wordings
from service.answer.signature import digest, excerpt_rule, sign, template_digest
from service.answer.support.claims import THRESHOLDS
from service.answer.support.claims import VERSION as CHECK_VERSION
from service.answer.templates import template_texts
from service.domain import EmbeddingProfile, RerankerProfile, Signature
from service.inference.bundled_reranker import BIAS, LIST_WEIGHTS, PAIR_WEIGHTS
from service.inference.profile_files import KnownReranker, Profiles, load_profiles
from service.settings import Settings
from service.settings.models import AnswererKind, AnswererSettings, EmbedderSettings, ModelSettings, RerankerKind

_EXCERPTS = {"excerpt_chars", "evidence_chars"}
_NO_WORDS = {"url", "api_key", "concurrency", "deadline_seconds", "prompt_variant"}
"""Settings of a model's server that don't change what it says, and the name of the prompt, whose templates count."""


def configuration(settings: Settings, answering: str = "") -> Signature:
    """The signature of all that decides an answer under these settings, in this version of the program.

    `answering` is what the switch embedding_profile says: the profile of models.embedder unless it names the other's.

    What a test of it is worth ends with any change of it (docs/eval.md, Activation). Raises Misconfigured for an
    unknown profile or variant of the prompt.
    """
    models = settings.models
    profiles = load_profiles(models.profiles_file)
    templates = template_texts(models.answerer.prompt_variant)
    prompts = (
        {}
        if models.answerer.kind is AnswererKind.EXTRACTIVE
        else {name: template_digest(text) for name, text in templates.items()}
    )
    check = {"check": {"version": CHECK_VERSION, **asdict(THRESHOLDS)}} if prompts else {}
    persona = {name: sha256 for name, sha256 in prompts.items() if name.startswith("persona.")}
    return sign(
        {
            "embedder": _embedder(_answering(models, profiles, answering), profiles),
            "index": {"kind": models.index_kind},
            "retrieval": settings.retrieval.model_dump(exclude=_EXCERPTS),
            "excerpt": {"rule": excerpt_rule(), **settings.retrieval.model_dump(include=_EXCERPTS)},
            "condenser": {"version": CONDENSER_VERSION},
            "reranker": _reranker(models, profiles.reranker(models.reranker.profile)),
            "answerer": _answerer(models.answerer),
            **check,
            "persona": persona,
            "prompts": {name: sha256 for name, sha256 in prompts.items() if name not in persona},
            "wording": {lang: digest(wording.model_dump()) for lang, wording in wordings().items()},
            "gate": {"kinds_off": sorted(settings.gate.kinds_off), **dict(_gate_rules(settings.gate.rules_file))},
        }
    )


def embedding_profile(settings: ModelSettings, answering: str = "") -> EmbeddingProfile:
    """The profile that answers, as for `configuration`, and its index; raises Misconfigured for an unknown one."""
    profiles = load_profiles(settings.profiles_file)
    chosen = _answering(settings, profiles, answering)
    return replace(profiles.embedder(chosen.profile).profile, index_kind=settings.index_kind)


def configured_profiles(settings: ModelSettings) -> list[str]:
    """The names of the profiles that posts are embedded under, that of models.embedder first."""
    profiles = load_profiles(settings.profiles_file)
    chosen = [one.profile for one in (settings.embedder, settings.other_embedder) if one.profile]
    return [profiles.embedder(name).profile.name for name in chosen]


def reranker_profile(settings: ModelSettings) -> RerankerProfile:
    """The profile that the configured reranker has; raises Misconfigured for an unknown one."""
    profiles = load_profiles(settings.profiles_file)
    return profiles.reranker(settings.reranker.profile).profile


def _answering(models: ModelSettings, profiles: Profiles, answering: str) -> EmbedderSettings:
    other = models.other_embedder
    if other.profile and answering == profiles.embedder(other.profile).profile.name:
        return other
    return models.embedder


def _embedder(settings: EmbedderSettings, profiles: Profiles) -> dict[str, object]:
    known = profiles.embedder(settings.profile)
    # Of a profile that doesn't split posts, that there is such a thing changes no answer.
    left_out = {"index_kind"} if known.profile.passage_tokens else {"index_kind", "passage_tokens", "overlap_tokens"}
    profile = {name: value for name, value in asdict(known.profile).items() if name not in left_out}
    return {"kind": settings.kind, "profile": profile, "texts": known.texts}


def _reranker(models: ModelSettings, known: KnownReranker) -> dict[str, object]:
    # Whether thresholds were measured changes no answer.
    profile = {name: value for name, value in asdict(known.profile).items() if name != "provisional"}
    bundled = models.reranker.kind is RerankerKind.BUNDLED
    weights = digest([PAIR_WEIGHTS.tolist(), LIST_WEIGHTS.tolist(), BIAS]) if bundled else None
    kind = {"kind": models.reranker.kind, "scores": models.reranker.scores, "weights": weights}
    return {**kind, "profile": profile, "pairs": known.pairs}


def _answerer(settings: AnswererSettings) -> dict[str, object]:
    if settings.kind is AnswererKind.EXTRACTIVE:
        return {"kind": settings.kind}
    return settings.model_dump(exclude=_NO_WORDS)


def _gate_rules(own: str) -> Iterator[tuple[str, str]]:
    """The gate's rules by file, without their examples.

    Those that moderators add meanwhile are not among them: they only decline more, and none is taken that fails the
    examples of these, so a test stays valid (spec A4, service.answer.gate.added).
    """
    for name, file in zip((*bundled_names(), "own"), rule_files(own), strict=False):
        yield name, digest(file.model_dump(exclude={"rules": {"__all__": {"positives", "lookalikes"}}}))
