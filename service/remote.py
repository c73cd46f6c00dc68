"""Calls to other servers over HTTP: bounded in time and size, retried where that is safe, their errors translated."""

import asyncio
import json
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from time import perf_counter
from types import TracebackType
from typing import NoReturn, Self

import httpx
import stamina

from service.body import ACCEPTED, MAX_ANSWER_BYTES, first_bytes
from service.errors import ArianeError, Busy, Misconfigured, Rejected, Transient, Unsure
from service.telemetry import REMOTE_SECONDS

MAX_WAIT_SECONDS = 5.0
"""Longest wait between two tries of one call; where a server asks for more, the job is tried again later."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_NEVER_SENDABLE = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_RESULTS = {Rejected: "rejected", Unsure: "unsure", Transient: "transient", Misconfigured: "misconfigured"}

Params = Mapping[str, str | int | list[int]]


class Refused(Rejected):
    """A server's refusal; `body` is the JSON it gave as a reason, None when it gave none."""

    def __init__(self, message: str, *, status: int, body: object) -> None:
        super().__init__(message, status=status)
        self.body = body


class _Again(Transient):
    """Worth another try at once: nothing has been done, or doing it twice does no harm."""


class Remote:
    """One server that we call, over one pool of connections; `name` is its label in metrics and messages."""

    def __init__(
        self, base_url: str, *, name: str, timeout_seconds: float, attempts: int, headers: Mapping[bytes, bytes]
    ) -> None:
        """`timeout_seconds` bounds each of at most `attempts` tries, from the connection to the answer's last byte."""
        self.name = name
        self.answered: bool | None = None
        """Whether the last call got an answer, be it a refusal; None before the first."""
        self._timeout_seconds = timeout_seconds
        self._retry = stamina.AsyncRetryingCaller(
            attempts=attempts,
            timeout=attempts * timeout_seconds,
            wait_initial=0.2,
            wait_max=MAX_WAIT_SECONDS,
            wait_jitter=0.5,
        ).on(_again)
        try:
            self._client = httpx.AsyncClient(
                base_url=base_url,
                headers={b"accept-encoding": ACCEPTED.encode(), **headers},
                timeout=timeout_seconds,
                follow_redirects=False,
                verify=trusted_certificates(),
            )
        except httpx.InvalidURL as exc:
            raise Misconfigured(f"{name}: {base_url!r} is not an address: {exc}") from exc

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def json(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, object] | None = None,
        repeatable: bool = True,
    ) -> object:
        """The JSON value of a 2xx answer; None of an empty one to a deletion.

        A call that is not `repeatable` is tried again only when it surely wasn't carried out: no connection, 429 or
        503. Raises Transient (slow, busy, broken or gone), Unsure instead when a call that is not repeatable may have
        been carried out, Refused with the server's status, Misconfigured (no such address, redirected, 401).
        """

        async def attempt() -> object:  # no arguments: the hooks of a retry log them
            return await self._measured(method, path, params, body, repeatable)

        return await self._retry(attempt)

    async def _measured(
        self, method: str, path: str, params: Params | None, body: Mapping[str, object] | None, repeatable: bool
    ) -> object:
        start, result = perf_counter(), "cancelled"
        try:
            response, content = await self._exchange(method, path, params, body, repeatable)
            value = self._value(response, content, repeatable)
            result = "ok"
            return value
        except ArianeError as exc:
            result = next(word for kind, word in _RESULTS.items() if isinstance(exc, kind))
            raise
        finally:
            if result != "cancelled":
                self.answered = result in ("ok", "rejected")
            REMOTE_SECONDS.labels(self.name, result).observe(perf_counter() - start)

    async def _exchange(
        self, method: str, path: str, params: Params | None, body: Mapping[str, object] | None, repeatable: bool
    ) -> tuple[httpx.Response, bytes]:
        """Send the request and read the answer, at most MAX_ANSWER_BYTES and one more byte of it."""
        try:
            # httpx bounds each read, not their sum: a slow drip would hold us for ever.
            async with (
                asyncio.timeout(self._timeout_seconds),
                self._client.stream(method, path, params=params, json=body) as response,
            ):
                return response, await first_bytes(response)
        except _NOT_SENT as exc:
            raise _Again(f"{self.name}: can't be reached: {type(exc).__name__}") from exc
        except _NEVER_SENDABLE as exc:
            raise Misconfigured(f"{self.name}: the request can't be sent: {type(exc).__name__}") from exc
        except (TimeoutError, httpx.TransportError, httpx.DecodingError) as exc:
            reason = f"{self.name}: {method} {path} got no whole answer: {type(exc).__name__}"
            raise _Again(reason) if repeatable else Unsure(reason) from exc

    def _value(self, response: httpx.Response, content: bytes, repeatable: bool) -> object:
        """The answer's JSON, or the error that it means."""
        status = response.status_code
        reason = f"{self.name}: {response.request.method} {response.request.url.path} was answered {status}"
        if response.is_success and len(content) > MAX_ANSWER_BYTES:
            self._broken(f"{reason} with more than {MAX_ANSWER_BYTES} bytes", repeatable)
        if response.is_success and not content and response.request.method == "DELETE":
            return None  # as Discourse answers a deletion
        if response.is_success:
            try:
                return parse_json(content)
            except ValueError:
                self._broken(f"{reason} with something other than JSON", repeatable)
        if response.is_redirect or status == 401:
            place = response.headers.get("location", "")[:200]
            raise Misconfigured(f"{reason} {place}".rstrip())
        wish = retry_after_seconds(response.headers.get("retry-after"), datetime.now(UTC))
        if status == 429:
            raise Busy(reason, retry_after_seconds=wish)
        if status in (408, 503) or (status in (502, 504) and repeatable):
            raise _Again(reason, retry_after_seconds=wish)
        if status >= 500:
            self._broken(reason, repeatable, wish)
        try:
            refusal = parse_json(content[:MAX_ANSWER_BYTES])
        except ValueError:
            refusal = None
        raise Refused(reason, status=status, body=refusal)

    def _broken(self, reason: str, repeatable: bool, wish: float | None = None) -> NoReturn:
        raise (Transient if repeatable else Unsure)(reason, retry_after_seconds=wish)


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates that are trusted, read once: it takes 0.1 s."""
    return httpx.create_ssl_context()


def parse_json(content: bytes) -> object:
    """The JSON value of UTF-8 text; raises ValueError for anything else, NaN, Infinity and endless nesting included."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_not_json)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """What a Retry-After header asks for (RFC 9110, 10.2.3: seconds or a date); never negative, None if neither."""
    if header is None:
        return None
    if _SECONDS.fullmatch(header.strip()):
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


def _again(exc: Exception) -> bool | float:
    """Whether to try again, and after how many seconds where the server said so."""
    if not isinstance(exc, (_Again, Busy)):
        return False
    wish = exc.retry_after_seconds
    if wish is None:
        return True
    return max(wish, 0.1) if wish <= MAX_WAIT_SECONDS else False


def _not_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
