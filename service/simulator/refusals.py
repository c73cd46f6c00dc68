"""How the forum says no: Discourse's statuses and bodies (docs/discourse, section 5)."""

import math
from collections.abc import Mapping
from typing import Any


class Refusal(Exception):
    """A request that the forum declines; the REST routes and the pages turn it into an answer."""

    def __init__(self, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status}: {body['errors'][0]}")
        self.status = status
        self.body = body
        self.headers = dict(headers or {})

    @property
    def message(self) -> str:
        return " ".join(self.body["errors"])


def not_found() -> Refusal:
    text = "The requested URL or resource could not be found."
    return Refusal(404, {"errors": [text], "error_type": "not_found"})


def forbidden() -> Refusal:
    text = "You are not permitted to view the requested resource."
    return Refusal(403, {"errors": [text], "error_type": "invalid_access"})


def invalid_key() -> Refusal:
    text = "You are not permitted to view the requested resource. The API username or key is invalid."
    return Refusal(403, {"errors": [text], "error_type": "invalid_access"})


def not_logged_in() -> Refusal:
    return Refusal(403, {"errors": ["You need to be logged in to do that."], "error_type": "not_logged_in"})


def missing(parameter: str) -> Refusal:
    text = f"param is missing or the value is empty: {parameter}"
    return Refusal(400, {"errors": [text]})


def unprocessable(*errors: str) -> Refusal:
    return Refusal(422, {"action": "create_post", "errors": list(errors)})


def too_many(wait_seconds: float) -> Refusal:
    seconds = max(1, math.ceil(wait_seconds))
    text = f"You’ve performed this action too many times, please try again in {seconds} seconds."
    extras = {"wait_seconds": seconds, "time_left": f"{seconds} seconds"}
    body = {"errors": [text], "error_type": "rate_limit", "extras": extras}
    return Refusal(429, body, {"Retry-After": str(seconds)})
