"""Calls to a forum's REST API: without a key as an anonymous reader, with it as the bot."""

from asyncio import sleep
from collections.abc import Awaitable
from types import TracebackType
from typing import Self

from service.discourse.budget import Budget
from service.discourse.shapes import Fields, fields_of
from service.errors import Misconfigured, Transient
from service.remote import Params, Refused, Remote

UNSEEN = (403, 404, 410)
"""How the forum says that a reader doesn't see something."""
MAX_PATIENT_WAITS = 3
MAX_PATIENT_WAIT_SECONDS = 60.0


class ForumCalls:
    """The two ways to speak to one forum; every refusal raised here is in the forum's own words."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str,
        bot_username: str,
        timeout_seconds: float,
        attempts: int,
        budget: Budget | None = None,
    ) -> None:
        """Within a `budget` each request waits for its turn; the tries of one request count as one."""
        if not api_key.isascii() or not (api_key == "" or api_key.isprintable()):
            raise Misconfigured("forum.api_key: has characters that no key has")
        both = {b"accept": b"application/json", b"user-agent": b"Ariane"}
        key = {b"api-key": api_key.encode(), b"api-username": bot_username.encode()}
        self._has_key = api_key != ""
        self._budget = budget
        self._anonymous = Remote(
            base_url, name="forum", timeout_seconds=timeout_seconds, attempts=attempts, headers=both
        )
        self._as_bot = Remote(
            base_url, name="forum_as_bot", timeout_seconds=timeout_seconds, attempts=attempts, headers=both | key
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._anonymous.__aexit__(kind, exc, trace)
        await self._as_bot.__aexit__(kind, exc, trace)

    @property
    def has_key(self) -> bool:
        """Whether the bot can act at all."""
        return self._has_key

    @property
    def up(self) -> bool | None:
        """Whether the forum answered the last call each way; None before the first."""
        answered = {self._anonymous.answered, self._as_bot.answered} - {None}
        return all(answered) if answered else None

    async def public(self, path: str, params: Params | None = None) -> Fields | None:
        """The object that an anonymous reader gets, None where the forum shows him nothing."""
        await self._turn()
        try:
            return fields_of(await _in_its_own_words(self._anonymous.json("GET", path, params=params)), "forum")
        except Refused as exc:
            if exc.status in UNSEEN:
                return None
            raise

    async def patiently(self, path: str, params: Params | None = None) -> Fields | None:
        """`public` for one of many reads in a row: waits where the forum asks for it, else they could never all pass.

        Anonymous readers have 50 requests in 10 s and 200 a minute (docs/discourse, section 8).
        """
        for _ in range(MAX_PATIENT_WAITS):
            try:
                return await self.public(path, params)
            except Transient as exc:
                if exc.retry_after_seconds is None or exc.retry_after_seconds > MAX_PATIENT_WAIT_SECONDS:
                    raise
                await sleep(exc.retry_after_seconds)
        return await self.public(path, params)

    async def as_bot(
        self, method: str, path: str, params: Params | None = None, *, body: Fields | None = None
    ) -> object:
        """What the bot gets; raises Misconfigured when the forum refuses its key rather than the deed."""
        if not self._has_key:
            raise Misconfigured("forum.api_key is not set: the bot can't act on the forum without it")
        await self._turn()
        call = self._as_bot.json(method, path, params=params, body=body, repeatable=method == "GET")
        try:
            return await _in_its_own_words(call)
        except Refused as exc:
            if exc.status == 403:
                await self._check_key()
            raise

    async def _turn(self) -> None:
        if self._budget is not None:
            await self._budget.turn()

    async def _check_key(self) -> None:
        """Both a refused key and a refused deed are 403, but every good key may read what the public reads."""
        await self._turn()
        try:
            await _in_its_own_words(self._as_bot.json("GET", "site.json"))
        except Refused as exc:
            if exc.status == 403:
                raise Misconfigured("the forum refuses forum.api_key, or doesn't let it read") from exc


async def _in_its_own_words(call: Awaitable[object]) -> object:
    """The answer to a call; a refusal without Discourse's JSON is a proxy's or a firewall's, and Transient.

    Taken for the forum's, a wrong 404 would empty the index.
    """
    try:
        return await call
    except Refused as exc:
        if isinstance(exc.body, dict) and "errors" in exc.body:
            raise
        raise Transient(f"{exc}, not by the forum itself") from exc
