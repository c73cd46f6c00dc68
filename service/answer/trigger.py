"""Which posts ask the bot something, and why the others get no answer (spec P19; docs/discourse, sections 6 and 9)."""

import re
from dataclasses import dataclass
from enum import StrEnum

from service.answer.courtesy import Courtesy, courtesy
from service.discourse.cooked import Mentioned, find_mentions, question_text
from service.discourse.names import folded_name
from service.domain import Post, PostType, SkipReason, Topic, UserId

PUBLIC_ARCHETYPES = frozenset({"regular", "banner"})
"""Topics that everyone reads; private messages are the other kind."""

PRIVATE_MESSAGE = "private_message"


@dataclass(frozen=True, slots=True)
class Bot:
    """Who we are: our account, and the folded names of the bots that never get an answer.

    `messages` tells that we may answer in private messages.
    """

    username: str
    known_bots: frozenset[str]
    user_id: UserId | None = None
    messages: bool = False


class Kind(StrEnum):
    QUESTION = "question"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a post asks: `text` without mention and quotes; `cut` tells that it was longer than we read."""

    kind: Kind
    text: str
    cut: bool = False


_UNADDRESSED: dict[Mentioned, SkipReason] = {
    Mentioned.IN_QUOTE: SkipReason.MENTION_IN_QUOTE,
    Mentioned.IN_CODE: SkipReason.MENTION_IN_CODE,
    Mentioned.IN_ONEBOX: SkipReason.MENTION_IN_ONEBOX,
    Mentioned.IN_ELIDED: SkipReason.MENTION_IN_ELIDED,
}

_CALLS_SOMEONE = re.compile(r"\W*@\w")


def post_refusal(post: Post, bot: Bot, *, replies_to_us: bool) -> SkipReason | None:
    """Why this post, seen alone, gets no answer; NOT_ADDRESSED comes before every other reason.

    `replies_to_us`: it replies to a post of ours.
    """
    if not post.cooked:  # a text that the public doesn't see isn't kept, only that it mentions us
        unseen = SkipReason.WHISPER if post.post_type == PostType.WHISPER else SkipReason.PRIVATE
        return withdrawal(post) or unseen
    mentioned = find_mentions(post.cooked, bot.username)
    addressed = mentioned is Mentioned.PLAIN or (replies_to_us and not _calls_someone_else(post, bot))
    if mentioned is Mentioned.NONE and not addressed:
        return SkipReason.NOT_ADDRESSED
    verdicts = (
        (_is_own(post, bot), SkipReason.OWN_POST),
        (folded_name(post.username) in bot.known_bots, SkipReason.KNOWN_BOT),
        (post.user_id is None or post.user_id <= 0, SkipReason.SYSTEM_USER),
        (post.post_type == PostType.WHISPER, SkipReason.WHISPER),
        (post.post_type == PostType.SMALL_ACTION, SkipReason.SMALL_ACTION),
        (post.post_type != PostType.REGULAR, SkipReason.MODERATOR_ACTION),
    )
    if reason := next((reason for refused, reason in verdicts if refused), withdrawal(post)):
        return reason
    if _is_private(post) and not (bot.messages and post.archetype == PRIVATE_MESSAGE):
        return SkipReason.PRIVATE
    return None if addressed else _UNADDRESSED.get(mentioned, SkipReason.NOT_ADDRESSED)


def withdrawal(post: Post) -> SkipReason | None:
    """How a post was taken back from its readers, who then find no mention in it."""
    if post.deleted or post.user_deleted:
        return SkipReason.POST_GONE
    return SkipReason.POST_HIDDEN if post.hidden else None


def place_refusal(topic: Topic | None, *, staged: bool, messages: bool = False) -> SkipReason | None:
    """Why no answer is given in this topic (None: the public doesn't see it) or to this author.

    `messages` lets private messages through, and no other private place.
    """
    if topic is None or topic.deleted:
        return SkipReason.TOPIC_GONE
    public = topic.archetype in PUBLIC_ARCHETYPES and topic.category_id is not None
    if not public and not (messages and topic.archetype == PRIVATE_MESSAGE):
        return SkipReason.PRIVATE
    if topic.closed or topic.archived:
        return SkipReason.TOPIC_CLOSED
    return SkipReason.STAGED_USER if staged else None


def read_trigger(post: Post, topic: Topic, bot: Bot, *, max_chars: int) -> Trigger | SkipReason:
    """What an addressed post asks, at most `max_chars` of it; the title of a topic is part of its first post."""
    text = question_text(post.cooked, bot.username).strip()
    kind = courtesy(text)
    if post.post_number == 1 and topic.title:
        text = topic.title if kind is not Courtesy.ASKS else f"{topic.title}\n{text}"
    elif kind is Courtesy.THANKS:
        return SkipReason.THANKS
    elif kind is Courtesy.BARE:
        return Trigger(Kind.HELP, "")
    return Trigger(Kind.QUESTION, _first_words(text, max_chars), cut=len(text) > max_chars)


def _first_words(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    whole, _, _ = text[: max_chars + 1].rpartition(" ")
    return whole.rstrip() or text[:max_chars]


def _is_own(post: Post, bot: Bot) -> bool:
    by_id = bot.user_id is not None and post.user_id == bot.user_id
    return by_id or folded_name(post.username) == folded_name(bot.username)


def _is_private(post: Post) -> bool:
    if post.archetype is None:  # a REST read doesn't say: the topic will
        return False
    return post.archetype not in PUBLIC_ARCHETYPES or post.category_id is None


def _calls_someone_else(post: Post, bot: Bot) -> bool:
    return _CALLS_SOMEONE.match(question_text(post.cooked, bot.username)) is not None
