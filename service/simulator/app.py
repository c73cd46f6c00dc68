"""Builds the simulator: a small forum with Discourse's REST, webhooks and pages, as one ASGI application."""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.base import RequestResponseEndpoint
from starlette.staticfiles import StaticFiles

from service.simulator import compose, connect, console, control, feedback, images, pages, rest, rest_write
from service.simulator.forum import Forum
from service.simulator.limits import Limits
from service.simulator.misbehave import Misbehave
from service.simulator.posting import Desk
from service.simulator.refusals import Refusal, not_found
from service.simulator.room import Room
from service.simulator.switches import Switches
from service.simulator.webhooks import Hook, Webhooks

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def now_utc() -> datetime:
    return datetime.now(UTC)


def create_simulator(
    forum: Forum,
    *,
    hook: Hook | None = None,
    api_keys: Mapping[str, str | None] | None = None,
    bot_username: str = "ariane",
    limits: Limits | None = None,
    clock: Callable[[], datetime] = now_utc,
    rng: random.Random | None = None,
    webhook_client: httpx.AsyncClient | None = None,
    connect_secrets: Mapping[str, str] | None = None,
) -> FastAPI:
    """A running forum around `forum` (at its `base_url`, subfolder included); its parts are in `app.state.room`.

    `api_keys` maps a key to the member it is bound to, or to None for a key that may act as anyone. `hook` gets every
    change; `webhook_client` sends the deliveries (an ASGITransport in tests). `connect_secrets` maps the host of a site
    that members may sign in to with their account here to the secret shared with it.
    """
    switches = Switches()
    webhooks = None
    if hook is not None:
        rng = rng or random.Random()  # noqa: S311 - it only shuffles deliveries
        webhooks = Webhooks(forum, hook, switches, clock=clock, rng=rng, client=webhook_client)
        forum.listeners.append(webhooks.on_changes)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        if webhooks:
            await webhooks.close()

    app = FastAPI(title=forum.title, lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.room = Room(
        forum,
        Desk(forum, limits or Limits(), clock),
        switches,
        webhooks,
        dict(api_keys or {}),
        bot_username,
        dict(connect_secrets or {}),
    )
    for part in (rest, rest_write, control, feedback, console, images, compose, connect, pages):
        app.include_router(part.router, prefix=forum.base_path)
    static = StaticFiles(directory=Path(__file__).parent / "static")
    app.mount(f"{forum.base_path}/simulator-static", static, name="static")
    app.add_api_route(f"{forum.base_path}/srv/status", lambda: PlainTextResponse("ok"), response_model=None)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _unknown)
    app.add_exception_handler(HTTPException, _unknown)
    app.middleware("http")(_harden)
    app.add_middleware(Misbehave, switches=switches, base_path=forum.base_path)
    return app


async def _harden(request: Request, call_next: RequestResponseEndpoint) -> Response:
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = CSP
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def _refused(request: Request, exc: Exception) -> Response:
    if not isinstance(exc, Refusal):
        raise exc
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.endswith(".json")
    if wants_page:
        return pages.render("error.html", request, request.app.state.room, status=exc.status, message=exc.message)
    return JSONResponse(exc.body, exc.status, exc.headers)


def _unknown(request: Request, exc: Exception) -> Response:
    return _refused(request, not_found())
