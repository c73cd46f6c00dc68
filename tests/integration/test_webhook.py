"""The way in, over real sockets on a real Postgres: discourse.md sections 1 and 2, to the letter."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from psycopg import sql

from service.app import create_app, listen
from service.discourse.events import IGNORED_KINDS, CategoryEventName, MemberEventName, PostEventName, TopicEventName
from service.discourse.feedback import FeedbackName
from service.domain import Category, CategoryId, InboxId
from service.errors import Misconfigured, Transient
from service.settings import Settings, WebSettings
from service.store.inbox import NewDelivery
from service.store.pool import Pool, open_pool
from service.webhook import route
from tests.conftest import new_database
from tests.integration.webhook_kit import (
    MENTION,
    SECOND_SECRET,
    SECRET,
    SETTINGS,
    delivery,
    jobs,
    on_a_socket,
    open_categories,
    post_payload,
    rows,
    service_on,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAIR = ["answer_post", "index_post"]
WRITTEN = ("inbox", "procrastinate_jobs", "departures")
"""The tables that a delivery writes to."""


@dataclass(frozen=True)
class Service:
    """A running web process and its database."""

    client: httpx.AsyncClient
    pool: Pool
    url: str


@asynccontextmanager
async def new_service(server_url: str) -> AsyncIterator[Service]:
    """A service on a database of its own."""
    with new_database(server_url) as url:
        async with open_pool(url) as opened:
            await open_categories(opened)
            async with service_on(opened) as client:
                yield Service(client, opened, url)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(server_url: str, template_url: str) -> AsyncIterator[Service]:
    """The one that most of these tests share: each finds it with nothing delivered."""
    async with new_service(server_url) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def pool(service: Service) -> AsyncIterator[Pool]:
    yield service.pool
    async with service.pool.connection() as conn:
        for table in WRITTEN:
            await conn.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


@pytest.fixture
def client(service: Service, pool: Pool) -> httpx.AsyncClient:
    return service.client


@pytest_asyncio.fixture(loop_scope="module")
async def fresh(server_url: str, template_url: str) -> AsyncIterator[Service]:
    """One for a test that changes the schema."""
    async with new_service(server_url) as running:
        yield running


async def test_the_same_delivery_fifty_times_at_two_services_is_one_row_and_one_pair_of_jobs(
    client: httpx.AsyncClient, pool: Pool, service: Service
) -> None:
    async with open_pool(service.url) as second_pool, service_on(second_pool) as second:
        posts = (each.post(**delivery(post_payload())) for _ in range(25) for each in (client, second))
        answers = await asyncio.gather(*posts)
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json()["status"] for answer in answers) == ["duplicate"] * 49 + ["stored"]
    assert await rows(pool, "SELECT count(*) FROM inbox") == [(1,)]
    assert await jobs(pool) == PAIR


async def test_an_automatic_retry_with_a_new_event_id_is_a_duplicate(client: httpx.AsyncClient, pool: Pool) -> None:
    first = await client.post(**delivery(post_payload(), event_id="1"))
    again = await client.post(**delivery(post_payload(), event_id="2"))
    assert [first.json()["status"], again.json()["status"]] == ["stored", "duplicate"]
    assert await jobs(pool) == PAIR


async def test_jobs_carry_ids_only(client: httpx.AsyncClient, pool: Pool) -> None:
    await client.post(**delivery(post_payload()))
    (inbox_id,) = (await rows(pool, "SELECT inbox_id FROM inbox"))[0]
    assert await rows(pool, "SELECT DISTINCT args FROM procrastinate_jobs") == [({"inbox_id": inbox_id},)]


async def test_snapshots_out_of_order_are_all_kept_with_their_dates(client: httpx.AsyncClient, pool: Pool) -> None:
    for minute in ("05", "03"):
        changed = post_payload(updated_at=f"2024-05-01T10:{minute}:00.000Z")
        assert (await client.post(**delivery(changed, "post_edited"))).json() == {"status": "stored"}
    assert await rows(pool, "SELECT state->>'updated_at' FROM inbox ORDER BY inbox_id") == [
        ("2024-05-01T10:05:00+00:00",),
        ("2024-05-01T10:03:00+00:00",),
    ]
    assert await jobs(pool) == PAIR * 2


@pytest.mark.parametrize("secret", [SECRET, SECOND_SECRET])
async def test_both_secrets_of_a_rotation_are_taken(client: httpx.AsyncClient, secret: str) -> None:
    assert (await client.post(**delivery(post_payload(), secret=secret))).status_code == 200


async def test_a_missing_and_a_wrong_signature_get_the_same_answer(client: httpx.AsyncClient, pool: Pool) -> None:
    wrong = delivery(post_payload(), secret="not-the-secret-at-all")
    missing = delivery(post_payload())
    del missing["headers"]["X-Discourse-Event-Signature"]
    tampered = {**delivery(post_payload()), "content": json.dumps(post_payload(8)).encode()}
    answers = [await client.post(**each) for each in (wrong, missing, tampered)]
    assert {(answer.status_code, answer.text) for answer in answers} == {(403, '{"status":"bad_signature"}')}
    assert await rows(pool, "SELECT FROM inbox") == []


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "", "text/plain"])
async def test_the_content_type_changes_nothing(client: httpx.AsyncClient, pool: Pool, content_type: str) -> None:
    sent = delivery(post_payload(raw="a=b&c=%20d"), **{"Content-Type": content_type})
    assert (await client.post(**sent)).json() == {"status": "stored"}
    assert await jobs(pool) == PAIR


@pytest.mark.parametrize(
    ("payload", "event", "answer"),
    [
        ({"ping": "OK"}, "ping", {"status": "ping"}),
        ({"like": {"post": {}, "user": {}}}, "post_liked", {"status": "ignored"}),
        ({"user": {"id": 1}}, "user_created", {"status": "ignored"}),
        ({"never_heard_of": []}, "never_heard_of", {"status": "ignored"}),
    ],
)
async def test_what_we_have_no_use_for_is_acknowledged(
    client: httpx.AsyncClient, pool: Pool, payload: object, event: str, answer: object
) -> None:
    response = await client.post(**delivery(payload, event))
    assert (response.status_code, response.json()) == (200, answer)
    assert await rows(pool, "SELECT FROM inbox") == []
    assert await jobs(pool) == []


async def test_a_destroyed_account_waits_for_a_worker_to_ask_the_forum(client: httpx.AsyncClient, pool: Pool) -> None:
    gone = {"user": {"id": 7, "username": "ines", "name": "Inès"}}
    assert (await client.post(**delivery(gone, "user_destroyed"))).json() == {"status": "stored"}
    assert await rows(pool, "SELECT user_id, username FROM departures") == [(7, "ines")]
    [(name, args)] = await rows(pool, "SELECT task_name, args FROM procrastinate_jobs")
    assert (name, args) == ("erase_member", {"user_id": 7})


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b'{"post": 5}', b'{"post": {"id": 1}}', b"[" * 5000]
)
async def test_a_malformed_body_is_told_so_in_a_few_words(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post(**delivery(body))
    assert response.status_code == 400
    assert response.json()["status"] == "malformed"
    assert 0 < len(response.json()["reason"]) < 200


async def test_missing_and_extra_keys_are_survived(client: httpx.AsyncClient, pool: Pool) -> None:
    sparse = post_payload(custom_plugin={"a": [1]}, category_id=1)
    for key in ("name", "raw", "reply_to_post_number", "deleted_at", "hidden", "topic_title", "version"):
        del sparse["post"][key]
    assert (await client.post(**delivery(sparse))).json() == {"status": "stored"}
    assert await jobs(pool) == PAIR


@pytest.mark.parametrize(
    ("payload", "event", "expected"),
    [
        ({"topic": {"id": 3, "title": "T"}}, "topic_edited", ["refresh_topic"]),
        (
            {"topic": {"id": 3, "deleted_at": "2024-05-01T10:00:00Z"}},
            "topic_destroyed",
            ["hide_topic", "refresh_topic"],
        ),
        ({"topic": {"id": 3, "category_id": 2}}, "topic_edited", ["hide_topic", "refresh_topic"]),
        ({"topic": {"id": 3, "category_id": 99}}, "topic_edited", ["hide_topic", "refresh_topic"]),
        ({"topic": {"id": 3, "category_id": 1, "visible": True}}, "topic_edited", ["refresh_topic"]),
        ({"topic": {"id": 3, "visible": False}}, "topic_visible_status_updated", ["hide_topic", "refresh_topic"]),
        ({"category": {"id": 2}}, "category_updated", ["refresh_categories"]),
        (
            {"category": {"id": 2, "read_restricted": True}},
            "category_updated",
            ["close_category", "refresh_categories"],
        ),
        (post_payload(deleted_at="2024-05-01T10:00:00Z"), "post_destroyed", ["remove_post"]),
        (post_payload(), "post_recovered", ["refresh_post"]),
    ],
)
async def test_each_event_makes_its_jobs(
    client: httpx.AsyncClient, pool: Pool, payload: object, event: str, expected: list[str]
) -> None:
    assert (await client.post(**delivery(payload, event))).json() == {"status": "stored"}
    assert await jobs(pool) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"topic_archetype": "private_message", "category_id": None}, ["remove_post", "answer_post"]),
        ({"post_type": 4}, ["remove_post", "answer_post"]),
        ({"category_id": 2}, ["remove_post", "answer_post"]),
        ({"category_id": 2, "cooked": "<p>A secret.</p>"}, ["remove_post"]),
        ({"category_id": 99}, PAIR),
        ({"category_id": 99, "cooked": "<p>A secret.</p>"}, ["index_post"]),
        ({"hidden": True}, ["remove_post", "answer_post"]),
        ({"hidden": True, "cooked": "<p>A secret.</p>"}, ["remove_post"]),
    ],
)
async def test_private_text_is_never_kept(
    client: httpx.AsyncClient, pool: Pool, changes: dict[str, Any], expected: list[str]
) -> None:
    assert (await client.post(**delivery(post_payload(**changes)))).json() == {"status": "stored"}
    assert await jobs(pool) == expected
    ((kept,),) = await rows(pool, "SELECT inbox::text FROM inbox")
    assert "radiator" not in kept.lower()
    assert "secret" not in kept


async def test_public_text_is_kept_for_its_jobs(client: httpx.AsyncClient, pool: Pool) -> None:
    await client.post(**delivery(post_payload()))
    assert await rows(pool, "SELECT cooked, waiting FROM inbox") == [(MENTION, PAIR)]


async def raw(client: httpx.AsyncClient, *parts: bytes, pause: float = 0.0) -> bytes:
    """The first bytes answered to a request written by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause)
    answer = await asyncio.wait_for(reader.read(4096), 10)
    writer.close()
    return answer


HEAD = b"POST /webhooks/discourse HTTP/1.1\r\nHost: x\r\n"


async def test_a_body_too_large_is_refused_however_it_is_announced(client: httpx.AsyncClient) -> None:
    large = b"x" * (SETTINGS.webhook.max_body_bytes + 1)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield large[:5000]

    assert (await client.post(**delivery(large))).status_code == 413
    assert (await client.post("/webhooks/discourse", content=chunks())).status_code == 413
    assert b" 413 " in await raw(client, HEAD + b"Content-Length: 99999999999\r\n\r\n{}")


async def test_a_content_length_that_lies_low_gets_nothing_in(client: httpx.AsyncClient, pool: Pool) -> None:
    body = json.dumps(post_payload()).encode()
    signature = delivery(body)["headers"]["X-Discourse-Event-Signature"].encode()
    head = HEAD + b"X-Discourse-Event-Signature: " + signature + b"\r\nContent-Length: 10\r\n\r\n"
    assert b" 403 " in await raw(client, head, body)
    assert await rows(pool, "SELECT FROM inbox") == []


async def test_a_body_that_never_ends_is_not_waited_for(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "READ_SECONDS", 0.2)
    assert b" 408 " in await raw(client, HEAD + b"Content-Length: 100\r\n\r\n{", pause=0.5)


async def test_the_path_never_says_gone(client: httpx.AsyncClient) -> None:
    slashed = {**delivery(post_payload()), "url": "/webhooks/discourse/"}
    assert (await client.post(**slashed)).status_code == 200
    assert (await client.get("/webhooks/discourse")).status_code == 405


async def test_a_stuck_database_is_told_in_time_and_nothing_is_lost(
    client: httpx.AsyncClient, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "STORE_SECONDS", 0.5)
    async with pool.connection() as conn, conn.transaction():
        await conn.execute("LOCK inbox IN ACCESS EXCLUSIVE MODE")
        started = monotonic()
        refused = await client.post(**delivery(post_payload()))
        assert monotonic() - started < 2
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    assert (await client.post(**delivery(post_payload()))).status_code == 200
    assert await rows(pool, "SELECT count(*) FROM inbox") == [(1,)]
    assert await jobs(pool) == PAIR


async def test_a_database_that_is_away_is_told() -> None:
    class Away:
        async def receive(self, received: NewDelivery, defer: object) -> InboxId | None:
            raise Transient("the database can't be reached")

    async def no_categories() -> dict[CategoryId, Category]:
        return {}

    app = FastAPI()
    app.include_router(route.webhook_router(route.Hook((SECRET.encode(),), 9999, "ariane", Away(), no_categories)))
    async with on_a_socket(app) as client:
        refused = await client.post(**delivery(post_payload()))
    assert refused.status_code == 503
    assert "Retry-After" in refused.headers


async def test_a_request_in_flight_ends_before_the_service_does(pool: Pool) -> None:
    async with service_on(pool) as client:
        async with pool.connection() as conn, conn.transaction():
            await conn.execute("LOCK inbox IN ACCESS EXCLUSIVE MODE")
            waiting = asyncio.create_task(client.post(**delivery(post_payload())))
            await asyncio.sleep(0.3)
        answer = await waiting
    assert answer.json() == {"status": "stored"}


async def test_health_pages_and_headers(fresh: Service) -> None:
    client, pool = fresh.client, fresh.pool
    assert (await client.get("/livez")).json() == {"status": "ok"}
    alone = await client.get("/readyz")
    assert (alone.status_code, alone.json()["status"]) == (200, "degraded")
    assert "ariane worker" in alone.json()["checks"]["worker"]
    await rows(pool, "SELECT * FROM procrastinate_register_worker_v1()")
    assert (await client.get("/readyz")).json()["status"] == "ok"
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM schema_migrations WHERE name LIKE '0003%'")
    behind = await client.get("/readyz")
    assert (behind.status_code, behind.json()["status"]) == (503, "unavailable")
    assert "ariane migrate" in behind.json()["checks"]["schema"]
    home = await client.get("/")
    assert "/webhooks/discourse" in home.text
    assert home.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in home.headers["Content-Security-Policy"]
    assert "server" not in home.headers
    assert "ariane_webhook_deliveries_total" in (await client.get("/metrics")).text
    for hidden in ("/docs", "/redoc", "/openapi.json"):
        assert (await client.get(hidden)).status_code == 404


async def test_no_secret_no_service(pool: Pool) -> None:
    with pytest.raises(Misconfigured, match=r"webhook\.secrets"):
        create_app(Settings(), pool)


async def test_a_taken_port_is_told() -> None:
    told = pytest.raises(Misconfigured, match=r"web\.port: cannot listen on 127\.0\.0\.1")
    with listen(WebSettings(port=0)) as taken, told:
        listen(WebSettings(port=taken.getsockname()[1]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["\x00", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
POSTS = st.builds(
    lambda keys, value, dropped: {
        "post": {k: v for k, v in {**post_payload()["post"], **dict.fromkeys(keys, value)}.items() if k not in dropped}
    },
    st.sets(st.sampled_from(sorted(post_payload()["post"])), max_size=2),
    JSON,
    st.sets(st.sampled_from(sorted(post_payload()["post"])), max_size=2),
)
BODIES = (
    st.binary(max_size=50)
    | POSTS
    | st.dictionaries(st.sampled_from(["post", "topic", "category", "ping", "x"]), JSON, max_size=2)
)
NAMES = st.sampled_from(["post_created", "post_edited", "post_destroyed", "topic_edited", "ping", "category_x", ""])


async def test_no_signed_body_breaks_it(pool: Pool) -> None:
    transport = httpx.ASGITransport(create_app(SETTINGS, pool), raise_app_exceptions=False)
    loop = asyncio.get_running_loop()
    client = httpx.AsyncClient(transport=transport, base_url="http://x")

    @settings(max_examples=150)
    @given(BODIES, NAMES, st.text(st.characters(max_codepoint=255), max_size=10))
    def every(body: object, name: str, odd: str) -> None:
        instance = odd.replace("\r", "").replace("\n", "")
        sent = delivery(body, name)
        headers = {**sent["headers"], "X-Discourse-Instance": instance.encode("latin-1")}
        posted = client.post("/webhooks/discourse", content=sent["content"], headers=headers)
        response = asyncio.run_coroutine_threadsafe(posted, loop).result(30)
        assert response.status_code in (200, 400)

    await asyncio.to_thread(every)
    await client.aclose()
    known = {
        *IGNORED_KINDS,
        *PostEventName,
        *TopicEventName,
        *CategoryEventName,
        *MemberEventName,
        *FeedbackName,
        "ping",
        "other",
        "unknown",
    }
    samples = [sample for family in REGISTRY.collect() for sample in family.samples]
    events = {sample.labels["event"] for sample in samples if sample.name == "ariane_webhook_deliveries_total"}
    assert events <= known


async def test_what_nobody_expected_is_answered_and_logged_without_text(
    fresh: Service, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, pool = fresh.client, fresh.pool
    async with pool.connection() as conn:
        await conn.execute("ALTER TABLE inbox ADD CONSTRAINT broken CHECK (cooked IS NULL)")
    response = await client.post(**delivery(post_payload()))
    assert (response.status_code, response.json()) == (503, {"status": "unavailable"})

    def fails(*_: object) -> None:
        raise ZeroDivisionError("nobody expects this\nradiator")

    monkeypatch.setattr(route, "is_signed", fails)
    response = await client.post(**delivery(post_payload()))
    assert (response.status_code, response.json()) == (500, {"status": "error"})
    said = "".join(capfd.readouterr())
    assert "delivery_not_stored" in said
    assert "request_failed" in said
    assert "radiator" not in said.lower()
