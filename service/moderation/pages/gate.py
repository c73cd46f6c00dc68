"""The gate: its rules, what it decides on a message, what it declined of late, and rules that moderators add to it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service.answer.gate.added import read_rule
from service.answer.gate.decline import declined
from service.answer.gate.match import Decline, decide
from service.answer.gate.rules import GateKind, Rule, merged
from service.answer.messages import wordings
from service.domain import Lang
from service.errors import Misconfigured, Rejected
from service.moderation.access import Form, Moderator
from service.moderation.desk import Desk, Here
from service.moderation.layout import page, words_of
from service.moderation.rule_form import EMPTY, entered, rule_text
from service.store.figures import FigureStore
from service.store.flags import FlagStore
from service.store.gate_rules import AddedRule, GateRuleStore

SHOWN = 50
MAX_MESSAGE_CHARS = 50_000
MAX_REASON_CHARS = 500
SEE_OTHER = 303
router = APIRouter(prefix="/gate")


@dataclass(frozen=True, slots=True)
class Decided:
    """What the gate says to a message: None lets it through; `reply` is what its author would read."""

    found: Decline | None
    reply: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A rule, None where it can't be read; of an added one also who added it, and why it isn't tried if it isn't."""

    rule: Rule | None
    added: AddedRule
    fault: str


@router.get("")
async def gate(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    return await _page(request, here, me.person.admin, done=request.query_params.get("done") is not None)


@router.post("/test")
async def test(request: Request, here: Here, me: Moderator, form: Form) -> Response:
    """Decide on `message` as if its author had written the lines of `earlier` before; nothing of it is kept."""
    message = form.get("message", "")[:MAX_MESSAGE_CHARS]
    earlier = [line for line in form.get("earlier", "")[:MAX_MESSAGE_CHARS].splitlines() if line.strip()]
    found = await asyncio.to_thread(decide, await here.gate.read(), message, earlier)
    lang = words_of(request, here.settings.forum.language).lang
    reply = (
        declined(found, lang if lang in wordings() else Lang(here.settings.forum.language), seed=0) if found else None
    )
    decided = Decided(found, reply.markdown if reply else "")
    return await _page(request, here, me.person.admin, decided=decided, message=message, earlier="\n".join(earlier))


@router.post("/rules")
async def add(request: Request, here: Here, me: Moderator, form: Form) -> Response:
    """Try the rule of a form, and if `do` is "add" and it holds, add it because of `why`."""
    given = entered(form)
    try:
        rule_id, text = rule_text(form)
        await _check(here, rule_id, text)
        if form.get("do") != "add":
            return await _page(request, here, me.person.admin, given=given, tried=True)
        await GateRuleStore(here.pool).put(
            rule_id, text, by=me.person.username, user_id=me.person.user_id, reason=_reason(form)
        )
    except (Rejected, Misconfigured) as exc:
        status = exc.status if isinstance(exc, Rejected) else 422
        return await _page(request, here, me.person.admin, given=given, fault=str(exc), status=status)
    return RedirectResponse(f"{here.site.root}/gate?done=1#added", SEE_OTHER)


@router.post("/rules/remove")
async def remove(here: Here, me: Moderator, form: Form) -> Response:
    """Take the added rule `id` away, because of `why`."""
    await GateRuleStore(here.pool).remove(
        form.get("id", ""), by=me.person.username, user_id=me.person.user_id, reason=_reason(form)
    )
    return RedirectResponse(f"{here.site.root}/gate?done=1#added", SEE_OTHER)


def _reason(form: Mapping[str, str]) -> str:
    reason = form.get("why", "").strip()
    if not reason or len(reason) > MAX_REASON_CHARS:
        raise Rejected(f"a reason is kept with every change: 1 to {MAX_REASON_CHARS} characters", status=422)
    return reason


async def _check(here: Desk, rule_id: str, text: str) -> None:
    before = await here.gate.extended()
    after = await here.gate.tried(rule_id, text)
    for name, fault in after.faults.items():
        if name == rule_id or name not in before.faults:
            raise Rejected(f"{name}: {fault}", status=422)


def _shown(one: AddedRule, fault: str) -> Shown:
    try:
        return Shown(read_rule(one.text, one.rule_id), one, fault)
    except Misconfigured as exc:
        return Shown(None, one, str(exc))


def _by_kind(rules: Sequence[Rule]) -> list[tuple[GateKind, list[Rule]]]:
    return [(kind, [rule for rule in rules if rule.kind is kind]) for kind in GateKind]


async def _page(
    request: Request,
    here: Desk,
    admin: bool,
    *,
    given: Mapping[str, str] = EMPTY,
    status: int = 200,
    decided: Decided | None = None,
    message: str = "",
    earlier: str = "",
    **said: Any,
) -> HTMLResponse:
    store, in_use = GateRuleStore(here.pool), await here.gate.extended()
    added = await store.rules()
    files = here.gate.files
    return page(
        request,
        "gate.html",
        title="gate.title",
        status=status,
        on=(await FlagStore(here.pool).read()).input_gate,
        off=here.gate.off,
        kinds=list(GateKind),
        rule_languages=list(wordings()),
        rules=_by_kind(merged(files)),
        without=sorted({rule_id for file in files for rule_id in file.without}),
        added=[_shown(one, in_use.faults.get(one.rule_id, "")) for one in added],
        declines=await FigureStore(here.pool, admin=admin).declines(SHOWN),
        changes=await store.changes(SHOWN),
        given=given,
        decided=decided,
        message=message,
        earlier=earlier,
        **{"done": False, "fault": "", "tried": False, **said},
    )
