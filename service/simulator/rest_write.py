"""The REST calls by which a bot writes: create, edit and delete its posts."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from service.simulator import shapes
from service.simulator.forum import Author
from service.simulator.model import Member, Post
from service.simulator.posting import Draft
from service.simulator.refusals import forbidden, missing, not_found, unprocessable
from service.simulator.rest import Known
from service.simulator.room import Here, Room, sent_values
from service.simulator.switches import Fault

router = APIRouter()


def _number(values: Mapping[str, Any], name: str) -> int | None:
    """An optional id; what is no number counts as 0, as Ruby's to_i makes of it."""
    given = values.get(name)
    if given in (None, ""):
        return None
    text = str(given).strip()
    return int(text) if text.isdecimal() and len(text) < 19 else 0


@router.post("/posts.json")
async def create(request: Request, here: Here, known: Known) -> shapes.Json:
    values = await sent_values(request)
    raw = values.get("raw")
    if not isinstance(raw, str):
        raise missing("raw")
    title = values.get("title")
    draft = Draft(
        raw=raw,
        topic_id=_number(values, "topic_id"),
        reply_to=_number(values, "reply_to_post_number") or None,
        title=None if title is None else str(title),
        category_id=_number(values, "category"),
    )
    approval = here.switches.take(Fault.ENQUEUE, method="POST", path="/posts.json") is not None
    made = here.desk.submit_once(known, draft, approval=approval)
    if isinstance(made, Post):
        return shapes.created_post(here.forum, here.forum.posts[made.id], known)
    waiting = {"id": made.id, "raw": raw, "created_at": shapes.stamp(made.at), "topic_id": draft.topic_id}
    count = len([p for p in here.desk.pending if p.member == known])
    return {"action": "enqueued", "success": True, "pending_post": waiting, "pending_count": count}


def _own(here: Room, known: Member, post_id: int) -> Post:
    post = here.forum.posts.get(post_id)
    if post is None or (post.deleted_at and not known.staff):
        raise not_found()
    if post.user_id != known.id and not known.staff:
        raise forbidden()
    return post


@router.put("/posts/{post_id}.json")
async def edit(post_id: int, request: Request, here: Here, known: Known) -> shapes.Json:
    post = _own(here, known, post_id)
    values = await sent_values(request)
    inner = values.get("post")
    raw = inner.get("raw") if isinstance(inner, dict) else values.get("post[raw]")
    if not isinstance(raw, str):
        raise missing("post")
    if not here.desk.limits.min_post_chars <= len(raw.strip()) <= here.desk.limits.max_post_chars:
        raise unprocessable("Body is too short or too long")
    edited = here.forum.edit_post(post.id, raw=raw.rstrip(), now=here.desk.clock())
    return {"post": shapes.created_post(here.forum, edited, known)}


@router.delete("/posts/{post_id}.json")
async def delete(post_id: int, here: Here, known: Known) -> Response:
    """Delete a post; the answer is empty, as Discourse's is."""
    here.forum.delete_post(Author(known, here.desk.clock()), _own(here, known, post_id).id)
    return Response()


@router.put("/posts/{post_id}/recover.json")
async def recover(post_id: int, here: Here, known: Known) -> shapes.Json:
    post = _own(here, known, post_id)
    here.forum.recover_post(post.id, now=here.desk.clock())
    return shapes.single_post(here.forum, here.forum.posts[post.id], known)
