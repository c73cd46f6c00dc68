"""The REST calls that a bot uses, with Discourse's shapes, permissions and refusals (docs/discourse, section 5)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from service.simulator import listings, shapes, sites
from service.simulator.model import REGULAR, Member, Post, Topic
from service.simulator.refusals import forbidden, invalid_key, not_found, not_logged_in, too_many
from service.simulator.rights import Reader, is_listed, is_staff, sees_post, sees_topic
from service.simulator.room import Here, Room

PAGE = 50
"""Ids that one page of `/posts.json` covers: it shows what of them the reader sees, perhaps nothing."""
REPLIES = 20
MAX_ID = 2**31 - 1
router = APIRouter()


async def reader(request: Request, here: Here) -> Reader:
    """Who asks, by Api-Key and Api-Username; anonymous without both. Counts the request against its limit."""
    now, limits, rates = here.desk.clock(), here.desk.limits, here.desk.rates
    key, username = _header(request, "api-key"), _header(request, "api-username")
    if key is None and username is None:
        address = request.client.host if request.client else ""
        short, long = f"10s:{address}", f"60s:{address}"
        wait = rates.wait_seconds(short, limits.anonymous_per_10_seconds, 10, now)
        if wait := wait or rates.wait_seconds(long, limits.anonymous_per_minute, 60, now):
            raise too_many(wait)
        rates.count(short, now)
        rates.count(long, now)
        return None
    bound = here.api_keys.get(key or "", "")
    member = here.forum.member(username or "")
    if member is None or bound == "" or (bound is not None and here.forum.member(bound) != member):
        raise invalid_key()
    if wait := rates.wait_seconds("admin_api", limits.admin_api_per_minute, 60, now):
        raise too_many(wait)
    rates.count("admin_api", now)
    return member


def _header(request: Request, name: str) -> str | None:
    """A header's text as UTF-8, since usernames can be Unicode."""
    value = request.headers.get(name)
    return None if value is None else value.encode("latin-1").decode("utf-8", "replace")


async def known_member(asking: Annotated[Reader, Depends(reader)]) -> Member:
    if asking is None:
        raise not_logged_in()
    return asking


Asking = Annotated[Reader, Depends(reader)]
Known = Annotated[Member, Depends(known_member)]


def _post(here: Room, asking: Reader, post: Post | None) -> Post:
    if post is None or (post.deleted_at and not is_staff(asking)):
        raise not_found()
    if here.forum.topics[post.topic_id].deleted_at and not is_staff(asking):
        raise not_found()
    if not sees_post(here.forum, asking, post):
        raise forbidden()
    return post


def _topic(here: Room, asking: Reader, topic_id: int) -> Topic:
    topic = here.forum.topics.get(topic_id)
    if topic is None or (topic.deleted_at and not is_staff(asking)):
        raise not_found()
    if not sees_topic(here.forum, asking, topic):
        raise forbidden()
    return topic


@router.get("/posts/by_number/{topic_id}/{number}.json")
async def post_by_number(topic_id: int, number: int, here: Here, asking: Asking) -> shapes.Json:
    return shapes.single_post(here.forum, _post(here, asking, here.forum.at(topic_id, number)), asking)


@router.get("/posts/{post_id}/replies.json")
async def replies(post_id: int, here: Here, asking: Asking, after: int = 1) -> list[shapes.Json]:
    post = _post(here, asking, here.forum.posts.get(post_id))
    seen = [p for p in here.forum.replies(post) if not p.deleted_at and sees_post(here.forum, asking, p)]
    shown = [p for p in seen if p.number > after][:REPLIES]
    return [shapes.single_post(here.forum, p, asking) for p in shown]


@router.get("/posts/{post_id}.json")
async def single_post(post_id: int, here: Here, asking: Asking) -> shapes.Json:
    return shapes.single_post(here.forum, _post(here, asking, here.forum.posts.get(post_id)), asking)


@router.get("/posts.json")
async def latest_posts(here: Here, asking: Asking, before: int = 0) -> shapes.Json:
    forum = here.forum
    top = before if before > 0 else forum.last_ids.get("post", 0)
    rows = []
    for post_id in range(top, max(0, top - PAGE), -1):
        post = forum.posts.get(post_id)
        if post is None or post.post_type != REGULAR or post.deleted_at or post.hidden:
            continue
        if sees_post(forum, asking, post) and is_listed(forum, asking, forum.topics[post.topic_id]):
            rows.append(shapes.latest_post(forum, post, asking))
    return {"latest_posts": rows}


@router.get("/t/{topic_id}/posts.json")
async def chosen_posts(
    topic_id: int, here: Here, asking: Asking, post_ids: Annotated[list[int], Query(alias="post_ids[]")]
) -> shapes.Json:
    _topic(here, asking, topic_id)
    chosen = [here.forum.posts[i] for i in sorted(set(post_ids)) if i in here.forum.posts]
    shown = [p for p in chosen if p.topic_id == topic_id and not p.deleted_at and sees_post(here.forum, asking, p)]
    posts = [shapes.stream_post(here.forum, p, asking) for p in sorted(shown, key=lambda p: p.number)]
    return {"post_stream": {"posts": posts}, "id": topic_id}


@router.get("/t/{topic_id}.json")
async def topic_by_id(topic_id: int, here: Here, asking: Asking) -> shapes.Json:
    return listings.topic_view(here.forum, _topic(here, asking, topic_id), asking)


@router.get("/t/{slug}/{topic_id}/{number}.json")
async def topic_near(slug: str, topic_id: int, number: int, here: Here, asking: Asking) -> shapes.Json:
    return listings.topic_view(here.forum, _topic(here, asking, topic_id), asking, near=number)


@router.get("/t/{first}/{second}.json")
async def topic_by_slug(first: str, second: int, here: Here, asking: Asking) -> shapes.Json:
    """`/t/SLUG/ID.json`, or `/t/ID/NUMBER.json`: a slug is never a number."""
    if first.isdecimal():
        return listings.topic_view(here.forum, _topic(here, asking, int(first)), asking, near=second)
    return listings.topic_view(here.forum, _topic(here, asking, second), asking)


@router.get("/latest.json")
async def latest(here: Here, asking: Asking, page: int = 0, order: str = "default") -> shapes.Json:
    return listings.topic_list(here.forum, asking, page=max(0, page), order=order)


@router.get("/site.json")
async def site(here: Here, asking: Asking) -> shapes.Json:
    return sites.site(here.forum, asking)


@router.get("/categories.json")
async def categories(here: Here, asking: Asking) -> shapes.Json:
    return sites.category_list(here.forum, asking)


@router.get("/u/{username}.json")
async def user(username: str, here: Here, asking: Asking) -> shapes.Json:
    member = here.forum.member(username)
    if member is None:
        raise not_found()
    return shapes.full_user(here.forum, member)


@router.get("/notifications.json")
async def notifications(here: Here, known: Known) -> shapes.Json:
    mine = [n for n in here.forum.notifications.values() if n.user_id == known.id]
    rows = [sites.notification(here.forum, n) for n in reversed(mine[-60:])]
    return {
        "notifications": rows,
        "total_rows_notifications": len(mine),
        "seen_notification_id": 0,
        "load_more_notifications": f"/notifications?offset=60&username={known.username}",
    }


@router.get("/search.json")
async def search(here: Here, asking: Asking, q: str = "") -> shapes.Json:
    return sites.search(here.forum, asking, q)
