"""The client against a fake forum on a real socket, and the fake against Discourse's published contract."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import stamina
from jsonschema import Draft202012Validator

from service.answer.ports import CreatedReply, Forum
from service.discourse.client import DiscourseClient
from service.discourse.own_reply import MAX_REPLY_PAGES
from service.discourse.thread import CHUNK
from service.domain import PostId, TopicId
from service.errors import Misconfigured, Rejected, Transient, Unsure
from service.ingest.ports import ForumReader
from tests.fakes import forum as fake
from tests.fakes.forum import BOT, KEY, FakeForum, Fault, answer, refusal
from tests.fakes.serving import Stage, refusing_address
from tests.shared import SHARED, needs_shared

CATEGORY = {"name": "Heating", "slug": "heating", "read_restricted": False}


@pytest.fixture(autouse=True)
def without_waits() -> Iterator[None]:
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


@pytest.fixture
def forum(stage: tuple[Stage, str]) -> FakeForum:
    forum = FakeForum()
    forum.add_topic(10)
    forum.add_post(100, 10)
    forum.add_post(101, 10, by="max", reply_to=1)
    forum.categories = [{"id": 4, **CATEGORY}, {"id": 5, **CATEGORY, "parent_category_id": 4}, {"id": 6, **CATEGORY}]
    forum.users = {
        "zoe": {
            "id": 5,
            "username": "zoe",
            "staged": False,
            "trust_level": 1,
            "groups": [{"id": 41, "name": "experts"}],
        },
        "éva": {"id": 8, "username": "Éva", "staged": True},
    }
    stage[0].on = forum
    return forum


@pytest.fixture
async def client(stage: tuple[Stage, str], forum: FakeForum) -> AsyncIterator[DiscourseClient]:
    async with opened(stage[1]) as client:
        yield client


def opened(url: str, *, key: str = KEY, bot: str = BOT) -> DiscourseClient:
    return DiscourseClient(url, api_key=key, bot_username=bot, timeout_seconds=0.5, attempts=2)


def test_it_is_what_the_ports_ask_for() -> None:
    client = opened("http://forum.example")
    reader: ForumReader = client
    writer: Forum = client
    assert {id(reader), id(writer)} == {id(client)}


async def test_public_reads_carry_no_key(client: DiscourseClient, forum: FakeForum) -> None:
    post = await client.public_post(PostId(100))
    topic = await client.public_topic(TopicId(10))
    assert post is not None and topic is not None
    assert (post.id, post.topic_id, post.archetype, post.category_id) == (100, 10, None, None)
    assert (topic.title, topic.visible, topic.category_id, topic.tags) == ("Topic 10", True, 4, ("heat",))
    assert forum.seen == [("GET", "/posts/100.json", None), ("GET", "/t/10.json", None)]


@pytest.mark.parametrize("private", [True, False])
async def test_what_the_public_does_not_see_is_none(client: DiscourseClient, forum: FakeForum, private: bool) -> None:
    if private:
        forum.private_topics.add(10)
    else:
        forum.topics.clear()
        forum.posts.clear()
    assert await client.public_post(PostId(100)) is None
    assert await client.public_topic(TopicId(10)) is None
    assert await client.public_thread(TopicId(10)) is None
    assert await client.our_reply_to(PostId(100)) is None


async def test_behind_a_login_nothing_is_public(client: DiscourseClient, forum: FakeForum) -> None:
    forum.login_required = True
    assert await client.public_post(PostId(100)) is None
    assert await client.public_topic(TopicId(10)) is None
    assert await client.public_categories() == []
    assert {username for _, _, username in forum.seen} == {None}


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_a_proxy_that_says_no_is_not_the_forum(client: DiscourseClient, forum: FakeForum, status: int) -> None:
    for call in (client.public_topic(TopicId(10)), client.reply(topic_id=TopicId(10), post_number=1, raw="x")):
        forum.faults.append(answer(status, "<html>Attention required</html>"))
        with pytest.raises(Transient):
            await call
    forum.faults.append(answer(status, ["BAD CSRF"]))
    with pytest.raises(Transient):
        await client.public_post(PostId(100))


async def test_all_posts_of_a_long_topic(client: DiscourseClient, forum: FakeForum) -> None:
    for post_id in range(200, 200 + 2 * CHUNK):
        forum.add_post(post_id, 10)
    thread = await client.public_thread(TopicId(10))
    assert thread is not None and thread.topic.title == "Topic 10"
    assert [post.post_number for post in thread.posts] == list(range(1, 2 * CHUNK + 3))
    assert {(post.category_id, post.archetype) for post in thread.posts} == {(4, "regular")}
    assert thread.ids == {post.id for post in thread.posts}
    assert [path for _, path, _ in forum.seen] == ["/t/10.json", "/t/10/posts.json", "/t/10/posts.json"]


async def test_many_reads_wait_as_the_forum_asks(
    client: DiscourseClient, forum: FakeForum, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("service.discourse.calls.sleep", wait)
    for post_id in range(200, 200 + CHUNK):
        forum.add_post(post_id, 10)
    first = forum._read(["t", "10"], {})
    forum.faults.extend([first, answer(429, "later", retry_after="9"), answer(429, "later", retry_after="41")])
    thread = await client.public_thread(TopicId(10))
    assert thread is not None and len(thread.posts) == CHUNK + 2
    assert waits == [9, 41]
    forum.faults.extend([first, answer(429, "later", retry_after="3600")])
    with pytest.raises(Transient):
        await client.public_thread(TopicId(10))
    forum.faults.extend([first, *[answer(429, "later", retry_after="30")] * 4])
    with pytest.raises(Transient):
        await client.public_thread(TopicId(10))
    assert waits == [9, 41, 30, 30, 30]


async def test_one_unreadable_post_costs_only_itself(client: DiscourseClient, forum: FakeForum) -> None:
    forum.posts[100]["updated_at"] = None
    thread = await client.public_thread(TopicId(10))
    assert thread is not None and [post.id for post in thread.posts] == [101]
    assert thread.ids == {100, 101}  # the public sees it: what is stored of it stays


async def test_an_answer_about_something_else_is_none(client: DiscourseClient, forum: FakeForum) -> None:
    """A cache that mixes up its pages: all posts of the topic asked for would else seem to have gone."""
    forum.add_topic(11)
    forum.add_post(200, 11)
    other_topic, other_post = forum._read(["t", "11"], {}), forum._read(["posts", "200"], {})
    for read, other in (
        (lambda: client.public_thread(TopicId(10)), other_topic),
        (lambda: client.public_topic(TopicId(10)), other_topic),
        (lambda: client.own_topic(TopicId(10)), other_topic),
        (lambda: client.public_post(PostId(100)), other_post),
        (lambda: client.own_post(PostId(100)), other_post),
    ):
        forum.faults.append(other)
        with pytest.raises(Transient, match="asked for"):
            await read()


async def test_categories_at_once_or_in_pages(client: DiscourseClient, forum: FakeForum) -> None:
    at_once = await client.public_categories()
    assert [(one.id, one.parent_id, one.read_restricted) for one in at_once] == [
        (4, None, False),
        (5, 4, False),
        (6, None, False),
    ]
    forum.lazy_categories = True
    assert await client.public_categories() == at_once


async def test_a_reply_is_posted_as_the_bot(client: DiscourseClient, forum: FakeForum) -> None:
    made = await client.reply(topic_id=TopicId(10), post_number=2, raw="Look [there](https://forum.example/t/x/1/1).")
    assert made == CreatedReply(PostId(102), 3)
    assert forum.seen == [("POST", "/posts.json", BOT)]
    assert forum.posts[102]["raw"] == "Look [there](https://forum.example/t/x/1/1)."
    assert await client.our_reply_to(PostId(101)) == made
    assert await client.our_reply_to(PostId(100)) is None


async def test_a_reply_that_waits_for_approval(client: DiscourseClient, forum: FakeForum) -> None:
    forum.enqueues = True
    assert await client.reply(topic_id=TopicId(10), post_number=2, raw="x") == CreatedReply(None, None, enqueued=True)


async def test_a_nested_answer_to_a_reply(client: DiscourseClient, forum: FakeForum) -> None:
    forum.faults.append(answer(200, {"action": "create_post", "post": {"id": 7, "post_number": 2}}))
    assert await client.reply(topic_id=TopicId(10), post_number=2, raw="x") == CreatedReply(PostId(7), 2)


@pytest.mark.parametrize(
    "then",
    [
        fake.hangs,
        fake.truncates,
        fake.GARBAGE,
        fake.LOGIN_PAGE,
        answer(500, ""),
        answer(502, ""),
        answer(200, {"success": True}),
    ],
)
async def test_a_lost_answer_is_unsure_and_found_again(client: DiscourseClient, forum: FakeForum, then: Fault) -> None:
    forum.then = then
    with pytest.raises(Unsure):
        await client.reply(topic_id=TopicId(10), post_number=2, raw="x")
    assert [method for method, _, _ in forum.seen] == ["POST"]
    assert await client.our_reply_to(PostId(101)) == CreatedReply(PostId(102), 3)


async def test_a_forum_out_of_reach_has_stored_nothing() -> None:
    async with opened(refusing_address()) as client:
        with pytest.raises(Transient) as caught:
            await client.reply(topic_id=TopicId(10), post_number=2, raw="x")
    assert not isinstance(caught.value, Unsure)


@pytest.mark.parametrize("status", [403, 404, 409, 422])
async def test_refused_replies_keep_their_status(client: DiscourseClient, forum: FakeForum, status: int) -> None:
    forum.faults.append(refusal(status, "invalid_access", "Vous ne pouvez pas répondre ici."))
    with pytest.raises(Rejected) as caught:
        await client.reply(topic_id=TopicId(10), post_number=2, raw="x")
    assert caught.value.status == status


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_forum_gets_the_reply_later(client: DiscourseClient, forum: FakeForum, status: int) -> None:
    forum.faults.append(answer(status, "<html>slow down</html>"))
    assert (await client.reply(topic_id=TopicId(10), post_number=2, raw="x")).post_id == 102
    forum.faults.append(answer(status, "slow down", retry_after="60"))
    with pytest.raises(Transient) as caught:
        await client.reply(topic_id=TopicId(10), post_number=2, raw="y")
    assert caught.value.retry_after_seconds == 60
    assert len([post for post in forum.posts.values() if post["username"] == BOT]) == 1


async def test_a_wrong_key_is_told_from_a_refused_deed(stage: tuple[Stage, str], forum: FakeForum) -> None:
    async with opened(stage[1], key="another") as client:
        with pytest.raises(Misconfigured, match="api_key"):
            await client.reply(topic_id=TopicId(10), post_number=2, raw="x")
        with pytest.raises(Misconfigured, match="api_key"):
            await client.our_reply_to(PostId(100))
    assert BOT in {username for _, _, username in forum.seen}
    async with opened(stage[1], key="") as client:
        assert await client.public_post(PostId(100))
        with pytest.raises(Misconfigured, match="not set"):
            await client.is_staged("zoe")


@pytest.mark.parametrize("key", ["a\nb", "clé", "a\0"])
def test_keys_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        opened("http://forum.example", key=key)
    assert key not in str(caught.value)


async def test_what_came_after_a_post_is_read_as_the_public_and_as_the_bot(
    client: DiscourseClient, forum: FakeForum
) -> None:
    forum.add_post(99, 10, by="eve")  # moved here: after the question by its number, not by its date
    asked = await client.public_post(PostId(100))
    assert asked is not None
    for read, reader in ((client.public_posts_after, None), (client.own_posts_after, BOT)):
        forum.seen.clear()
        (after,) = await read(asked)
        assert (after.id, after.username, after.user_id, after.archetype) == (101, "max", 5, "regular")
        assert forum.seen == [("GET", "/t/10.json", reader), ("GET", "/t/10/posts.json", reader)]


async def test_of_many_posts_after_one_the_newest_are_read(client: DiscourseClient, forum: FakeForum) -> None:
    asked = await client.public_post(PostId(100))
    assert asked is not None
    for post_id in range(200, 200 + 2 * CHUNK):
        forum.add_post(post_id, 10, by="max")
    assert [one.id for one in await client.public_posts_after(asked)] == list(range(200 + CHUNK, 200 + 2 * CHUNK))


async def test_nothing_came_after_the_last_post_or_where_nothing_is_seen(
    client: DiscourseClient, forum: FakeForum
) -> None:
    asked, last = await client.public_post(PostId(100)), await client.public_post(PostId(101))
    assert asked is not None
    assert last is not None
    assert await client.public_posts_after(last) == []
    forum.private_topics.add(10)
    assert await client.public_posts_after(asked) == []
    forum.private_topics.clear()
    forum.faults.append(answer(200, {"id": 10}))
    with pytest.raises(Transient):
        await client.public_posts_after(asked)


async def test_our_reply_among_many(client: DiscourseClient, forum: FakeForum) -> None:
    for post_id in range(200, 200 + 2 * CHUNK):
        forum.add_post(post_id, 10, by="max", reply_to=1)
    forum.add_post(300, 10, by="ARIANE", reply_to=1)
    assert await client.our_reply_to(PostId(100)) == CreatedReply(PostId(300), 2 * CHUNK + 3)


@pytest.mark.parametrize("others", [0, 30, 200])
async def test_our_reply_that_is_not_counted_as_one(client: DiscourseClient, forum: FakeForum, others: int) -> None:
    forum.loses_replies = True
    for post_id in range(200, 200 + others):
        forum.add_post(post_id, 10, by="max", reply_to=1)
    forum.add_post(900, 10, by=BOT, reply_to=1)
    assert await client.our_reply_to(PostId(100)) == CreatedReply(PostId(900), others + 3)
    assert len(forum.seen) <= 3 + 3


async def test_what_is_not_our_reply(client: DiscourseClient, forum: FakeForum) -> None:
    forum.add_post(200, 10, by=BOT, reply_to=2)
    forum.add_post(201, 10, by=f"{BOT}2", reply_to=1)
    forum.add_post(202, 10, by=BOT)
    assert await client.our_reply_to(PostId(100)) is None


async def test_replies_without_end_are_left_at_some_point(client: DiscourseClient, forum: FakeForum) -> None:
    for post_id in range(200, 200 + (MAX_REPLY_PAGES + 5) * CHUNK):
        forum.add_post(post_id, 10, by="max", reply_to=1)
    assert await client.our_reply_to(PostId(100)) is None
    assert len(forum.seen) == 1 + MAX_REPLY_PAGES + 1 + 3


@pytest.mark.parametrize("served_before", [1, 2, 3])
async def test_no_reply_is_missed_because_a_call_failed(
    client: DiscourseClient, forum: FakeForum, served_before: int
) -> None:
    """The question is there, what follows it isn't told: posting now might double the reply."""
    real = [forum._read(path, query) for path, query in CALLS_OF_OUR_REPLY[:served_before]]
    forum.faults.extend([*real, refusal(404)])
    with pytest.raises(Transient):
        await client.our_reply_to(PostId(100))


CALLS_OF_OUR_REPLY: list[tuple[list[str], dict[str, list[str]]]] = [
    (["posts", "100"], {}),
    (["posts", "100", "replies"], {"after": ["1"]}),
    (["t", "10"], {}),
]


@pytest.mark.parametrize(
    ("name", "staged"), [("zoe", False), ("Éva", True), ("nobody", True), ("../../site", True), ("a/b?c#d", True)]
)
async def test_staged_accounts(client: DiscourseClient, forum: FakeForum, name: str, staged: bool) -> None:
    assert await client.is_staged(name) is staged
    assert forum.seen == [("GET", f"/u/{name}.json", BOT)]


async def test_groups_of_an_account_and_none_of_one_that_is_not_shown(client: DiscourseClient) -> None:
    assert await client.groups_of("zoe") == {"experts", "trust_level_0", "trust_level_1"}
    assert await client.groups_of("nobody") == frozenset()


@pytest.mark.parametrize(
    "fault",
    [
        fake.truncates,
        fake.GARBAGE,
        fake.LOGIN_PAGE,
        answer(500, "<html>"),
        answer(429, "<html>"),
    ],
)
async def test_reads_that_fail_are_transient_not_gone(client: DiscourseClient, forum: FakeForum, fault: Fault) -> None:
    reads = (
        lambda: client.public_post(PostId(100)),
        lambda: client.public_topic(TopicId(10)),
        lambda: client.public_categories(),
        lambda: client.our_reply_to(PostId(100)),
    )
    for read in reads:
        forum.faults.extend([fault, fault])
        with pytest.raises(Transient):
            await read()
        forum.faults.clear()


@pytest.mark.parametrize("fault", [fake.hangs, fake.drips])
async def test_a_slow_forum_is_transient_not_gone(client: DiscourseClient, forum: FakeForum, fault: Fault) -> None:
    forum.faults.extend([fault, fault])
    with pytest.raises(Transient):
        await client.public_topic(TopicId(10))


async def test_another_host_is_never_followed(client: DiscourseClient, forum: FakeForum) -> None:
    forum.faults.append(fake.ELSEWHERE)
    with pytest.raises(Misconfigured, match=r"elsewhere\.example"):
        await client.public_post(PostId(100))


@pytest.mark.parametrize("body", [[], {}, {"post_stream": 1}, "x", None, {"id": 10, "title": 3}, {"categories": 1}])
async def test_json_of_another_shape_is_read_again_later(client: DiscourseClient, forum: FakeForum, body: Any) -> None:
    content = json.dumps(body).encode()
    for read in (
        lambda: client.public_post(PostId(100)),
        lambda: client.public_topic(TopicId(10)),
        lambda: client.public_thread(TopicId(10)),
        lambda: client.our_reply_to(PostId(100)),
        lambda: client.is_staged("zoe"),
        lambda: client.groups_of("zoe"),
    ):
        forum.faults.append(answer(200, content))
        with pytest.raises(Transient):
            await read()


@pytest.mark.parametrize("body", [{}, {"maintenance": True}, {"errors": ["later"]}])
async def test_a_forum_that_tells_no_categories_is_not_one_without(
    client: DiscourseClient, forum: FakeForum, body: Any
) -> None:
    forum.faults += [answer(200, json.dumps(body).encode())] * 2
    with pytest.raises(Transient):
        await client.public_categories()


def published(path: str, method: str) -> dict[str, Any]:
    """The schema of the 200 answer, without `required`: it was recorded as an admin, who gets more keys than a bot."""
    contract = json.loads((SHARED / "contracts/discourse-openapi.json").read_text(encoding="utf-8"))
    content = contract["paths"][path][method]["responses"]["200"]["content"]
    schema: dict[str, Any] = relaxed(content["application/json"]["schema"])
    return schema


def relaxed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [relaxed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: relaxed(value) for key, value in schema.items() if key != "required"}
    properties = kept.get("properties", {})
    if "reply_to_post_number" in properties:  # "string" in the contract, a number in Discourse's code and payloads
        properties["reply_to_post_number"] = {"type": ["integer", "null"]}
    return kept


@needs_shared
@pytest.mark.parametrize(
    ("path", "sent", "method"),
    [
        ("/posts/{id}.json", "/posts/101.json", "get"),
        ("/posts/{id}/replies.json", "/posts/100/replies.json?after=1", "get"),
        ("/t/{id}.json", "/t/10.json", "get"),
        ("/t/{id}/posts.json", "/t/10/posts.json?post_ids[]=100&post_ids[]=101", "get"),
        ("/site.json", "/site.json", "get"),
        ("/categories.json", "/categories.json?include_subcategories=true&page=1", "get"),
        ("/u/{username}.json", "/u/zoe.json", "get"),
        ("/posts.json", "/posts.json", "post"),
    ],
)
async def test_the_fake_speaks_the_published_contract(
    stage: tuple[Stage, str], forum: FakeForum, path: str, sent: str, method: str
) -> None:
    body = {"raw": "x", "topic_id": 10, "reply_to_post_number": 1} if method == "post" else None
    async with httpx.AsyncClient(base_url=stage[1], headers={"Api-Key": KEY, "Api-Username": BOT}) as http:
        answered = await http.request(method, sent, json=body)
    assert answered.status_code == 200
    Draft202012Validator(published(path, method)).validate(answered.json())


@needs_shared
def test_what_the_client_sends_is_in_the_contract() -> None:
    contract = json.loads((SHARED / "contracts/discourse-openapi.json").read_text(encoding="utf-8"))
    body = contract["paths"]["/posts.json"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"raw", "topic_id", "reply_to_post_number"} <= set(body["properties"])
    asked = contract["paths"]["/t/{id}/posts.json"]["get"]
    assert "post_ids[]" in json.dumps(asked)


async def test_our_post_is_read_as_it_was_written(client: DiscourseClient, forum: FakeForum) -> None:
    for post_id, more in ((200, {}), (201, {"user_deleted": True}), (202, {"deleted_at": "2026-01-02T13:58:49.606Z"})):
        forum.add_post(post_id, 10, by=BOT, raw="See [1](/t/x/1).", **more)
    forum.seen.clear()
    assert await client.own_text(PostId(200)) == "See [1](/t/x/1)."
    assert forum.seen == [("GET", "/posts/200.json", BOT)]
    for gone in (201, 202, 203):
        assert await client.own_text(PostId(gone)) is None
    forum.add_post(204, 10, by=BOT)  # without what was written
    with pytest.raises(Transient):
        await client.own_text(PostId(204))
