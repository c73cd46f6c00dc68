"""What one running simulator consists of, and how a request reaches it.

Every end point and dependency is a coroutine: the forum has no locks, so nothing may touch it from another thread.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast
from urllib.parse import parse_qsl, quote, unquote

from fastapi import Depends, Request, Response

from service.simulator.forum import Forum
from service.simulator.model import Member
from service.simulator.posting import Desk
from service.simulator.refusals import Refusal
from service.simulator.switches import Switches
from service.simulator.webhooks import Webhooks

MAX_BODY_BYTES = 1_000_000
MEMBER_COOKIE = "simulator_member"


@dataclass(frozen=True, slots=True)
class Room:
    """`api_keys` maps a key to its member's name, or to None for a key that may act as anyone.

    `connect` maps the host of a site that members sign in to with their account here to the secret shared with it.
    """

    forum: Forum
    desk: Desk
    switches: Switches
    webhooks: Webhooks | None
    api_keys: Mapping[str, str | None]
    bot_username: str
    connect: Mapping[str, str] = field(default_factory=dict)


async def room(request: Request) -> Room:
    return cast("Room", request.app.state.room)


Here = Annotated[Room, Depends(room)]


async def sent_values(request: Request) -> dict[str, Any]:
    """The request's fields, from JSON or from a form; raises Refusal for a body that is neither or too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(413, {"errors": ["The request is too large."]})
    if request.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
        try:
            values = json.loads(body)
            json.dumps(values, ensure_ascii=False).encode()  # lone surrogates are no text
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise Refusal(400, {"errors": ["The request is not a JSON object."]})
        return values
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


async def sent_texts(request: Request) -> dict[str, str]:
    """The fields of a form as texts, with line feeds alone; raises Refusal as `sent_values`."""
    return {name: str(value).replace("\r\n", "\n") for name, value in (await sent_values(request)).items()}


def sent_id(text: str) -> int | None:
    """An id as a form sends it; None for any other text."""
    return int(text) if text.isdecimal() and len(text) < 10 else None


def current_member(request: Request, here: Room) -> Member | None:
    """Whom the person in the browser chose to be: in this very form, else earlier."""
    chosen: Member | None = getattr(request.state, "member", None)
    if chosen is not None:
        return chosen
    name = request.cookies.get(MEMBER_COOKIE)
    return here.forum.member(unquote(name)) if name else None


def remember(response: Response, here: Room, member: Member | None) -> Response:
    """Let the browser be this member from now on, or nobody."""
    path = here.forum.base_path or "/"
    if member is None:
        response.delete_cookie(MEMBER_COOKIE, path=path)
    else:
        response.set_cookie(MEMBER_COOKIE, quote(member.username), path=path, httponly=True, samesite="strict")
    return response


def people(here: Room) -> list[Member]:
    """Whom the person in the browser can choose to be."""
    return [m for m in here.forum.members.values() if not m.bot and m.username != here.bot_username and m.id > 0]
