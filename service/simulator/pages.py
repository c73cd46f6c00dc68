"""The pages a person uses: topics, posts, composer, member picker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from service.simulator import views
from service.simulator.control import local_only, same_site
from service.simulator.listings import listed_topics
from service.simulator.model import Member, Topic
from service.simulator.moderation import Deed, asked_for, carry_out
from service.simulator.refusals import Refusal, forbidden, not_found, not_logged_in
from service.simulator.rights import may_reply, readable_posts, sees_topic
from service.simulator.room import Here, Room, current_member, people, sent_values
from service.simulator.sites import found_posts, seen_categories
from service.simulator.waiting import is_waiting

PER_PAGE = 40
NOTHING: Mapping[str, str] = {}
TOPIC_DEEDS = (
    *(Deed.RETITLE, Deed.TAG, Deed.RECATEGORISE, Deed.MERGE, Deed.UNLIST, Deed.LIST),
    *(Deed.CLOSE, Deed.OPEN, Deed.ARCHIVE, Deed.UNARCHIVE),
)
router = APIRouter(dependencies=[Depends(local_only), Depends(same_site)], include_in_schema=False)
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, request: Request, here: Room, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page with what every page shows: the forum's title, who reads, whom he can be."""
    me = current_member(request, here)
    html = _TEMPLATES.get_template(template).render(
        title=here.forum.title,
        base=here.forum.base_path,
        path=request.url.path,
        me=me,
        my_face=views.face(here.forum, me, here.bot_username) if me else None,
        people=sorted(people(here), key=lambda m: (m.staff, m.trust_level == 0, m.username.casefold())),
        bot=here.bot_username,
        **values,
    )
    return HTMLResponse(html, status)


def me_or_refuse(request: Request, here: Room) -> Member:
    member = current_member(request, here)
    if member is None:
        raise not_logged_in()
    return member


def _rows(request: Request, here: Room, topics: list[Topic]) -> list[views.Row]:
    me, now = current_member(request, here), here.desk.clock()
    return [views.row(here.forum, t, me, now, here.bot_username) for t in topics]


def _topics(request: Request, here: Room, page: int, category_id: int | None, heading: str) -> HTMLResponse:
    me = current_member(request, here)
    topics = listed_topics(here.forum, me, order="default", category_id=category_id)
    page = max(0, page)
    return render(
        "topics.html",
        request,
        here,
        heading=heading,
        categories=[views.badge(here.forum, c) for c in seen_categories(here.forum, me)],
        rows=_rows(request, here, topics[page * PER_PAGE : (page + 1) * PER_PAGE]),
        page=page,
        more=len(topics) > (page + 1) * PER_PAGE,
    )


@router.get("/")
async def home(request: Request, here: Here, page: int = 0) -> HTMLResponse:
    return _topics(request, here, page, None, "Latest topics")


@router.get("/c/{slug}/{category_id}")
async def category(slug: str, category_id: int, request: Request, here: Here, page: int = 0) -> HTMLResponse:
    seen = {c.id: c for c in seen_categories(here.forum, current_member(request, here))}
    if category_id not in seen:
        raise not_found()
    return _topics(request, here, page, category_id, seen[category_id].name)


@router.get("/search")
async def search(request: Request, here: Here, q: str = "") -> HTMLResponse:
    me, now = current_member(request, here), here.desk.clock()
    posts = found_posts(here.forum, me, q[:200])
    hits = [
        (here.forum.topics[p.topic_id], views.post_view(here.forum, p, me, now, here.bot_username, wanted=None))
        for p in posts
    ]
    return render("search.html", request, here, q=q[:200], hits=hits)


@router.get("/u/{username}")
async def member(username: str, request: Request, here: Here) -> HTMLResponse:
    found = here.forum.member(username)
    if found is None:
        raise not_found()
    topics = {p.topic_id: here.forum.topics[p.topic_id] for p in here.forum.posts.values() if p.user_id == found.id}
    seen = {t.id for t in listed_topics(here.forum, current_member(request, here), order="created")}
    rows = _rows(request, here, [t for t in reversed(topics.values()) if t.id in seen])
    return render(
        "member.html", request, here, member=found, face=views.face(here.forum, found, here.bot_username), rows=rows
    )


def topic_page(
    request: Request,
    here: Room,
    topic: Topic,
    *,
    wanted: int | None = None,
    reply_to: int | None = None,
    raw: str = "",
    fault: str = "",
    status: int = 200,
) -> HTMLResponse:
    """A topic with all its posts and the composer."""
    forum, me, now = here.forum, current_member(request, here), here.desk.clock()
    if not sees_topic(forum, me, topic):
        raise not_found()
    posts = [
        views.post_view(forum, p, me, now, here.bot_username, wanted=wanted) for p in readable_posts(forum, me, topic)
    ]
    answered = next((p for p in posts if p.number == reply_to), None)
    return render(
        "topic.html",
        request,
        here,
        status=status,
        topic=topic,
        row=views.row(forum, topic, me, now, here.bot_username),
        posts=posts,
        waiting=is_waiting(here, topic),
        may_reply=me is None or may_reply(forum, me, topic),
        answered=answered,
        deeds=TOPIC_DEEDS if me and me.staff else (),
        raw=raw,
        fault=fault,
    )


def _topic(here: Room, topic_id: int) -> Topic:
    if topic_id not in here.forum.topics:
        raise not_found()
    return here.forum.topics[topic_id]


@router.get("/t/{topic_id}", response_model=None)
async def short_topic(topic_id: int, request: Request, here: Here) -> RedirectResponse:
    topic = _topic(here, topic_id)
    if not sees_topic(here.forum, current_member(request, here), topic):
        raise not_found()
    return RedirectResponse(here.forum.topic_url(topic), 302)


@router.get("/t/{slug}/{topic_id}")
async def topic(slug: str, topic_id: int, request: Request, here: Here, reply_to: int | None = None) -> HTMLResponse:
    return topic_page(request, here, _topic(here, topic_id), reply_to=reply_to)


@router.get("/t/{slug}/{topic_id}/{number}")
async def topic_at(
    slug: str, topic_id: int, number: int, request: Request, here: Here, reply_to: int | None = None
) -> HTMLResponse:
    return topic_page(request, here, _topic(here, topic_id), wanted=number, reply_to=reply_to)


@router.post("/t/{topic_id}/moderate")
async def moderate(topic_id: int, request: Request, here: Here) -> RedirectResponse:
    """A moderator's form on a topic's page: a deed on one of its posts, or on itself."""
    me, topic, fields = me_or_refuse(request, here), _topic(here, topic_id), await sent_values(request)
    if not me.staff:
        raise forbidden()
    try:
        deed, target, value = asked_for(fields)
        carry_out(here.forum, deed, target, value, by=me, now=here.desk.clock())
    except (KeyError, ValueError) as exc:
        raise Refusal(422, {"errors": [f"This can't be done: {exc}"]}) from exc
    return RedirectResponse(here.forum.topic_url(topic), 303)
