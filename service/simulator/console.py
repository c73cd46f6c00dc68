"""The simulator's own pages: what was delivered, and what is made to go wrong."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service.simulator import views
from service.simulator.control import local_only, same_site
from service.simulator.pages import render
from service.simulator.room import Here, Room, sent_id, sent_texts
from service.simulator.switches import Body, Fault, switch_from_json

SHOWN = 100
router = APIRouter(prefix="/simulator", dependencies=[Depends(local_only), Depends(same_site)], include_in_schema=False)


@router.get("/deliveries")
async def deliveries(request: Request, here: Here) -> HTMLResponse:
    hooks = here.webhooks
    rows = [] if hooks is None else list(reversed(hooks.kept.values()))[:SHOWN]
    now = here.desk.clock()
    return render(
        "deliveries.html",
        request,
        here,
        hook=hooks.hook if hooks else None,
        rows=[(d, views.when(d.at, now), d.body.decode()[:4000]) for d in rows],
    )


@router.get("/switches")
async def switches(request: Request, here: Here) -> HTMLResponse:
    return _switches_page(request, here, fault="", status=200)


def _switches_page(request: Request, here: Room, *, fault: str, status: int) -> HTMLResponse:
    return render(
        "switches.html",
        request,
        here,
        status=status,
        on=list(here.switches),
        faults=list(Fault),
        bodies=list(Body),
        pending=here.desk.pending,
        fault=fault,
    )


@router.post("/form")
async def change(request: Request, here: Here) -> Response:
    """The forms of both pages: turn a fault on or off, approve a post, send a delivery again."""
    fields = await sent_texts(request)
    action, chosen = fields.pop("action", ""), sent_id(fields.pop("id", "")) or 0
    back = f"{here.forum.base_path}/simulator/switches"
    try:
        if action == "on":
            switch_from_json(here.switches, fields)
        elif action == "off":
            here.switches.turn_off(chosen or None)
        elif action == "approve" and any(p.id == chosen for p in here.desk.pending):
            here.desk.approve(chosen)
        elif action == "redeliver" and here.webhooks and chosen in here.webhooks.kept:
            here.webhooks.redeliver(chosen)
            back = f"{here.forum.base_path}/simulator/deliveries"
    except ValueError as exc:
        return _switches_page(request, here, fault=str(exc), status=422)
    return RedirectResponse(back, 303)
