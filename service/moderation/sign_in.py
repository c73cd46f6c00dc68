"""Signing in by the forum or by a set-up link, and out again; nothing here needs a session."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service.discourse.connect import read_identity, request_url
from service.moderation.access import SESSION_COOKIE, Form, own_form, own_origin, session_of
from service.moderation.desk import Desk, Here
from service.moderation.layout import page
from service.moderation.refusals import Refusal
from service.store.sessions import SIGN_IN_MINUTES, Person, SignIn
from service.telemetry import log

BROWSER_COOKIE = "ariane_sign_in"
MAX_NEXT_CHARS = 500
SEE_OTHER = 303
router = APIRouter(prefix="/sign-in", dependencies=[Depends(own_origin)])
Asked = Annotated[str, Query(alias="next")]


def safe_next(path: str) -> str:
    """A path of the pages, to be put behind their root; the first page for whatever isn't one."""
    plain = path.isascii() and path.isprintable() and "\\" not in path and " " not in path
    inside = path.startswith("/") and not path.startswith(("//", "/sign-in", "/api/"))
    return path if plain and inside and len(path) <= MAX_NEXT_CHARS else "/"


@router.get("")
async def sign_in(request: Request, here: Here, asked: Asked = "/") -> HTMLResponse:
    """Ask for a sign-in, or say what must be set up before there can be one."""
    start = f"{here.site.root}/sign-in/start?{urlencode({'next': safe_next(asked)})}"
    return page(
        request,
        "sign_in.html",
        title="sign_in.title",
        status=200 if here.secret else 503,
        start=start if here.secret else "",
        host=here.site.origin.partition("//")[2],
    )


@router.get("/start")
async def start(here: Here, asked: Asked = "/") -> Response:
    """Send the browser to the forum, which asks who it is."""
    if not here.secret:
        return RedirectResponse(f"{here.site.root}/sign-in", SEE_OTHER)
    begun = await here.sessions.begin(safe_next(asked), now=here.clock())
    to = request_url(here.settings.forum.base_url, here.secret, nonce=begun.nonce, return_url=here.site.return_url)
    response = RedirectResponse(to, SEE_OTHER)
    _set_cookie(response, BROWSER_COOKIE, begun.browser, here, max_age=SIGN_IN_MINUTES * 60)
    return response


@router.get("/return")
async def come_back(request: Request, here: Here, sso: str = "", sig: str = "") -> Response:
    """Let in whom the forum sends back with its signature, once, in the browser that left, if he is staff there."""
    if not sso and not sig:  # back from signing out at the forum
        return RedirectResponse(f"{here.site.root}/sign-in", SEE_OTHER)
    said = read_identity(sso, sig, here.secret, return_url=here.site.return_url)
    browser = request.cookies.get(BROWSER_COOKIE, "")
    next_path = await here.sessions.take(SignIn(said.nonce, browser), now=here.clock())
    if next_path is None:
        log.warning("sign_in_refused", why="unknown, used or too old", user_id=said.user_id)
        raise Refusal("sign_in.used", status=403)
    if not (said.admin or said.moderator):
        log.warning("sign_in_refused", why="no moderator", user_id=said.user_id)
        raise Refusal("sign_in.not_staff", status=403)
    person = Person(said.username, said.user_id, said.admin, said.moderator, said.groups)
    return await _let_in(request, here, person, next_path)


@router.get("/link")
async def link(request: Request, token: str = "") -> HTMLResponse:
    """Ask before a set-up link is used up: programs that preview links must not do it."""
    return page(request, "link.html", title="sign_in.link_title", token=token)


@router.post("/link")
async def use_link(request: Request, here: Here, form: Form) -> Response:
    """Let in whoever holds a set-up link, once."""
    made_by = await here.sessions.take_link(form.get("token", ""), now=here.clock())
    if made_by is None:
        raise Refusal("sign_in.link_used", status=403)
    return await _let_in(request, here, Person(made_by, None, admin=False, moderator=True), "/")


out = APIRouter(prefix="/sign-out", dependencies=[Depends(own_origin)])


@out.get("")
async def ask_out(request: Request, here: Here) -> HTMLResponse:
    """Ask where to sign out, or say that it is done."""
    await session_of(request, here)
    return page(request, "sign_out.html", title="sign_in.out_title")


@out.post("", dependencies=[Depends(own_form)])
async def sign_out(request: Request, here: Here, form: Form) -> Response:
    """End the session; with the field `forum`, the one at the forum too."""
    if session := await session_of(request, here):
        await here.sessions.close(session.secret)
    to = f"{here.site.root}/sign-in"
    if form.get("forum") and here.secret:
        begun = await here.sessions.begin("/", now=here.clock())
        base_url = here.settings.forum.base_url
        to = request_url(base_url, here.secret, nonce=begun.nonce, return_url=here.site.return_url, logout=True)
    response = RedirectResponse(to, SEE_OTHER)
    response.delete_cookie(SESSION_COOKIE, path=here.site.root)
    return response


async def _let_in(request: Request, here: Desk, person: Person, next_path: str) -> Response:
    """Open a new session in this browser, in place of the one it may have had."""
    await here.sessions.close(request.cookies.get(SESSION_COOKIE, ""))
    session = await here.sessions.open(person, life=here.life, now=here.clock())
    log.info("signed_in", user_id=person.user_id, admin=person.admin)
    response = RedirectResponse(f"{here.site.root}{safe_next(next_path)}", SEE_OTHER)
    _set_cookie(response, SESSION_COOKIE, session, here, max_age=int(here.life.absolute.total_seconds()))
    response.delete_cookie(BROWSER_COOKIE, path=here.site.root)
    return response


def _set_cookie(response: Response, name: str, value: str, here: Desk, *, max_age: int) -> None:
    response.set_cookie(
        name,
        value,
        max_age=max_age,
        path=here.site.root,
        secure=here.site.secure,
        httponly=True,
        samesite="lax",
    )
