"""Every way a server can fail us, over a real socket, and what each means to the caller."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from service.errors import Misconfigured, Rejected, Transient, Unsure
from service.remote import MAX_WAIT_SECONDS, Refused, Remote, parse_json, retry_after_seconds
from tests.fakes import forum as fake
from tests.fakes.forum import FakeForum, Fault, answer
from tests.fakes.serving import Stage, refusing_address

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TIMEOUT_SECONDS = 0.15


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture
async def server(stage: tuple[Stage, str]) -> AsyncIterator[tuple[FakeForum, Remote]]:
    forum = FakeForum()
    forum.add_topic(1)
    forum.add_post(1, 1)
    stage[0].on = forum
    async with remote(stage[1]) as calls:
        yield forum, calls


Server = tuple[FakeForum, Remote]


def remote(url: str, *, attempts: int = 3, timeout_seconds: float = TIMEOUT_SECONDS) -> Remote:
    return Remote(url, name="test", timeout_seconds=timeout_seconds, attempts=attempts, headers={b"x-it": b"is us"})


def raises(kind: type[Exception]) -> AbstractContextManager[pytest.ExceptionInfo[Exception]]:
    """Exactly this class of error, or the module's own kind of it."""
    return pytest.raises(kind, check=lambda exc: kind is Unsure or not isinstance(exc, Unsure))


async def read(calls: Remote) -> object:
    return await calls.json("GET", "posts/1.json")


async def write(calls: Remote) -> object:
    body = {"topic_id": 1, "reply_to_post_number": 1, "raw": "x"}
    return await calls.json("POST", "posts.json", body=body, repeatable=False)


async def test_a_good_answer(server: Server) -> None:
    forum, calls = server
    value = await read(calls)
    assert isinstance(value, dict)
    assert value["id"] == 1
    assert forum.seen == [("GET", "/posts/1.json", None)]


@pytest.mark.parametrize(
    "fault",
    [
        fake.hangs,
        fake.drips,
        fake.truncates,
        answer(429, "<html><h1>Too many</h1></html>"),
        answer(429, "slow down", retry_after="1"),
        answer(429, {"errors": ["x"]}, retry_after="soon"),
        answer(502, "<html>bad gateway</html>"),
        answer(503, "<html>read only</html>"),
        answer(504, ""),
        answer(200, b"\x1f\x8bnot gzip", content_encoding="gzip"),
    ],
    ids=lambda fault: getattr(fault, "__name__", "answer"),
)
async def test_a_read_is_tried_again_and_then_given_up(server: Server, fault: Fault) -> None:
    forum, calls = server
    forum.faults.extend([fault, fault])
    assert await read(calls)
    assert len(forum.seen) == 3
    forum.faults.extend([fault] * 3)
    with raises(Transient):
        await read(calls)
    assert len(forum.seen) == 6


@pytest.mark.parametrize(
    "fault",
    [
        answer(500, "<html>oops</html>"),
        answer(522, ""),
        fake.LOGIN_PAGE,
        fake.GARBAGE,
        answer(200, ""),
        answer(204, ""),
    ],
)
async def test_what_another_try_would_not_mend_is_left_to_the_job(server: Server, fault: Fault) -> None:
    forum, calls = server
    forum.faults.append(fault)
    with raises(Transient):
        await read(calls)
    assert len(forum.seen) == 1


@pytest.mark.parametrize(
    "fault",
    [
        fake.hangs,
        fake.drips,
        fake.truncates,
        fake.floods,
        fake.LOGIN_PAGE,
        fake.GARBAGE,
        answer(500, "<html>oops</html>"),
        answer(502, ""),
        answer(504, ""),
    ],
)
async def test_a_write_that_may_have_happened_is_never_repeated(server: Server, fault: Fault) -> None:
    forum, calls = server
    forum.faults.append(fault)
    with raises(Unsure):
        await write(calls)
    assert len(forum.seen) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_write_that_was_turned_away_is_repeated(server: Server, status: int) -> None:
    forum, calls = server
    forum.faults.append(answer(status, "<html>later</html>"))
    assert await write(calls)
    assert len(forum.seen) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_long_wait_is_left_to_the_job(server: Server, status: int) -> None:
    forum, calls = server
    forum.faults.append(answer(status, "later", retry_after="47"))
    with raises(Transient) as caught:
        await read(calls)
    assert isinstance(caught.value, Transient)
    assert caught.value.retry_after_seconds == 47
    assert len(forum.seen) == 1


async def test_nobody_listens() -> None:
    """A write is repeated when it surely wasn't sent."""
    for call in (read, write):
        before = tries("transient")
        async with remote(refusing_address()) as calls:
            with raises(Transient):
                await call(calls)
        assert tries("transient") - before == 3


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 413, 422])
async def test_refusals_keep_their_status_and_reason(server: Server, status: int) -> None:
    forum, calls = server
    forum.faults.extend([answer(status, {"errors": ["Déjà dit"]}), answer(status, "<html>no</html>")])
    with pytest.raises(Refused) as caught:
        await write(calls)
    assert (caught.value.status, caught.value.body) == (status, {"errors": ["Déjà dit"]})
    with pytest.raises(Rejected) as caught_html:
        await read(calls)
    assert isinstance(caught_html.value, Refused)
    assert (caught_html.value.status, caught_html.value.body) == (status, None)
    assert len(forum.seen) == 2


@pytest.mark.parametrize("fault", [fake.ELSEWHERE, answer(302, "", location="/login"), answer(401, "who?")])
async def test_no_redirect_is_followed(server: Server, fault: Fault) -> None:
    forum, calls = server
    for call in (read, write):
        forum.faults.append(fault)
        with pytest.raises(Misconfigured):
            await call(calls)
    assert len(forum.seen) == 2


async def test_a_flood_is_not_read_to_its_end(stage: tuple[Stage, str], server: Server) -> None:
    server[0].faults.append(fake.floods)
    async with remote(stage[1], timeout_seconds=5) as calls:
        with pytest.raises(Transient, match="more than 8000000 bytes"):
            await read(calls)


async def test_the_whole_call_has_an_end(server: Server) -> None:
    forum, calls = server
    forum.faults = deque([fake.drips] * 3)
    start = time.monotonic()
    with raises(Transient):
        await read(calls)
    assert time.monotonic() - start < 3 * TIMEOUT_SECONDS + 1


async def test_cancelling_ends_the_call_at_once(server: Server) -> None:
    forum, calls = server
    forum.faults.append(fake.hangs)
    task = asyncio.create_task(write(calls))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(forum.seen) == 1


@pytest.mark.parametrize("url", ["forum.example", "ftp://forum.example", "http://", "http://[", "http://a b/"])
async def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises((Misconfigured, Transient)):
        async with remote(url, attempts=1) as calls:
            await read(calls)


async def test_the_subfolder_of_the_address_is_kept(stage: tuple[Stage, str], server: Server) -> None:
    async with remote(f"{stage[1]}/forum") as calls:
        with pytest.raises(Refused):
            await read(calls)
    assert server[0].seen[0][1] == "/forum/posts/1.json"


def tries(result: str) -> float:
    return REGISTRY.get_sample_value("ariane_remote_seconds_count", {"server": "test", "result": result}) or 0.0


async def test_each_try_is_measured(server: Server) -> None:
    forum, calls = server
    results = ("ok", "transient", "rejected", "unsure", "misconfigured")
    before = {result: tries(result) for result in results}
    forum.faults.append(answer(503, ""))
    await read(calls)
    forum.faults.extend([answer(422, {"errors": []}), answer(401, ""), answer(500, "")])
    for kind in (Refused, Misconfigured, Unsure):
        with pytest.raises(kind):
            await write(calls)
    assert {result: tries(result) - before[result] for result in results} == dict.fromkeys(results, 1)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        (" 1.5 ", 1.5),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        ("Sun, 01 Mar 2026 12:00:10 -0000", 10.0),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("١٢", None),
        ("", None),
        ("9" * 400, None),
        ("Sun, 01 Mar 99999999999 12:00:10 GMT", None),
        ("Sun, 01 Mar 2026 12:00:10 +9999999999999999999", None),
        ("Sun, 01 Mar 2026 12:00:10 +9999", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


digits = st.text("0123456789", max_size=22)
dates = st.builds("Sun, {} Mar {} {}:{}:10 +{}".format, *[digits] * 5)


@given(st.text() | dates)
def test_any_retry_after_is_read_or_none(header: str) -> None:
    seconds = retry_after_seconds(header, NOW)
    assert seconds is None or (math.isfinite(seconds) and seconds >= 0)


@given(st.binary())
def test_any_bytes_are_json_or_a_value_error(content: bytes) -> None:
    try:
        parse_json(content)
    except ValueError:
        return


@pytest.mark.parametrize("content", [b"NaN", b"[Infinity]", b"[" * 100_000, b'"\xff"', b"", "{}".encode("utf-16")])
def test_what_is_no_json(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_json(content)


def test_waits_within_a_call_are_short() -> None:
    assert MAX_WAIT_SECONDS <= 5
