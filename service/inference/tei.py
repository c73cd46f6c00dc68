"""Talks to text-embeddings-inference 1.6 to 1.9: its pods, its limits, its errors."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from service.errors import Misconfigured, Rejected, Transient
from service.inference.access import Access
from service.inference.batching import BatchRefused, TooLong
from service.inference.breaker import Breaker
from service.inference.pods import Pods, Resolve, resolve_host
from service.inference.turns import Turns
from service.remote import Refused, Remote

DEFAULT_MAX_BATCH = 32
"""TEI's --max-client-batch-size when nobody set it."""
_MAY_BE_THE_TEXT = (400, 413, 422, 424)
_TOO_LONG = "must have less than"
_WRONG_MODEL = "model is not"


@dataclass(frozen=True, slots=True)
class TeiOptions:
    """Where the server is and how it is called; `timeout_seconds` is the deadline of a call, its retries included."""

    base_url: str
    timeout_seconds: float = 10.0
    attempts: int = 3
    retry_base_seconds: float = 0.1
    calls_a_pod: int = 4
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class TeiInfo:
    """What the server says of itself."""

    model: str
    version: str
    max_batch: int
    max_input_tokens: int | None


class TeiServer:
    """One service of TEI pods, all of the same model."""

    def __init__(
        self,
        name: str,
        options: TeiOptions,
        *,
        breaker: Breaker | None = None,
        resolve: Resolve = resolve_host,
        rng: random.Random | None = None,
    ) -> None:
        self.name = name
        self._options = options
        self._url = url = _http_url(options.base_url, name)
        self.turns = Turns(options.calls_a_pod)
        self.access = Access(self.turns, breaker or Breaker(name))
        self._pods = Pods(
            url.hostname or "",
            url.port or (443 if url.scheme == "https" else 80),
            # a certificate names the service, not its pods
            resolve=resolve if url.scheme == "http" else _by_name,
            resized=lambda pods: self.turns.resize(pods * options.calls_a_pod),
        )
        headers = {b"host": url.netloc.rpartition("@")[2].encode()}
        if options.api_key:
            headers[b"authorization"] = f"Bearer {options.api_key}".encode()
        self._remote = Remote(
            options.base_url, name=name, timeout_seconds=options.timeout_seconds, attempts=1, headers=headers
        )
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._info: TeiInfo | None = None

    async def aclose(self) -> None:
        """Close every connection."""
        await self._remote.__aexit__(None, None, None)

    def deadline(self) -> float:
        """When a call that begins now must have ended, on the event loop's clock."""
        return asyncio.get_running_loop().time() + self._options.timeout_seconds

    async def info(self, *, urgent: bool = True) -> TeiInfo:
        """Model, version and limits, asked once (again after a batch was refused); raises as `post` does."""
        if self._info is None:
            found = await self._ask("GET", "/info", None, urgent=urgent, suspect=False, until=None)
            if not isinstance(found, dict):
                raise Transient(f"{self.name}: /info is no object")
            self._info = TeiInfo(
                model=str(found.get("model_id", "")),
                version=str(found.get("version", "")),
                max_batch=_positive(found.get("max_client_batch_size")) or DEFAULT_MAX_BATCH,
                max_input_tokens=_positive(found.get("max_input_length")),
            )
        return self._info

    async def post(
        self, path: str, body: Mapping[str, object], *, urgent: bool, suspect: bool, until: float | None = None
    ) -> object:
        """The JSON answer of one call, which ends by `until` where several share a `deadline`.

        Raises BatchRefused for a batch that is too large or has a text that may be at fault (TooLong when it is its
        length); a failing back end counts as that only where a text is `suspect`. Else Transient or Misconfigured.
        """
        return await self._ask("POST", path, body, urgent=urgent, suspect=suspect, until=until)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None,
        *,
        urgent: bool,
        suspect: bool,
        until: float | None,
    ) -> object:
        end = self.deadline() if until is None else until
        seconds = end - asyncio.get_running_loop().time()
        if seconds <= 0:
            whole = self._options.timeout_seconds
            raise Transient(f"{self.name}: its answers to the calls before took {whole:g} s")
        async with self.access.call(urgent=urgent, timeout_seconds=seconds):
            try:
                return await self._tries(method, path, body, end)
            except Refused as exc:
                raise self._translated(exc, path, suspect=suspect) from exc

    async def _tries(self, method: str, path: str, body: Mapping[str, object] | None, end: float) -> object:
        """Every call may be repeated: a pod that fails rests, and the next one is asked after a short, random wait.

        A pod among others may take half of the deadline, so that a silent one leaves time to ask another.
        """
        for attempt in range(1, self._options.attempts + 1):
            address = await self._pods.pick()
            try:
                return await self._try(address, method, path, body)
            except Transient as exc:
                self._pods.failed(address)
                wait = self._options.retry_base_seconds * 2 ** (attempt - 1) * self._rng.uniform(0.5, 1.5)
                wait = max(wait, exc.retry_after_seconds or 0.0)
                if attempt == self._options.attempts or asyncio.get_running_loop().time() + wait >= end:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _try(self, address: str, method: str, path: str, body: Mapping[str, object] | None) -> object:
        bound = self._options.timeout_seconds / (1 if self._pods.count == 1 else 2)
        try:
            async with asyncio.timeout(bound):
                return await self._remote.json(method, self._at(address) + path, body=body)
        except TimeoutError as exc:
            raise Transient(f"{self.name}: no answer of {address} in {bound:g} s") from exc

    def _at(self, address: str) -> str:
        host = f"[{address}]" if ":" in address else address
        port = f":{self._url.port}" if self._url.port else ""
        return f"{self._url.scheme}://{host}{port}{self._url.path.rstrip('/')}"

    def _translated(self, exc: Refused, path: str, *, suspect: bool) -> Rejected | Transient | Misconfigured:
        said = exc.body.get("error", "") if isinstance(exc.body, dict) else ""
        message = f"{exc} {said}".strip()
        if exc.status == 403:
            return Misconfigured(f"{message}: check the API key")
        if exc.status == 404 or _WRONG_MODEL in str(said):
            return Misconfigured(f"{message}: {self._options.base_url} is no TEI server with a model for {path}")
        if exc.status not in _MAY_BE_THE_TEXT:
            return Rejected(message, status=exc.status)
        if _TOO_LONG in str(said):
            return TooLong(message, status=exc.status)
        if exc.status in {413, 422}:
            self._info = None
        if exc.status == 424 and not suspect:
            return Transient(message)
        return BatchRefused(message, status=exc.status)


def _http_url(address: str, name: str) -> SplitResult:
    try:
        url = urlsplit(address)
        if url.scheme in {"http", "https"} and url.hostname and url.port != 0:
            return url
    except ValueError as exc:  # half an IPv6 address, a port that is no number
        raise Misconfigured(f"{name}: {address!r} is not an http address: {exc}") from exc
    raise Misconfigured(f"{name}: {address!r} is not an http address")


async def _by_name(host: str, _port: int) -> list[str]:
    return [host]


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
