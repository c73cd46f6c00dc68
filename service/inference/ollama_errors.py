"""Every way a call through the `ollama` client fails, translated in one place, and timed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import ollama

from service.errors import ArianeError, Busy, Misconfigured, Rejected, Transient
from service.telemetry import REMOTE_SECONDS

FOREIGN = (ollama.ResponseError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, TypeError, AttributeError)
"""What the client raises: its own error; httpx's; the builtin ConnectionError; and for a body that is no JSON, or JSON
of another shape, whatever came of reading it (pydantic's ValidationError is a ValueError)."""


def ollama_client(base_url: str, *, timeout_seconds: float) -> ollama.AsyncClient:
    """A client whose every read has a timeout (its own default is none); raises Misconfigured on a bad address."""
    try:
        return ollama.AsyncClient(host=base_url, timeout=timeout_seconds, follow_redirects=False)
    except (ValueError, httpx.InvalidURL) as exc:
        raise Misconfigured(f"{base_url!r} is not Ollama's address: {exc}") from exc


@dataclass(frozen=True, slots=True)
class Failure:
    """What the server answered: its status, None when there was none, and its words."""

    status: int | None
    said: str


def failure_of(exc: BaseException) -> Failure:
    """The answer behind a foreign error."""
    if isinstance(exc, ollama.ResponseError):
        return Failure(exc.status_code if exc.status_code > 0 else None, str(exc.error))
    # an error body that is JSON but no object: the client trips over it while it builds its own error
    answered = exc.__context__
    if isinstance(answered, httpx.HTTPStatusError):
        return Failure(answered.response.status_code, answered.response.text[:200])
    return Failure(None, f"{type(exc).__name__}: {exc}"[:300])


def translated(exc: BaseException, server: str, model: str) -> ArianeError:
    """Our error for a foreign one."""
    failed = failure_of(exc)
    status, said = failed.status, failed.said
    reason = f"{server}: {said}" if status is None else f"{server} answered {status}: {said}"
    if status == 404 or (status is None and "not found" in said and isinstance(exc, ollama.ResponseError)):
        if "model" in said:
            return Misconfigured(f"{reason}; get it with: ollama pull {model}")
        return Misconfigured(f"{reason}; is this an Ollama server?")
    if status in {401, 403} or (status is not None and 300 <= status < 400) or isinstance(exc, httpx.InvalidURL):
        return Misconfigured(reason)
    if status in {429, 503}:
        return Busy(reason)
    if status is not None and 400 <= status < 500 and status != 408:
        return Rejected(reason, status=status)
    return Transient(reason)


@contextmanager
def ollama_errors(server: str, model: str) -> Iterator[None]:
    """Around one call: foreign errors come out as ours."""
    start, result = time.perf_counter(), "cancelled"
    try:
        yield
        result = "ok"
    except FOREIGN as exc:
        ours = translated(exc, server, model)
        result = type(ours).__name__.lower()
        raise ours from exc
    except ArianeError as exc:
        result = type(exc).__name__.lower()
        raise
    finally:
        REMOTE_SECONDS.labels(server, result).observe(time.perf_counter() - start)
