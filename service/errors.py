"""The errors Ariane raises on purpose; adapters translate every foreign error into one of them.

ArianeError
├── Rejected        what we were given is wrong, and trying again changes nothing
├── Transient       a server we need is slow, busy or gone: try again later
│   ├── Busy        it lives, but is full
│   └── Unsure      the request may have taken effect: look before trying again
└── Misconfigured   a person must act: a setting, a key or a schema is wrong
"""


class ArianeError(Exception):
    """The root: anything else that escapes is a bug."""


class Rejected(ArianeError):
    """What we were given is wrong; `status` is the HTTP status that says so (400, 403, 413, 422, ...)."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Transient(ArianeError):
    """A server is slow, busy or gone; `retry_after_seconds` is its own wish, if it gave one."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Busy(Transient):
    """The server, or our own queue before it, is full: it lives, so no breaker opens for it."""


class Unsure(Transient):
    """The answer to a request was lost after it was sent: it may have taken effect."""


class Misconfigured(ArianeError):
    """A person must act; the message says what to do."""


def kind_of(exc: ArianeError) -> str:
    """The word for an error in metrics: its class above, or the nearest one."""
    for kind in (Busy, Unsure, Transient, Rejected, Misconfigured):
        if isinstance(exc, kind):
            return kind.__name__.lower()
    return "error"
