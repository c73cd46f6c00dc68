"""Who may open a page, and what a changing request must bring: a session, our own origin and the session's token."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from service.errors import Rejected
from service.moderation.desk import Desk, Here
from service.moderation.refusals import Refusal
from service.store.sessions import Person

SESSION_COOKIE = "ariane_session"
CSRF_FIELD = "csrf"
CSRF_HEADER = "x-csrf-token"
MAX_BODY_BYTES = 300_000
READ_SECONDS = 10.0
"""Longest wait for a whole body, which whoever isn't signed in may send too."""
MAX_FIELDS = 200
SAFE = frozenset({"GET", "HEAD"})
API = "/api/"


class NotSignedIn(Exception):
    """The request has no session: its page is shown after a sign-in."""


@dataclass(frozen=True, slots=True)
class Session:
    """A moderator or administrator of the forum, signed in."""

    person: Person
    secret: str

    @property
    def csrf(self) -> str:
        """The token that every form of this session holds; it tells nothing of the cookie it is made from."""
        return hmac.new(self.secret.encode(), b"csrf", hashlib.sha256).hexdigest()


async def session_of(request: Request, here: Desk) -> Session | None:
    """The session of this request's cookie, looked up once; None without a valid one."""
    if not hasattr(request.state, "session"):
        secret = request.cookies.get(SESSION_COOKIE, "")
        person = await here.sessions.present(secret, life=here.life, now=here.clock()) if secret else None
        request.state.session = None if person is None else Session(person, secret)
    return cast("Session | None", request.state.session)


async def signed_in(request: Request, here: Here) -> Session:
    """The session of this request; raises NotSignedIn without one."""
    session = await session_of(request, here)
    if session is None:
        raise NotSignedIn
    return session


Moderator = Annotated[Session, Depends(signed_in)]


async def own_origin(request: Request, here: Here) -> None:
    """Refuse a changing request that a page of another site sent, or whose sender can't be told."""
    if request.method not in SAFE and request.headers.get("origin") != here.site.origin:
        raise Refusal("sign_in.other_site", status=403)


async def own_form(request: Request, session: Moderator) -> None:
    """Refuse a changing request without the token of its session, in the form's `csrf` or in X-CSRF-Token."""
    if request.method in SAFE:
        return
    given = request.headers.get(CSRF_HEADER) or (await form(request)).get(CSRF_FIELD, "")
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), session.csrf.encode()):
        raise Refusal("sign_in.other_session", status=403)


async def _body(request: Request) -> bytes:
    if not hasattr(request.state, "sent"):
        body = bytearray()
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > MAX_BODY_BYTES:
                        raise Refusal("sign_in.too_large", status=413, bytes=MAX_BODY_BYTES)
        except (TimeoutError, ClientDisconnect) as exc:
            raise Refusal("sign_in.too_slow", status=408) from exc
        request.state.sent = bytes(body)
    return cast("bytes", request.state.sent)


async def form(request: Request) -> Mapping[str, str]:
    """The fields of a form; the last of several with one name, and none of a body that is no form."""
    if _kind(request) != "application/x-www-form-urlencoded":
        return {}
    try:
        text = (await _body(request)).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError as exc:
        raise Refusal("sign_in.unreadable", status=400) from exc


async def sent_json(request: Request) -> Mapping[str, Any]:
    """The object that a JSON request holds; raises Rejected for anything else."""
    if _kind(request) != "application/json":
        raise Rejected("expected application/json", status=415)
    try:
        value = json.loads(await _body(request))
    except (ValueError, RecursionError) as exc:
        raise Rejected("the body is no JSON") from exc
    if not isinstance(value, dict):
        raise Rejected("the body is no JSON object")
    return value


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


Form = Annotated[Mapping[str, str], Depends(form)]
SentJson = Annotated[Mapping[str, Any], Depends(sent_json)]
