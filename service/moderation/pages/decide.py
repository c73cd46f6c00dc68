"""What a moderator decides about an answer: post it, hide it, correct it, say why it was wrong, make a test of it."""

from collections.abc import Mapping, Sequence

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from service.answer.ports import Deed, DeedKind
from service.domain import ENGLISH
from service.errors import Rejected
from service.jobs import NewJob, TaskName, defer_jobs
from service.moderation.access import Form, Moderator, Session
from service.moderation.desk import Desk, Here
from service.moderation.labels import NEGATIVE, golden_of
from service.moderation.pages.answers import SLICES, readable, router, settled, shown
from service.store import checked_questions
from service.store.answers import AnswerRecord
from service.store.checked_questions import CheckedQuestion
from service.store.deeds import CARRIED_OUT, DeedStore, NewDeed
from service.store.pool import Connection

SEE_OTHER = 303
WHY_CHARS = 500
QUESTION_CHARS = 1500
SHORTEST, LONGEST = 20, 32_000
"""Characters of a post that Discourse takes, unless its settings say otherwise (docs/discourse, section 5)."""
AGAIN = "again"

_KINDS = {
    "post": DeedKind.POST,
    "hide": DeedKind.HIDE,
    "edit": DeedKind.EDIT,
    "read": DeedKind.READ,
    "wrong": DeedKind.WRONG,
    "test-question": DeedKind.TEST_QUESTION,
}
"""The last part of the address of each decision's form."""

_NEEDS_REASON = frozenset({DeedKind.HIDE, DeedKind.EDIT, DeedKind.WRONG, DeedKind.TEST_QUESTION})

__all__ = ["router"]


@router.post("/{post_id}/{asked}")
async def decide(request: Request, post_id: int, asked: str, here: Here, me: Moderator, form: Form) -> Response:
    """Keep a decision and have the worker carry it out, in one transaction; never twice."""
    record = await readable(post_id, here, me)
    if asked not in _KINDS:
        raise Rejected("there is no such decision", status=404)
    try:
        kept = await _keep(record, _KINDS[asked], here, me, form)
    except Rejected as exc:
        return await shown(request, here, record, fault=str(exc), status=exc.status, sent=form)
    return RedirectResponse(f"{here.site.root}/answers/{post_id}?done={asked if kept else AGAIN}", SEE_OTHER)


async def _keep(record: AnswerRecord, kind: DeedKind, here: Desk, me: Session, form: Mapping[str, str]) -> bool:
    """Whether the decision is new; raises Rejected for one that can't be."""
    why = form.get("why", "").strip()
    if len(why) > WHY_CHARS or (kind in _NEEDS_REASON and not why):
        raise Rejected(f"a reason is kept: 1 to {WHY_CHARS} characters", status=422)
    raw = _new_text(form) if kind is DeedKind.EDIT else None
    checked = _checked_question(record, form, why) if kind is DeedKind.TEST_QUESTION else None
    _require(record, kind, await DeedStore(here.pool).of(record.post_id))
    deed = NewDeed(record.post_id, kind, why, me.person.username, me.person.user_id, raw)
    now = here.clock()

    async def follow(conn: Connection, deed_id: int) -> None:
        if kind in CARRIED_OUT:
            await defer_jobs(conn, [NewJob(TaskName.CARRY_OUT, f"deeds:{record.post_id}", {"deed_id": deed_id})])
        if checked:
            await checked_questions.put(conn, checked, by=deed.by, user_id=deed.by_user_id, now=now)

    return await DeedStore(here.pool).ask(deed, follow, now=now) is not None


def _require(record: AnswerRecord, kind: DeedKind, deeds: Sequence[Deed]) -> None:
    """Refuse what the answer isn't in the state for; the worker looks again."""
    if kind is DeedKind.POST and not (record.outcome == "shadowed" and record.raw):
        raise Rejected("only an answer in shadow, whose text is still kept, can be posted", status=409)
    if kind in (DeedKind.HIDE, DeedKind.EDIT, DeedKind.READ) and record.reply_post_id is None:
        raise Rejected("the forum has no post of ours for this answer", status=409)
    if kind in (DeedKind.EDIT, DeedKind.READ) and DeedKind.HIDE in settled(deeds):
        raise Rejected("our post was hidden, or is about to be", status=409)


def _new_text(form: Mapping[str, str]) -> str:
    raw = form.get("raw", "").replace("\r\n", "\n").strip()
    if not SHORTEST <= len(raw) <= LONGEST:
        raise Rejected(f"a post has {SHORTEST} to {LONGEST:,} characters", status=422)
    return raw


def _checked_question(record: AnswerRecord, form: Mapping[str, str], note: str) -> CheckedQuestion:
    question = " ".join(form.get("question", "").split())
    slice_ = form.get("slice", "")
    golden = golden_of(form)
    if not 0 < len(question) <= QUESTION_CHARS:
        raise Rejected(f"a question has 1 to {QUESTION_CHARS:,} characters", status=422)
    if slice_ not in SLICES:
        raise Rejected(f"a question is one of {', '.join(SLICES)}", status=422)
    if (slice_ in NEGATIVE) == bool(golden):
        raise Rejected("name the posts that answer it, or say that nothing does", status=422)
    return CheckedQuestion(record.post_id, slice_, record.trace.lang or ENGLISH, question, golden, note)
