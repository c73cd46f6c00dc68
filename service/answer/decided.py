"""Carries out what moderators decide about answers: posts one from shadow, hides, edits or reads a post of ours."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from service.answer.messages import Message, message
from service.answer.ports import (
    AnsweredPost,
    AnsweringMode,
    Deed,
    DeedKind,
    Deeds,
    FlagReader,
    Forum,
    Ledger,
    OwnPosts,
)
from service.answer.private import MessageForum
from service.answer.reply import CONFLICT, adopted, deliver, look_again
from service.answer.trigger import Bot
from service.domain import Lang, Posted, PostId, Skipped, SkipReason
from service.errors import Misconfigured, Rejected, Transient
from service.telemetry import OUTCOMES, log

FORBIDDEN, GONE, REFUSED = 403, (404, 410), 422
WHY = "Ariane: "
"""Begins the reason that the forum keeps with an edit."""


class NotDone(StrEnum):
    """Why a deed came to nothing, beside the reasons of a skip."""

    NOTHING_TO_DO = "nothing_to_do"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Decided:
    """What carrying out works with; `lang` is the forum's."""

    deeds: Deeds
    ledger: Ledger
    flags: FlagReader
    forum: Forum
    own: OwnPosts
    bot: Bot
    lang: Lang


async def carry_out(deed_id: int, deps: Decided, *, last_try: bool, now: datetime) -> None:
    """Do what was decided, unless it was done; it is closed with what came of it.

    Raises Transient when it must be called again later, and Misconfigured; on the `last_try` it is closed before.
    """
    deed = await deps.deeds.waiting(deed_id)
    if deed is None:
        return
    try:
        await _carry_out(deed, deps, now)
    except (Transient, Misconfigured):
        if last_try:
            await deps.deeds.refused(deed, NotDone.GIVEN_UP, now=now)
        raise
    log.info("deed_carried_out", deed=deed.kind, post_id=deed.post_id, by=deed.by)


async def _carry_out(deed: Deed, deps: Decided, now: datetime) -> None:
    answered = await deps.deeds.answered(deed.post_id)
    if answered is None:
        await deps.deeds.refused(deed, NotDone.NOTHING_TO_DO, now=now)
    elif deed.kind == DeedKind.POST:
        await _post(deed, answered, deps, now)
    elif answered.reply_post_id is None:
        await deps.deeds.refused(deed, NotDone.NOTHING_TO_DO, now=now)
    elif deed.kind == DeedKind.EDIT and deed.raw:
        await _edit(deed, answered.reply_post_id, deed.raw, deps, now)
    elif deed.kind == DeedKind.READ:
        await _read(deed, answered.reply_post_id, deps, now)
    elif deed.kind == DeedKind.HIDE:
        await _hide(deed, answered.reply_post_id, deps, now)
    else:
        await deps.deeds.refused(deed, NotDone.NOTHING_TO_DO, now=now)


async def _post(deed: Deed, answered: AnsweredPost, deps: Decided, now: datetime) -> None:
    """Post the text that was kept in shadow: an attempt before this one may have, so the forum is looked at first."""
    if answered.outcome != "shadowed" or not answered.reply.raw:
        await deps.deeds.refused(deed, NotDone.NOTHING_TO_DO, now=now)
        return
    reply, forum, bot = answered.reply, deps.forum, deps.bot
    if answered.private:
        forum, bot = MessageForum(forum, deed.post_id, answered.topic_id), replace(bot, messages=True)
    if found := await forum.our_reply_to(deed.post_id):
        outcome, number = adopted(found, reply.result)
    else:
        question = await forum.public_post(deed.post_id)
        if question is None:
            await deps.deeds.refused(deed, SkipReason.POST_GONE, now=now)
            return
        number = question.reply_to_post_number
        to_us = number is not None and await deps.ledger.is_own_reply(question.topic_id, number)
        standing = await look_again(question, reply, forum, bot, replies_to_us=to_us)
        flags = await deps.flags.read()
        # The moderator decided on what shadow mode held back; what is switched off stays off.
        if flags.answering_in(standing.category_id) is AnsweringMode.SHADOW:
            flags = replace(flags, answering=AnsweringMode.ON, categories={})
        outcome, number = await deliver(standing, reply, flags, forum)
    if isinstance(outcome, Posted):
        await deps.deeds.posted(deed, outcome, number, now=now)
        OUTCOMES.labels("posted", outcome.result).inc()
    else:
        why = outcome.reason if isinstance(outcome, Skipped) else SkipReason.ANSWERING_OFF
        await deps.deeds.refused(deed, why, now=now)


async def _edit(deed: Deed, reply: PostId, raw: str, deps: Decided, now: datetime) -> None:
    try:
        await deps.own.edit_own(reply, raw, why=f"{WHY}{deed.reason}")
    except Rejected as exc:
        await deps.deeds.refused(deed, _why(exc), now=now)
    else:
        await deps.deeds.edited(deed, raw, now=now)


async def _read(deed: Deed, reply: PostId, deps: Decided, now: datetime) -> None:
    raw = await deps.own.own_text(reply)
    if raw is None:
        await deps.deeds.refused(deed, SkipReason.POST_GONE, now=now)
    else:
        await deps.deeds.read(deed, raw, now=now)


async def _hide(deed: Deed, reply: PostId, deps: Decided, now: datetime) -> None:
    """Delete our post; where the key may not, let a short note stand in its place."""
    try:
        await deps.own.delete_own(reply)
    except Rejected as exc:
        # Forbidden is also what was taken back before we were killed.
        if exc.status in GONE or (exc.status == FORBIDDEN and await deps.own.own_text(reply) is None):
            await deps.deeds.hidden(deed, now=now)
        elif exc.status == FORBIDDEN:
            await _blank(deed, reply, deps, now)
        else:
            await deps.deeds.refused(deed, _why(exc), now=now)
    else:
        await deps.deeds.hidden(deed, now=now)


async def _blank(deed: Deed, reply: PostId, deps: Decided, now: datetime) -> None:
    note = message(Message.WITHDRAWN, deps.lang, deed.post_id, reference=str(deed.post_id))
    try:
        await deps.own.edit_own(reply, note, why=f"{WHY}{deed.reason}")
    except Rejected as exc:
        await deps.deeds.refused(deed, _why(exc), now=now)
    else:
        await deps.deeds.hidden(deed, now=now)


def _why(exc: Rejected) -> SkipReason:
    """What the forum's refusal means; raises Transient for one that may pass."""
    if exc.status == CONFLICT:
        raise Transient(f"the forum reports a conflict: {exc}") from exc
    if exc.status in GONE:
        return SkipReason.POST_GONE
    return SkipReason.FORUM_FORBIDS if exc.status == FORBIDDEN else SkipReason.FORUM_REFUSED
