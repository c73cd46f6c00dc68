"""What becomes of one post of the forum: asked? allowed? answered, and posted once (spec P13, P14, P19, P20)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from service.answer.compose import compose
from service.answer.condense.condenser import Threads
from service.answer.condense.rules import HUMAN_TURNS
from service.answer.gate.admit import Gating
from service.answer.gate.compiled import Gate
from service.answer.gate.decline import Turns
from service.answer.gate.match import RECENT_TURNS
from service.answer.late import Wait, waited
from service.answer.limits import beyond_limit
from service.answer.pipeline import Stages
from service.answer.ports import FixedReply, FlagReader, Forum, Ledger
from service.answer.private import read_message
from service.answer.reply import Standing, adopted, deliver, look_again, switched_off
from service.answer.trigger import PRIVATE_MESSAGE, Bot, Kind, Trigger, place_refusal, post_refusal, read_trigger
from service.discourse.names import folded_name
from service.domain import (
    Duplicate,
    Lang,
    Outcome,
    Post,
    Posted,
    Shadowed,
    Skipped,
    SkipReason,
    Topic,
)
from service.settings import LimitSettings
from service.telemetry import OUTCOMES, WAITED_SECONDS, log


@dataclass(frozen=True, slots=True)
class Respond:
    """What responding works with; `default_lang` is a reply's language where the question's own can't be told."""

    stages: Stages
    flags: FlagReader
    ledger: Ledger
    forum: Forum
    bot: Bot
    limits: LimitSettings
    default_lang: Lang
    gate: Gate
    turns: Turns
    threads: Threads


async def respond(post: Post, deps: Respond, *, now: datetime) -> Outcome:
    """Answer this post if it asks us something, at most once whatever the number of calls and crashes.

    Raises Transient when it must be called again later, Misconfigured when a person must act first.
    """
    outcome = await _outcome(post, deps, now)
    name, reason = _labels(outcome)
    OUTCOMES.labels(name, reason).inc()
    if outcome != Skipped(SkipReason.NOT_ADDRESSED):
        log.info("responded", post_id=post.id, topic_id=post.topic_id, outcome=name, reason=reason)
    return outcome


async def give_up(post: Post, deps: Respond, *, now: datetime) -> Outcome:
    """Record that this post stays unanswered after its last try; a later edit is answered if no text was fixed."""
    outcome: Outcome
    # The text of a private message is not kept: where it may be answered, only its claim tells of it.
    unread = post.archetype == PRIVATE_MESSAGE and (await deps.flags.read()).private_messages
    refused = None if unread else post_refusal(post, deps.bot, replies_to_us=await _replies_to_us(post, deps))
    if refused:
        outcome = Skipped(refused)
        if refused is not SkipReason.NOT_ADDRESSED:
            await deps.ledger.record_skip(post, refused, now=now)
    elif (claim := await deps.ledger.claim(post, now=now)).finished:
        outcome = Duplicate()
    else:
        outcome = Skipped(SkipReason.GIVEN_UP)
        if claim.reply:
            await deps.ledger.finish(post.id, outcome, None, now=now)
        else:
            await _let_go(post, SkipReason.GIVEN_UP, deps, now)
    OUTCOMES.labels(*_labels(outcome)).inc()
    return outcome


async def _outcome(post: Post, deps: Respond, now: datetime) -> Outcome:
    if message := await read_message(post, deps.bot, deps.forum, deps.flags):
        post, bot, forum = message
        deps = replace(deps, bot=bot, forum=forum)
    replies_to_us = await _replies_to_us(post, deps)
    if reason := post_refusal(post, deps.bot, replies_to_us=replies_to_us):
        if reason is not SkipReason.NOT_ADDRESSED:
            await deps.ledger.record_skip(post, reason, now=now)
        return Skipped(reason)
    claim = await deps.ledger.claim(post, now=now)
    if claim.finished:
        return Duplicate()
    wait = waited(post, deps.limits, now)
    if claim.reply:
        return await _resume(post, claim.reply, replies_to_us, wait, deps, now)
    asked = await _asked(post, deps, now)
    if isinstance(asked, SkipReason):
        return await _let_go(post, asked, deps, now)
    recheck = partial(look_again, post, forum=deps.forum, bot=deps.bot, replies_to_us=replies_to_us, wait=wait)
    WAITED_SECONDS.observe(wait.seconds)
    gate = await _gating(post, deps)
    before = await deps.threads.before(post, HUMAN_TURNS - 1)
    composed = await compose(
        post, *asked, deps.stages, recheck, default_lang=deps.default_lang, gate=gate, before=before, wait=wait
    )
    if composed.standing.refusal:
        return await _let_go(post, composed.standing.refusal, deps, now)
    reply = await deps.ledger.fix_reply(post.id, composed.reply, composed.trace)
    return await _deliver(composed.standing, reply, deps, now)


async def _gating(post: Post, deps: Respond) -> Gating | None:
    """The gate with what it has to know of this member, if it is on at this moment."""
    if not (await deps.flags.read()).input_gate:
        return None
    return Gating(deps.gate, await deps.turns.before(post, RECENT_TURNS))


async def _resume(
    post: Post, reply: FixedReply, replies_to_us: bool, wait: Wait, deps: Respond, now: datetime
) -> Outcome:
    """An earlier attempt fixed this text and may have posted it: look first, then post those bytes.

    They stay what they are when the question became late meanwhile; where people have answered, nothing is posted.
    """
    if found := await deps.forum.our_reply_to(post.id):
        outcome, number = adopted(found, reply.result)
        await deps.ledger.finish(post.id, outcome, None, reply_post_number=number, now=now)
        return outcome
    standing = await look_again(post, reply, deps.forum, deps.bot, replies_to_us=replies_to_us, wait=wait)
    if _too_old(post, deps, now):
        standing = replace(standing, refusal=SkipReason.TOO_OLD)
    return await _deliver(standing, reply, deps, now)


async def _deliver(standing: Standing, reply: FixedReply, deps: Respond, now: datetime) -> Outcome:
    flags = await deps.flags.read()
    outcome, number = await deliver(standing, reply, flags, deps.forum)
    await deps.ledger.finish(standing.question.id, outcome, None, reply_post_number=number, now=now)
    return outcome


async def _let_go(post: Post, reason: SkipReason, deps: Respond, now: datetime) -> Outcome:
    """Give the claim back, so that a later event may be answered, and record why this one wasn't."""
    await deps.ledger.release(post.id)
    waited_seconds = waited(post, deps.limits, now).seconds
    await deps.ledger.record_skip(post, reason, now=now, waited_seconds=waited_seconds)
    return Skipped(reason)


async def _replies_to_us(post: Post, deps: Respond) -> bool:
    """Whether it replies to a post of ours: by the name in the event, else by the ledger."""
    if post.reply_to_post_number is None:
        return False
    if post.reply_to_username is not None:
        return folded_name(post.reply_to_username) == folded_name(deps.bot.username)
    return await deps.ledger.is_own_reply(post.topic_id, post.reply_to_post_number)


def _too_old(post: Post, deps: Respond, now: datetime) -> bool:
    return post.updated_at < now - timedelta(minutes=deps.limits.max_age_minutes)


async def _asked(post: Post, deps: Respond, now: datetime) -> tuple[Trigger, Topic] | SkipReason:
    """What a claimed post asks, or why it gets no answer now."""
    if _too_old(post, deps, now):
        return SkipReason.TOO_OLD
    flags = await deps.flags.read()
    if reason := switched_off(flags):
        return reason
    topic = await deps.forum.public_topic(post.topic_id)
    if topic is None:
        return SkipReason.TOPIC_GONE
    if reason := place_refusal(topic, staged=await deps.forum.is_staged(post.username), messages=deps.bot.messages):
        return reason
    trigger = read_trigger(post, topic, deps.bot, max_chars=deps.stages.settings.question_chars)
    if isinstance(trigger, SkipReason):
        return trigger
    if reason := switched_off(flags, topic.category_id):
        return reason
    if trigger.kind is Kind.HELP and await deps.ledger.help_given(post.topic_id):
        return SkipReason.HELP_GIVEN
    beyond = await beyond_limit(
        post, topic, flags, deps.limits, ledger=deps.ledger, groups_of=deps.forum.groups_of, now=now
    )
    return beyond or (trigger, topic)


def _labels(outcome: Outcome) -> tuple[str, str]:
    match outcome:
        case Posted(result=result, enqueued=enqueued, adopted=was_adopted):
            return ("enqueued" if enqueued else "adopted" if was_adopted else "posted"), result
        case Shadowed(result=result):
            return "shadowed", result
        case Skipped(reason=reason):
            return "skipped", reason
        case Duplicate():
            return "duplicate", "none"
