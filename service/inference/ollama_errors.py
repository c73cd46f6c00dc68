"""The `ollama` client with bounds, and every way a call through it fails, translated in one place and timed."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import httpx
import ollama

from service.body import MAX_ANSWER_BYTES, encoding_of
from service.errors import ArianeError, Busy, Misconfigured, Rejected, Transient, kind_of
from service.remote import trusted_certificates
from service.telemetry import REMOTE_SECONDS

KEEP_ALIVE = -1
"""For ever: a model that the server put away takes seconds to come back."""

FOREIGN = (
    ollama.ResponseError,
    httpx.HTTPError,
    httpx.InvalidURL,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What the client raises: its own error; httpx's; the builtin ConnectionError; and for a body that is no JSON, or JSON
of another shape or depth, whatever came of reading it (pydantic's ValidationError is a ValueError)."""


class _Bounded(httpx.AsyncByteStream):
    """A body that breaks off where no honest one ends."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._stream:
            length += len(chunk)
            if length > MAX_ANSWER_BYTES:
                raise httpx.DecodingError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx.Response) -> None:
    """Let the client read a bounded body in UTF-8: an encoding nobody asked for may unpack to any size."""
    if encoding := encoding_of(response):
        raise httpx.DecodingError(f"the encoding {encoding[:40]!r} was not asked for")
    response.headers.pop("content-type", None)  # it may name whatever codec Python has
    response.stream = _Bounded(cast("httpx.AsyncByteStream", response.stream))  # an async client's


def ollama_client(base_url: str, *, timeout_seconds: float) -> ollama.AsyncClient:
    """A client whose every read has a timeout (its own default is none) and whose every answer is bounded.

    Raises Misconfigured on a bad address.
    """
    try:
        return ollama.AsyncClient(
            host=base_url,
            timeout=timeout_seconds,
            follow_redirects=False,
            headers={"accept-encoding": "identity"},
            verify=trusted_certificates(),
            event_hooks={"response": [_bound]},
        )
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
        result = kind_of(ours)
        raise ours from exc
    except ArianeError as exc:
        result = kind_of(exc)
        raise
    finally:
        REMOTE_SECONDS.labels(server, result).observe(time.perf_counter() - start)
