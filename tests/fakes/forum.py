"""The REST calls of Discourse that our client makes, in memory, with switches to misbehave."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from starlette.types import Receive, Scope, Send

Json = dict[str, Any]
Fault = Callable[[Scope, Receive, Send], Awaitable[None]]

KEY = "the-key-of-the-bot"
BOT = "ariane"
CHUNK = 20


def answer(status: int, body: object, **headers: str) -> Fault:
    """An answer with this status: JSON for an object or a list, else the text or bytes as they are."""
    if isinstance(body, dict | list):
        content, kind = json.dumps(body).encode(), "application/json; charset=utf-8"
    else:
        content, kind = (body if isinstance(body, bytes) else str(body).encode()), "text/html; charset=utf-8"
    named = {"content-type": kind, "content-length": str(len(content))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }

    async def send_it(scope: Scope, receive: Receive, send: Send) -> None:
        raw = [(name.encode(), value.encode()) for name, value in named.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": content})

    return send_it


def refusal(status: int, kind: str = "not_found", text: str = "La ressource demandée est introuvable.") -> Fault:
    return answer(status, {"errors": [text], "error_type": kind})


async def hangs(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(60)


async def drips(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    while True:
        await send({"type": "http.response.body", "body": b" ", "more_body": True})
        await asyncio.sleep(0.02)


async def truncates(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
    await send({"type": "http.response.body", "body": b'{"id": 1, "cooked": "<p>', "more_body": True})
    raise ConnectionAbortedError("the fake cuts the connection")


async def floods(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    for _ in range(1_000):
        await send({"type": "http.response.body", "body": b'"' + b"x" * 100_000, "more_body": True})
    await send({"type": "http.response.body", "body": b'"'})


LOGIN_PAGE = answer(200, "<!DOCTYPE html><html><head><title>Log in</title></head><body><form></form></body></html>")
GARBAGE = answer(200, b'{"id": 1,, NaN \xff')
ELSEWHERE = answer(301, "", location="https://elsewhere.example/posts/1.json")


@dataclass
class FakeForum:
    """A forum in Discourse's shapes. `faults` take the next requests, one each; `then` acts after a post was stored."""

    topics: dict[int, Json] = field(default_factory=dict)
    posts: dict[int, Json] = field(default_factory=dict)
    categories: list[Json] = field(default_factory=list)
    users: dict[str, Json] = field(default_factory=dict)
    private_topics: set[int] = field(default_factory=set)
    faults: deque[Fault] = field(default_factory=deque)
    then: Fault | None = None
    enqueues: bool = False
    login_required: bool = False
    lazy_categories: bool = False
    loses_replies: bool = False
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and Api-Username of each request."""

    def add_topic(self, topic_id: int, **more: object) -> Json:
        topic = {"id": topic_id, "title": f"Topic {topic_id}", "slug": f"topic-{topic_id}", "archetype": "regular"}
        states = {"visible": True, "closed": False, "archived": False, "deleted_at": None, "category_id": 4}
        self.topics[topic_id] = topic | states | {"tags": [{"id": 1, "name": "heat", "slug": "heat"}]} | more
        return self.topics[topic_id]

    def add_post(
        self, post_id: int, topic_id: int, *, by: str = "zoe", reply_to: int | None = None, **more: object
    ) -> Json:
        number = 1 + max(
            (post["post_number"] for post in self.posts.values() if post["topic_id"] == topic_id), default=0
        )
        date = "2026-01-02T13:58:49.606Z"
        self.posts[post_id] = {
            "id": post_id,
            "topic_id": topic_id,
            "post_number": number,
            "post_type": 1,
            "user_id": 7 if by == BOT else 5,
            "username": by,
            "name": "",
            "cooked": f"<p>Post {post_id}</p>",
            "created_at": date,
            "updated_at": date,
            "reply_to_post_number": reply_to,
            "hidden": False,
            "deleted_at": None,
            "user_deleted": False,
            **more,
        }
        return self.posts[post_id]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        key, username = headers.get("api-key"), headers.get("api-username")
        path = unquote(scope["raw_path"].decode())
        self.seen.append((scope["method"], path, username))
        content = b""
        while (message := await receive())["type"] == "http.request":
            content += message.get("body", b"")
            if not message.get("more_body"):
                break
        if self.faults:
            await self.faults.popleft()(scope, receive, send)
            return
        if (key, username) not in ((None, None), (KEY, BOT)):
            await refusal(403, "invalid_access")(scope, receive, send)
        elif key is None and self.login_required:
            await refusal(403, "not_logged_in")(scope, receive, send)
        elif scope["method"] == "POST":
            await self._create(json.loads(content), scope, receive, send)
        else:
            query = parse_qs(scope["query_string"].decode())
            await self._read(path.removesuffix(".json").strip("/").split("/"), query)(scope, receive, send)

    def _read(self, path: list[str], query: dict[str, list[str]]) -> Fault:
        match path:
            case ["posts", number] if int(number) in self._seen_posts():
                return answer(200, self.posts[int(number)])
            case ["posts", number, "replies"] if int(number) in self._seen_posts():
                post, after = self.posts[int(number)], int(query["after"][0])
                replies = [] if self.loses_replies else self._of_topic(post["topic_id"])
                answering = [r for r in replies if r["reply_to_post_number"] == post["post_number"]]
                return answer(200, [r for r in answering if r["post_number"] > after][:CHUNK])
            case ["t", number] if int(number) in self.topics and int(number) not in self.private_topics:
                posts = self._of_topic(int(number))
                stream = {"posts": posts[:CHUNK], "stream": [post["id"] for post in posts]}
                return answer(200, self.topics[int(number)] | {"post_stream": stream})
            case ["t", number, "posts"] if int(number) in self.topics:
                wanted = {int(post_id) for post_id in query["post_ids[]"]}
                posts = [post for post in self._of_topic(int(number)) if post["id"] in wanted]
                return answer(200, {"post_stream": {"posts": posts[:CHUNK]}, "id": int(number)})
            case ["site"]:
                return answer(200, {"categories": [] if self.lazy_categories else self.categories})
            case ["categories"]:
                page = self._nested()[int(query["page"][0]) - 1 :][:1]
                return answer(200, {"category_list": {"can_create_topic": False, "categories": page}})
            case ["u", name] if name.lower() in self.users:
                return answer(200, {"user_badges": [], "user": self.users[name.lower()]})
            case _:
                return refusal(403 if path[1:] and path[1].isdecimal() and int(path[1]) in self.private_topics else 404)

    def _seen_posts(self) -> set[int]:
        return {post_id for post_id, post in self.posts.items() if post["topic_id"] not in self.private_topics}

    def _nested(self) -> list[Json]:
        nested: dict[int | None, list[Json]] = {}
        for category in self.categories:
            shown = {key: value for key, value in category.items() if key != "parent_category_id"}
            nested.setdefault(category.get("parent_category_id"), []).append(shown)
        return [top | {"subcategory_list": nested.get(top["id"])} for top in nested.get(None, [])]

    def _of_topic(self, topic_id: int) -> list[Json]:
        found = [post for post in self.posts.values() if post["topic_id"] == topic_id]
        return sorted(found, key=lambda post: int(post["post_number"]))

    async def _create(self, body: Json, scope: Scope, receive: Receive, send: Send) -> None:
        if self.enqueues:
            await answer(200, {"success": True, "action": "enqueued", "pending_count": 1})(scope, receive, send)
            return
        made = self.add_post(
            1 + max(self.posts, default=0),
            body["topic_id"],
            by=BOT,
            reply_to=body["reply_to_post_number"],
            raw=body["raw"],
        )
        await (self.then or answer(200, made))(scope, receive, send)
