"""Puts a fixed reply on the forum once: looks before it posts, knows what each refusal means (spec P13, ADR 0005)."""

from dataclasses import dataclass, replace

from service.answer.late import SAID_ANYHOW, Wait, answered_by_people
from service.answer.ports import AnsweringMode, CreatedReply, FixedReply, Flags, Forum
from service.answer.trigger import PRIVATE_MESSAGE, Bot, place_refusal, post_refusal, withdrawal
from service.domain import (
    CategoryId,
    Outcome,
    Post,
    Posted,
    PostId,
    PostType,
    Result,
    Shadowed,
    Skipped,
    SkipReason,
    Topic,
    TopicId,
)
from service.errors import Rejected, Transient, Unsure

_REFUSALS = {403: SkipReason.FORUM_FORBIDS, 404: SkipReason.TOPIC_GONE}
CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Standing:
    """The forum just before posting: the question as it is now, why it gets no answer, cited posts that are gone.

    `category_id` is where the question stands now, None where it can't be read.
    """

    question: Post
    refusal: SkipReason | None
    gone: frozenset[PostId]
    category_id: CategoryId | None = None


async def look_again(
    post: Post, reply: FixedReply, forum: Forum, bot: Bot, *, replies_to_us: bool, wait: Wait | None = None
) -> Standing:
    """Read the question and every cited post again, as an anonymous reader; raises Transient.

    Where the question's `wait` made it late, what people have written since is read too.
    """
    question = await forum.public_post(post.id)
    if question is None:
        return Standing(post, SkipReason.POST_GONE, frozenset())
    if bot.messages:
        question = replace(question, archetype=PRIVATE_MESSAGE)
    topic = await forum.public_topic(question.topic_id)
    refused = withdrawal(question) or post_refusal(question, bot, replies_to_us=replies_to_us)
    refusal = refused or place_refusal(topic, staged=False, messages=bot.messages)
    if refusal:
        return Standing(question, refusal, frozenset())
    late = wait is not None and wait.late and reply.result not in SAID_ANYHOW
    if wait and late and await answered_by_people(question, wait.since, forum, bot):
        return Standing(question, SkipReason.ANSWERED_BY_PEOPLE, frozenset())
    topics = {question.topic_id: topic}
    gone = {cited for cited in reply.cited if not await _still_there(cited, reply.raw, forum, topics)}
    return Standing(question, None, frozenset(gone), topic.category_id if topic else None)


async def _still_there(cited: PostId, raw: str, forum: Forum, topics: dict[TopicId, Topic | None]) -> bool:
    """Whether the public sees the cited post where the link says."""
    post = await forum.public_post(cited)
    if post is None or withdrawal(post) or post.post_type != PostType.REGULAR:
        return False
    if f"/{post.topic_id}/{post.post_number})" not in raw:  # moved: the link would lead elsewhere
        return False
    if post.topic_id not in topics:
        topics[post.topic_id] = await forum.public_topic(post.topic_id)
    topic = topics[post.topic_id]
    # An unlisted topic can be read by who has its address; a link from us would give it away.
    return topic is not None and topic.visible and place_refusal(topic, staged=False) in (None, SkipReason.TOPIC_CLOSED)


def switched_off(flags: Flags, category_id: CategoryId | None = None) -> SkipReason | None:
    """Why the moderators' switches allow no answer at all, or none in this category."""
    if flags.answering is AnsweringMode.OFF:
        return SkipReason.ANSWERING_OFF
    return SkipReason.CATEGORY_OFF if flags.answering_in(category_id) is AnsweringMode.OFF else None


async def deliver(standing: Standing, reply: FixedReply, flags: Flags, forum: Forum) -> tuple[Outcome, int | None]:
    """Post the reply as the switches allow it; the outcome, and the number of our post where it has one.

    Raises Transient when the same bytes must be posted again later.
    """
    closed = standing.question.archetype == PRIVATE_MESSAGE and not flags.private_messages
    off = switched_off(flags, standing.category_id) or (SkipReason.PRIVATE if closed else None)
    if reason := standing.refusal or off or (SkipReason.SOURCE_GONE if standing.gone else None):
        return Skipped(reason), None
    if flags.answering_in(standing.category_id) is AnsweringMode.SHADOW:
        return Shadowed(reply.result), None
    question = standing.question
    try:
        created = await forum.reply(topic_id=question.topic_id, post_number=question.post_number, raw=reply.raw)
    except Unsure:
        if found := await forum.our_reply_to(question.id):
            return adopted(found, reply.result)
        raise
    except Rejected as exc:
        if exc.status == CONFLICT:
            raise Transient(f"the forum reports a conflict: {exc}") from exc
        if exc.status in _REFUSALS:
            return Skipped(_REFUSALS[exc.status]), None
        # A refusal may mean "you said this a moment ago": an earlier attempt whose answer was lost.
        if found := await forum.our_reply_to(question.id):
            return adopted(found, reply.result)
        return Skipped(SkipReason.FORUM_REFUSED), None
    return Posted(reply.result, created.post_id, enqueued=created.enqueued), created.post_number


def adopted(found: CreatedReply, result: Result) -> tuple[Outcome, int | None]:
    """The outcome of finding that an earlier attempt did post."""
    return Posted(result, found.post_id, enqueued=found.enqueued, adopted=True), found.post_number
