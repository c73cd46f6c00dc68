"""Signing in elsewhere with the forum's account: DiscourseConnect, with the forum as the provider of identities."""

import base64
import binascii
import hashlib
import hmac
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from service.simulator.control import local_only
from service.simulator.model import Member
from service.simulator.pages import render
from service.simulator.room import Here, Room, current_member, people, remember

router = APIRouter(prefix="/session", dependencies=[Depends(local_only)], include_in_schema=False)


def groups_of(member: Member) -> list[str]:
    """The automatic groups of a member, which Discourse fills by itself."""
    ranks = [name for name, holds in (("admins", member.admin), ("moderators", member.moderator)) if holds]
    return [*ranks, *(["staff"] if ranks else []), *(f"trust_level_{level}" for level in range(member.trust_level + 1))]


@router.get("/sso_provider")
async def provide(request: Request, here: Here, sso: str = "", sig: str = "") -> Response:
    """Tell the asking site who is signed in here; whoever isn't first chooses who he is (there are no passwords)."""
    fields = _fields(sso)
    back = fields.get("return_sso_url", "")
    if not back:
        return PlainTextResponse("There was a problem with the sign-in: return_sso_url is missing.", 422)
    secret = here.connect.get(urlsplit(back).hostname or "")
    if not secret:
        return PlainTextResponse("discourse_connect_provider_secrets has no secret for this site.", 400)
    if not hmac.compare_digest(_sign(secret, sso).encode(), sig.encode("utf-8", "replace")):
        return PlainTextResponse("There was a problem with the sign-in: its signature is wrong.", 422)
    if fields.get("logout") == "true":
        return remember(RedirectResponse(back, 302), here, None)
    member = _chosen(request, here)
    if member is None:
        names = [m.username for m in sorted(people(here), key=lambda m: (not m.staff, m.username.casefold()))]
        links = {name: urlencode({"sso": sso, "sig": sig, "as": name}) for name in names}
        return render("connect.html", request, here, site=urlsplit(back).netloc, links=links)
    answer = base64.b64encode(urlencode(fields | _said_of(member)).encode()).decode()
    joint = "&" if "?" in back else "?"
    response = RedirectResponse(f"{back}{joint}{urlencode({'sso': answer, 'sig': _sign(secret, answer)})}", 302)
    return remember(response, here, member) if "as" in request.query_params else response


def _said_of(member: Member) -> dict[str, str]:
    return {
        "external_id": str(member.id),
        "username": member.username,
        "name": member.name or "",
        "email": f"member{member.id}@forum.invalid",
        "admin": str(member.admin).lower(),
        "moderator": str(member.moderator).lower(),
        "groups": ",".join(groups_of(member)),
    }


def _chosen(request: Request, here: Room) -> Member | None:
    name = request.query_params.get("as")
    return current_member(request, here) if name is None else here.forum.member(name)


def _fields(sso: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(base64.b64decode(sso).decode()))
    except (binascii.Error, ValueError):
        return {}


def _sign(secret: str, payload: str) -> str:
    return hmac.new(secret.encode(), payload.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
