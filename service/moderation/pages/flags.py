"""The switches: how they stand, who turned them and why, and forms that turn them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from service.answer.activation import held, told
from service.answer.ports import AnsweringMode, Flags
from service.domain import Category, CategoryId
from service.errors import Rejected
from service.moderation.access import Form, Moderator, SentJson, Session
from service.moderation.desk import Desk, Here
from service.moderation.layout import page
from service.store.corpus import CorpusStore
from service.store.flag_names import ALLOWED, DEFAULT, Scope, Scoped, allowed, check, limits_of, scoped
from service.store.flags import FlagChange, FlagStore

SHOWN_CHANGES = 50
SEE_OTHER = 303
router = APIRouter(prefix="/flags")
api = APIRouter(prefix="/api/flags")


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of the whole forum, as it stands and as it may be."""

    name: str
    value: str
    values: tuple[str, ...]


@router.get("")
async def flags(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    return await _page(request, here, me.person.admin, done=request.query_params.get("done") is not None)


@router.post("")
async def change(request: Request, here: Here, me: Moderator, form: Form) -> Response:
    """Turn what a form names (`name`, or `category` with `what`, or `group`) to `value`, because of `why`.

    A limit without a value is taken away.
    """
    try:
        await _turn(here, me, _named(form), form.get("value", "").strip() or DEFAULT, form.get("why", ""))
    except Rejected as exc:
        return await _page(request, here, me.person.admin, fault=str(exc), status=exc.status)
    return RedirectResponse(f"{here.site.root}/flags?done=1", SEE_OTHER)


@api.get("")
async def present(here: Here) -> JSONResponse:
    """Every switch by its name, those of categories and groups where they are set, and how the activation stands."""
    read, activated = await FlagStore(here.pool).read(), await here.switches.activation()
    held_back = held(activated, here.settings.activation.on_change)
    return JSONResponse(
        {
            "flags": {**_values(read), **dict(limits_of(read))},
            "activation": {"state": activated.state, "told": told(activated), "in_shadow": held_back},
        }
    )


@api.get("/changes")
async def changes(here: Here, limit: int = SHOWN_CHANGES) -> JSONResponse:
    """The latest changes, newest first; 500 at most."""
    found = await FlagStore(here.pool).changes(max(1, min(limit, 500)))
    return JSONResponse({"changes": [_as_json(one) for one in found]})


@api.post("")
async def turn(here: Here, me: Moderator, sent: SentJson) -> JSONResponse:
    """Turn the switch `name` to `value`, because of `why`; gives what `GET` does."""
    fields = {field: sent.get(field, "") for field in ("name", "value", "why")}
    if not all(isinstance(value, str) for value in fields.values()):
        raise Rejected("name, value and why are texts", status=422)
    await _turn(here, me, fields["name"], fields["value"], fields["why"])
    return await present(here)


async def _turn(here: Desk, me: Session, name: str, value: str, why: str) -> None:
    check(name, value)
    await here.switches.turn(name, value, by=me.person.username, user_id=me.person.user_id, reason=why.strip())


def _named(form: Mapping[str, str]) -> str:
    if group := form.get("group", "").strip():
        return f"group:{group}:per_hour"
    if category := form.get("category", ""):
        return f"category:{category}{':per_hour' if form.get('what') == 'per_hour' else ''}"
    return form.get("name", "")


def _values(read: Flags) -> dict[str, str]:
    return {
        "answering": read.answering.value,
        "posts_pipeline": "on" if read.posts_pipeline else "off",
        "input_gate": "on" if read.input_gate else "off",
        "private_messages": "on" if read.private_messages else "off",
    }


def _as_json(one: FlagChange) -> dict[str, Any]:
    return {
        "name": one.name,
        "from": one.old_value,
        "to": one.new_value,
        "at": one.changed_at.isoformat(),
        "by": one.changed_by,
        "user_id": one.changed_by_user_id,
        "why": one.reason,
    }


async def _page(
    request: Request, here: Desk, admin: bool, *, done: bool = False, fault: str = "", status: int = 200
) -> HTMLResponse:
    store = FlagStore(here.pool)
    read, activated = await store.read(), await here.switches.activation()
    known = await CorpusStore(here.pool).categories()
    categories = {of: one for of, one in known.items() if admin or not one.read_restricted}
    return page(
        request,
        "flags.html",
        title="flags.title",
        status=status,
        done=done,
        fault=fault,
        switches=[Switch(name, value, allowed(name) or ()) for name, value in _values(read).items()],
        ungated=read.answering is AnsweringMode.ON and not read.input_gate,
        activation=activated,
        told=told(activated),
        held_back=read.answering is AnsweringMode.ON and held(activated, here.settings.activation.on_change),
        categories=sorted(categories.values(), key=lambda one: one.name.casefold()),
        modes=(DEFAULT, *ALLOWED["answering"]),
        limits=[(name, value, _label(scoped(name), categories)) for name, value in limits_of(read)],
        changes=[(one, _label(scoped(one.name), categories)) for one in await store.changes(SHOWN_CHANGES)],
    )


def _label(about: Scoped | None, categories: Mapping[CategoryId, Category]) -> tuple[str, str]:
    """What a category's or group's switch is, and the name of that category or group; both empty for another."""
    if about is None:
        return "", ""
    if about.scope is Scope.GROUP_LIMIT:
        return about.scope, about.of
    known = categories.get(CategoryId(int(about.of)))
    return about.scope, known.name if known else about.of
