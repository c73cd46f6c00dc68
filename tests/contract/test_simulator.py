"""The simulator's REST answers against Discourse's published contract, and its webhooks against captured ones."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from service.simulator.forum import Author
from service.simulator.model import Change, Event
from service.simulator.payloads import payload
from tests.shared import SHARED, needs_shared
from tests.simulated import ADMIN_KEY, BOT_HEADERS, Clock, browser, simulator, tiny_forum

ADMIN = {"Api-Key": ADMIN_KEY, "Api-Username": "boss"}
PLUGIN_KEYS = {"accepted_answer"}
"""Keys of the "solved" plugin: real forums have them, the contract of the core doesn't."""
EXTRA_KEYS = {"reply_to_user", "flair_group_id", "mentioned_users", "action_code", "topics"}
"""Keys of the core that the contract's examples happen not to show in some places."""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(simulator(tiny_forum(tmp_path), Clock())) as made:
        yield made


def _contract(path: str, method: str) -> Any:
    contract = json.loads((SHARED / "contracts" / "discourse-openapi.json").read_text(encoding="utf-8"))
    schema = contract["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    return _mend(schema)


def _mend(schema: Any) -> Any:
    """The contract was made from examples: reply numbers were null in all of them, list images never."""
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        if isinstance(properties, dict) and isinstance(properties.get("reply_to_post_number"), dict):
            properties["reply_to_post_number"] = {"type": ["integer", "null"]}
        if isinstance(properties, dict) and isinstance(properties.get("image_url"), dict):
            properties["image_url"] = {"type": ["string", "null"]}
        for value in schema.values():
            _mend(value)
    elif isinstance(schema, list):
        for value in schema:
            _mend(value)
    return schema


def _core(value: Any, schema: Any) -> Any:
    """The answer without what plugins and newer versions add where the contract is closed."""
    if isinstance(value, dict) and isinstance(schema, dict):
        known = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False
        dropped = PLUGIN_KEYS | EXTRA_KEYS if closed else set()
        if value.get("hidden") is True and "raw" in known:
            value = {"raw": "", **value}  # a flagged post's text is withheld, which no example shows
        return {k: _core(v, known.get(k, {})) for k, v in value.items() if k in known or k not in dropped}
    if isinstance(value, list) and isinstance(schema, dict):
        return [_core(v, schema.get("items", {})) for v in value]
    return value


def _without_required(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _without_required(v) for k, v in schema.items() if k != "required"}
    return schema


CALLS = [
    ("/posts/{id}.json", "/posts/2.json"),
    ("/posts.json", "/posts.json"),
    ("/posts/{id}/replies.json", "/posts/1/replies.json"),
    ("/t/{id}.json", "/t/10.json"),
    ("/t/{id}/posts.json", "/t/10/posts.json?post_ids[]=1&post_ids[]=2"),
    ("/latest.json", "/latest.json"),
    ("/categories.json", "/categories.json"),
    ("/notifications.json", "/notifications.json"),
    ("/search.json", "/search.json?q=radiator"),
]


@needs_shared
@pytest.mark.parametrize(("path", "url"), CALLS)
@pytest.mark.parametrize("headers", [{}, BOT_HEADERS, ADMIN], ids=["anonymous", "bot", "staff"])
async def test_reads_obey_the_contract(client: httpx.AsyncClient, path: str, url: str, headers: dict[str, str]) -> None:
    raw = "Good question about radiators, @ariane"
    await client.post("/posts.json", json={"raw": raw, "topic_id": 10, "reply_to_post_number": 1}, headers=ADMIN)
    answer = await client.get(url, headers=headers)
    if path == "/notifications.json" and not headers:
        assert answer.status_code == 403
        return
    assert answer.status_code == 200
    schema = _contract(path, "get")
    jsonschema.validate(_core(answer.json(), schema), schema)


@needs_shared
@pytest.mark.parametrize(("path", "url"), [("/site.json", "/site.json"), ("/u/{username}.json", "/u/alice.json")])
async def test_what_is_given_of_site_and_member_obeys_the_contract(
    client: httpx.AsyncClient, path: str, url: str
) -> None:
    # The contract's own examples are an administrator's; anonymous readers get a part of those keys.
    schema = _without_required(_contract(path, "get"))
    jsonschema.validate((await client.get(url)).json(), schema)


@needs_shared
async def test_a_created_post_obeys_the_contract(client: httpx.AsyncClient) -> None:
    draft = {"raw": "Turn the key a quarter only.", "topic_id": 10, "reply_to_post_number": 1}
    answer = await client.post("/posts.json", json=draft, headers=BOT_HEADERS)
    assert answer.status_code == 200
    schema = _contract("/posts.json", "post")
    jsonschema.validate(_core(answer.json(), schema), schema)


def _keys(value: Any) -> Any:
    return {k: _keys(v) for k, v in value.items()} if isinstance(value, dict) else None


IN_PLUGINS = {
    "thumbnails",
    "vote_count",
    "user_voted",
    "can_vote",
    "discourse_zendesk_plugin_zendesk_id",
    "discourse_zendesk_plugin_zendesk_url",
}


@needs_shared
@pytest.mark.parametrize(
    ("capture", "event", "object_id"),
    [
        ("post_created", Event.POST_CREATED, 1),
        ("post_edited", Event.POST_EDITED, 1),
        ("topic_edited", Event.TOPIC_EDITED, 10),
        ("topic_destroyed", Event.TOPIC_DESTROYED, 10),
        ("notification_created_mentioned", Event.NOTIFICATION_CREATED, 1),
        ("ping", Event.PING, 0),
    ],
)
def test_payloads_have_the_keys_of_captured_ones(tmp_path: Path, capture: str, event: Event, object_id: int) -> None:
    forum = tiny_forum(tmp_path)
    boss = forum.member("boss")
    assert boss
    forum.create_post(Author(boss, Clock()()), topic_id=10, raw="What do you think, @ariane?")
    captured = json.loads((SHARED / "data" / "webhooks" / f"{capture}.json").read_text(encoding="utf-8"))["body"]
    ours = _keys(payload(forum, Change(event, object_id)))
    theirs = _keys(captured)
    kind = event.kind
    if kind == "ping":
        assert payload(forum, Change(event, object_id)) == captured
        return
    assert set(ours) == set(theirs) == {kind}
    assert set(theirs[kind]) - set(ours[kind]) <= IN_PLUGINS
    assert set(ours[kind]) - set(theirs[kind]) <= {"reply_to_user", "flair_group_id"}
