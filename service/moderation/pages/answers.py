"""The answers: a list with filters, and each one with all that led to it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.answer.ports import Deed, DeedKind
from service.domain import CategoryId, PostId, Result, SkipReason, Zone
from service.errors import Rejected
from service.moderation.access import Moderator, Session
from service.moderation.desk import Desk, Here
from service.moderation.layout import page
from service.moderation.traced import traced
from service.store.answers import AnswerRecord, AnswerStore, Wanted
from service.store.corpus import CorpusStore
from service.store.deeds import DONE, DeedStore
from service.store.signals import SignalStore

PAGE_SIZE = 40
MOST_PAGES = 500
COUNTED_DAYS = 30
"""What the counts of the list are of."""
TEXT_CHARS = 200
SLICES = ("paraphrase", "followup", "typo", "unanswerable", "offtopic")
"""What a test question can be, in the words of questions.yml."""
NOTHING_SENT: Mapping[str, str] = {}
OUTCOMES = ("posted", "shadowed", "skipped")
router = APIRouter(prefix="/answers")


@router.get("")
async def answers(request: Request, here: Here, me: Moderator) -> HTMLResponse:
    wanted, number = _wanted(request.query_params), page_number(request.query_params)
    store, admin = AnswerStore(here.pool), me.person.admin
    found = await store.listed(wanted, admin=admin, limit=PAGE_SIZE + 1, offset=(number - 1) * PAGE_SIZE)
    known = (await CorpusStore(here.pool).categories()).values()
    base_url = here.settings.forum.base_url
    return page(
        request,
        "answers.html",
        title="answers.title",
        found=[(one, thread_url(one.slug, one.topic_id, one.post_number, base_url)) for one in found[:PAGE_SIZE]],
        wanted=wanted,
        outcomes=OUTCOMES,
        results=[*Result, *SkipReason],
        zones=list(Zone),
        categories=sorted(
            (one for one in known if admin or not one.read_restricted), key=lambda one: one.name.casefold()
        ),
        counts=await store.counts(admin=admin, since=here.clock() - timedelta(days=COUNTED_DAYS)),
        days=COUNTED_DAYS,
        earlier=_query(request, number - 1) if number > 1 else None,
        more=_query(request, number + 1) if len(found) > PAGE_SIZE and number < MOST_PAGES else None,
    )


@router.get("/{post_id}")
async def answer(request: Request, post_id: int, here: Here, me: Moderator) -> HTMLResponse:
    return await shown(request, here, await readable(post_id, here, me), done=request.query_params.get("done", ""))


async def readable(post_id: int, here: Desk, me: Session) -> AnswerRecord:
    """The answer to this post; raises Rejected (404) where there is none that this moderator may see."""
    found = None
    if 0 < post_id < 2**63:
        found = await AnswerStore(here.pool).one(PostId(post_id), admin=me.person.admin)
    if found is None:
        raise Rejected("nothing is kept of an answer to this post", status=404)
    return found


async def shown(
    request: Request,
    here: Desk,
    record: AnswerRecord,
    *,
    done: str = "",
    fault: str = "",
    status: int = 200,
    sent: Mapping[str, str] = NOTHING_SENT,
) -> HTMLResponse:
    """The page of one answer; after a change, what was `done`, or the `fault` in the way of what was `sent`."""
    base_url, trace = here.settings.forum.base_url, record.trace
    deeds = await DeedStore(here.pool).of(record.post_id)
    return page(
        request,
        "answer.html",
        title="answers.one_title",
        status=status,
        done=done,
        fault=fault,
        one=record,
        thread=thread_url(record.slug, record.topic_id, record.post_number, base_url),
        reply=thread_url(record.slug, record.topic_id, record.reply_post_number, base_url),
        slices=SLICES,
        signals=await SignalStore(here.pool).of(record.post_id),
        deeds=deeds,
        settled=settled(deeds),
        waits={one.kind for one in deeds if one.outcome is None},
        text=sent.get("raw") or record.raw or _read_text(deeds),
        alerts=await AnswerStore(here.pool).alerts(record.post_id),
        **traced(trace, base_url, {one.n for one in trace.sources if one.post_id in record.cited}),
    )


def settled(deeds: Sequence[Deed]) -> set[str]:
    """The kinds of what waits, or was done."""
    return {one.kind for one in deeds if one.outcome in (None, DONE)}


def _read_text(deeds: Sequence[Deed]) -> str:
    """What our post said when a worker last read it for a correction; empty where that isn't kept."""
    return next((one.raw for one in reversed(deeds) if one.kind == DeedKind.READ and one.raw), "")


def thread_url(slug: str, topic_id: int, post_number: int | None, base_url: str) -> str | None:
    """The address of a post by its number; None without one."""
    return None if post_number is None else f"{base_url}/t/{slug or '-'}/{topic_id}/{post_number}"


def _wanted(asked: Mapping[str, str]) -> Wanted:
    """The filters as asked for; what is none of them is left aside."""
    category = asked.get("category", "")
    day = None
    with suppress(ValueError):
        day = date.fromisoformat(asked.get("day", ""))
    return Wanted(
        outcome=_one_of(OUTCOMES, asked.get("outcome")),
        result=_one_of((*Result, *SkipReason), asked.get("result")),
        zone=_one_of(tuple(Zone), asked.get("zone")),
        category=CategoryId(int(category)) if category.isdecimal() and len(category) < 19 else None,
        day=day,
        text=" ".join(asked.get("text", "")[:TEXT_CHARS].split()),
    )


def _one_of(allowed: tuple[str, ...], asked: str | None) -> str | None:
    return asked if asked in allowed else None


def page_number(asked: Mapping[str, str]) -> int:
    """The page of a list that is asked for; the first where that is none."""
    number = asked.get("page", "1")
    return min(max(int(number), 1), MOST_PAGES) if number.isdecimal() and len(number) < 9 else 1


def _query(request: Request, number: int) -> str:
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in ("page", "lang")]
    return urlencode([*kept, ("page", str(number))])
