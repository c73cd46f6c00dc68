"""What every response of the web process has: headers that browsers obey, and no text where something failed."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.moderation.place import MOUNT
from service.moderation.site import Headers
from service.telemetry import fault, log

SECURITY_HEADERS: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
)


class Failures:
    """Answers 500 to what nobody expected: the server would log the whole exception, in which Postgres quotes posts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as exc:  # noqa: BLE001 - the last place that could see it
            log.error("request_failed", path=scope.get("path"), **fault(exc))
            if not started:
                await JSONResponse({"status": "error"}, 500)(scope, receive, send)


class SecurityHeaders:
    """Adds the headers to every response that doesn't set them itself; the moderators' pages have their own."""

    def __init__(self, app: ASGIApp, pages: Headers) -> None:
        self._app = app
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        added = self._pages if path == MOUNT or path.startswith(f"{MOUNT}/") else SECURITY_HEADERS

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in added if one[0] not in given)]
            await send(message)

        await self._app(scope, receive, send_with_headers)
