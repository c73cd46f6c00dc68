"""What members make of a post on Discourse, each with the webhook it has: a like, a flag, a solution."""

from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from fastapi import APIRouter, Depends, Request

from service.simulator.control import local_only, same_site
from service.simulator.forum import Forum
from service.simulator.model import Change, Event, Member
from service.simulator.refusals import Refusal, not_found
from service.simulator.room import Here, sent_values
from service.simulator.shapes import Json

router = APIRouter(prefix="/simulator", dependencies=[Depends(local_only), Depends(same_site)])


class Reaction(StrEnum):
    """What can be asked for by name."""

    LIKE = "like"
    FLAG = "flag"
    DISMISS = "dismiss"
    SOLVE = "solve"
    UNSOLVE = "unsolve"


_EVENTS = {
    Reaction.LIKE: Event.POST_LIKED,
    Reaction.FLAG: Event.REVIEWABLE_CREATED,
    Reaction.DISMISS: Event.REVIEWABLE_UPDATED,
    Reaction.SOLVE: Event.ACCEPTED_SOLUTION,
    Reaction.UNSOLVE: Event.UNACCEPTED_SOLUTION,
}


def react(forum: Forum, reaction: Reaction, post_id: int, *, by: Member, now: datetime) -> None:
    """Do it and announce it; raises KeyError without such a post."""
    post = forum.posts[post_id]
    if reaction in (Reaction.SOLVE, Reaction.UNSOLVE):
        forum.add(replace(post, accepted=reaction is Reaction.SOLVE, updated_at=now))
    forum.announce(Change(_EVENTS[reaction], post_id, by.id))


@router.post("/react")
async def reacts(request: Request, here: Here) -> Json:
    """Do what a member does: `{"reaction": "like", "post": 17, "by": "alice"}`."""
    values = await sent_values(request)
    try:
        reaction, post_id = Reaction(str(values.get("reaction"))), int(str(values.get("post")))
    except ValueError as exc:
        raise Refusal(422, {"errors": [f"expected reaction (one of {', '.join(Reaction)}), post and by"]}) from exc
    who = here.forum.member(str(values.get("by", "")))
    if who is None or post_id not in here.forum.posts:
        raise not_found()
    react(here.forum, reaction, post_id, by=who, now=here.desk.clock())
    return {"success": "OK"}
