"""Puts the pages together: one application to be mounted, closed to all who are not signed in."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from service.domain import ENGLISH
from service.errors import ArianeError, Rejected
from service.moderation import sign_in
from service.moderation.access import API, SAFE, NotSignedIn, own_form, own_origin, signed_in
from service.moderation.desk import Desk
from service.moderation.layout import Entry, page, path_of, words_of
from service.moderation.pages import decide, flags, gate, home, metrics, try_it, unanswered
from service.moderation.refusals import Refusal
from service.telemetry import fault, log

PAGES: tuple[tuple[Entry, APIRouter], ...] = (
    (Entry("home", "/"), home.router),
    (Entry("answers", "/answers"), decide.router),
    (Entry("unanswered", "/unanswered"), unanswered.router),
    (Entry("try", "/try"), try_it.router),
    (Entry("gate", "/gate"), gate.router),
    (Entry("flags", "/flags"), flags.router),
    (Entry("metrics", "/metrics"), metrics.router),
)
"""The navigation in its order, each line with the routes behind it."""

APIS: tuple[APIRouter, ...] = (flags.api,)
"""What scripts and programs call, under /api/, with the session of a moderator."""

Headers = tuple[tuple[bytes, bytes], ...]


def moderation_app(desk: Desk) -> FastAPI:
    """The pages as one application; every route of PAGES and APIS needs a session, and a changing one its token too."""
    app = FastAPI(title="Ariane", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.desk = desk
    app.state.nav = tuple(entry for entry, _ in PAGES)
    guards = [Depends(own_origin), Depends(signed_in), Depends(own_form)]
    for router in (*(router for _, router in PAGES), *APIS):
        app.include_router(router, dependencies=guards)
    app.include_router(sign_in.router)
    app.include_router(sign_in.out)
    app.mount("/static", _Static(directory=Path(__file__).parent / "static"), name="static")
    app.add_exception_handler(NotSignedIn, _sign_in_first)
    app.add_exception_handler(ArianeError, _failed)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _unknown)
    return app


class _Static(StaticFiles):
    """Files that a browser keeps, and asks each time whether they are still the same."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def page_headers(desk: Desk) -> Headers:
    """The headers of every page; a form may lead to the forum, since signing out there does."""
    forum = urlsplit(desk.settings.forum.base_url)
    policy = (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        f"form-action 'self' {forum.scheme}://{forum.netloc}; frame-ancestors 'none'; base-uri 'none'"
    )
    return (
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers hide a form's Origin from ourselves
        (b"cache-control", b"no-store"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"content-security-policy", policy.encode("ascii", "ignore")),
    )


async def _sign_in_first(request: Request, exc: Exception) -> Response:
    path = path_of(request)
    if path.startswith(API):
        return JSONResponse({"error": "sign in first"}, 401)
    query = f"?{request.url.query}" if request.url.query else ""
    asked = f"{path}{query}" if request.method in SAFE else "/"
    desk: Desk = request.app.state.desk
    return RedirectResponse(f"{desk.site.root}/sign-in?{urlencode({'next': asked})}", sign_in.SEE_OTHER)


async def _failed(request: Request, exc: Exception) -> Response:
    status = exc.status if isinstance(exc, Rejected) else 503
    if status >= 500:
        log.error("page_failed", path=path_of(request), **fault(exc))
    if isinstance(exc, Refusal) and not path_of(request).startswith(API):
        desk: Desk = request.app.state.desk
        words = words_of(request, desk.settings.forum.language)
        return _error(request, status, exc.said(words), words.lang)
    outside = getattr(request.state, "session", None) is None  # who isn't signed in learns nothing of our servers
    return _error(request, status, "" if outside and status >= 500 else str(exc))


async def _unreadable(request: Request, exc: Exception) -> Response:
    return _error(request, 422, "")


async def _unknown(request: Request, exc: Exception) -> Response:
    return _error(request, exc.status_code if isinstance(exc, HTTPException) else 500, "")


def _error(request: Request, status: int, said: str, said_in: str = ENGLISH) -> Response:
    if path_of(request).startswith(API):
        return JSONResponse({"error": said or "the request can't be answered"}, status)
    return page(
        request, "error.html", title="common.error_title", status=status, code=status, said=said, said_in=said_in
    )
