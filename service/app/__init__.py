"""The web process: the webhook, health, metrics and a page that says what this is."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import uvicorn
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from service.app.readiness import Status, readiness
from service.app.responses import SECURITY_HEADERS, Failures, SecurityHeaders
from service.errors import Misconfigured
from service.moderation.desk import Desk
from service.moderation.place import MOUNT
from service.moderation.site import moderation_app, page_headers
from service.settings import Settings, WebSettings
from service.store.corpus import CorpusStore
from service.store.inbox import InboxStore
from service.store.pool import Pool
from service.webhook.categories import cached
from service.webhook.route import Hook, webhook_router

BACKLOG = 2048

GRACE_SECONDS = 10
"""Longest wait for requests in flight at a stop; none of ours takes half of it."""


def create_app(settings: Settings, pool: Pool, *, desk: Desk | None = None) -> FastAPI:
    """The web application on an open pool, with the moderators' pages where their `desk` is given.

    Raises Misconfigured without a webhook secret: nothing unsigned gets in.
    """
    secrets = tuple(secret.get_secret_value().encode() for secret in settings.webhook.secrets)
    if not secrets:
        raise Misconfigured(
            "webhook.secrets: empty, so no delivery could be trusted; set the secret of the forum's webhook there "
            "or in ARIANE_WEBHOOK__SECRETS"
        )
    hook = Hook(
        secrets=secrets,
        max_body_bytes=settings.webhook.max_body_bytes,
        bot_username=settings.forum.bot_username,
        inbox=InboxStore(pool),
        categories=cached(CorpusStore(pool).categories),
    )
    app = FastAPI(title="Ariane", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.add_middleware(Failures)
    app.add_middleware(SecurityHeaders, pages=page_headers(desk) if desk else SECURITY_HEADERS)
    app.include_router(webhook_router(hook))
    _add_pages(app, settings, pool)
    if desk:
        _add_moderation(app, desk)
    return app


def _add_moderation(app: FastAPI, desk: Desk) -> None:
    app.mount(MOUNT, moderation_app(desk))

    @app.get(MOUNT, include_in_schema=False)
    async def first_page() -> RedirectResponse:
        return RedirectResponse(f"{desk.site.root}/", 303)


def _add_pages(app: FastAPI, settings: Settings, pool: Pool) -> None:
    page = _HOME.format(forum=escape(settings.forum.base_url), bot=escape(settings.forum.bot_username))

    @app.get("/", include_in_schema=False)
    async def home() -> HTMLResponse:
        return HTMLResponse(page)

    @app.get("/livez")
    async def livez() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        status, checks = await readiness(pool, silent_seconds=settings.worker.stalled_after_seconds)
        return JSONResponse({"status": status, "checks": checks}, 503 if status is Status.UNAVAILABLE else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def listen(settings: WebSettings) -> socket.socket:
    """A socket bound to the configured address; raises Misconfigured when it is taken or not ours."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio turns Nagle's algorithm off: else an answer in two writes waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(BACKLOG)
        return listening
    except OSError as exc:
        listening.close()
        where = f"{settings.host}:{settings.port}"
        raise Misconfigured(f"web.port: cannot listen on {where} ({exc.strerror}); set another web.port") from exc


async def serve(app: FastAPI, listening: socket.socket, *, stop: asyncio.Event) -> None:
    """Answer requests on this socket until `stop` is set, then let those in flight end; the socket is closed."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)
    with listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """Leaves signals to service.stop: uvicorn would raise them again before the pool is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


_HOME = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Ariane</title>
<h1>Ariane</h1>
<p>This is the service behind <b>@{bot}</b>, a bot that answers mentions on
<a href="{forum}">{forum}</a> with the forum's own threads.</p>
<p>The forum's webhook goes to <code>/webhooks/discourse</code> on this address. Health: <a href="/livez">/livez</a>,
<a href="/readyz">/readyz</a>. Metrics: <a href="/metrics">/metrics</a>.</p>
</html>
"""
