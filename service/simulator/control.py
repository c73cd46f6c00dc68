"""The simulator's own end points, for this machine only: switches, deliveries, approvals, a topic's state."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request

from service.simulator.model import SYSTEM, Change, Event, Member
from service.simulator.moderation import asked_for, carry_out
from service.simulator.refusals import Refusal, forbidden, not_found
from service.simulator.rights import readable_posts, sees_topic
from service.simulator.room import Here, Room, current_member, sent_values
from service.simulator.shapes import Json, created_post, stamp
from service.simulator.switches import switch_from_json
from service.simulator.waiting import is_waiting
from service.simulator.webhooks import Delivery, Webhooks


async def local_only(request: Request) -> None:
    """Refuse clients of other machines, and names that other sites may point here."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    if not (request.client and _is_loopback(request.client.host)) or not (host == "localhost" or _is_loopback(host)):
        raise forbidden()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def same_site(request: Request) -> None:
    """Refuse what another site's page sends: a changing request must come from our own pages or be JSON of no page."""
    if request.method in {"GET", "HEAD"}:
        return
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise forbidden()
    if site not in {None, "same-origin", "none"}:
        raise forbidden()
    kind = request.headers.get("content-type", "").partition(";")[0]
    if origin is None and site is None and kind not in {"application/json", ""}:
        raise forbidden()


router = APIRouter(prefix="/simulator", dependencies=[Depends(local_only), Depends(same_site)])


@router.get("/switches.json")
async def list_switches(here: Here) -> list[Json]:
    return [switch.as_json() for switch in here.switches]


@router.post("/switches")
async def turn_on(request: Request, here: Here) -> Json:
    """Turn a fault on: `{"fault": "status", "status": 429, "path": "/posts", "times": 1, ...}`."""
    try:
        return switch_from_json(here.switches, await sent_values(request)).as_json()
    except (TypeError, ValueError) as exc:
        raise Refusal(422, {"errors": [str(exc)]}) from exc


@router.delete("/switches")
async def turn_off(here: Here, switch_id: int | None = None) -> list[Json]:
    here.switches.turn_off(switch_id)
    return await list_switches(here)


def _hooks(here: Room) -> Webhooks:
    if here.webhooks is None:
        raise not_found()
    return here.webhooks


def delivery_json(delivery: Delivery) -> Json:
    return {
        "id": delivery.id,
        "event": delivery.event.value,
        "object_id": delivery.object_id,
        "at": stamp(delivery.at),
        "status": delivery.status,
        "took_ms": None if delivery.took_ms is None else round(delivery.took_ms, 1),
        "note": delivery.note,
    }


@router.get("/deliveries.json")
async def deliveries(here: Here) -> list[Json]:
    return [delivery_json(d) for d in _hooks(here).kept.values()]


@router.post("/deliveries/{delivery_id}/redeliver")
async def redeliver(delivery_id: int, here: Here) -> Json:
    if delivery_id not in _hooks(here).kept:
        raise not_found()
    return delivery_json(_hooks(here).redeliver(delivery_id))


@router.post("/ping")
async def ping(here: Here) -> Json:
    return delivery_json(_hooks(here).send(Change(Event.PING, 0)))


@router.post("/pending/{pending_id}/approve")
async def approve(pending_id: int, here: Here) -> Json:
    waiting = next((p for p in here.desk.pending if p.id == pending_id), None)
    if waiting is None:
        raise not_found()
    return created_post(here.forum, here.desk.approve(pending_id), waiting.member)


@router.post("/moderate")
async def moderate(request: Request, here: Here) -> Json:
    """Do what a moderator does: `{"deed": "move", "target": 17, "value": "12"}`; moderation.Deed has the deeds."""
    try:
        deed, target, value = asked_for(await sent_values(request))
        carry_out(here.forum, deed, target, value, by=_staff(here), now=here.desk.clock())
    except KeyError as exc:
        raise not_found() from exc
    except ValueError as exc:
        raise Refusal(422, {"errors": [str(exc)]}) from exc
    return {"success": "OK"}


def _staff(here: Room) -> Member:
    return next((member for member in here.forum.members.values() if member.staff), SYSTEM)


@router.get("/topics/{topic_id}/state.json")
async def topic_state(topic_id: int, request: Request, here: Here) -> dict[str, Any]:
    """What a topic page polls: `version` differs as soon as a post came, changed or went."""
    topic, member = here.forum.topics.get(topic_id), current_member(request, here)
    if topic is None or not sees_topic(here.forum, member, topic):
        raise not_found()
    posts = readable_posts(here.forum, member, topic)
    latest = max((p.updated_at for p in posts), default=topic.updated_at)
    return {"version": f"{len(posts)}-{stamp(latest)}", "waiting": is_waiting(here, topic)}
