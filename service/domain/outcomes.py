"""What became of a post that may have asked something: posted, shadowed, skipped for a reason, or answered before."""

from dataclasses import dataclass
from enum import StrEnum

from service.domain.answers import Result
from service.domain.forum import PostId


class SkipReason(StrEnum):
    """Why a post got no answer; the same words in metrics and traces."""

    NOT_ADDRESSED = "not_addressed"
    OWN_POST = "own_post"
    KNOWN_BOT = "known_bot"
    SYSTEM_USER = "system_user"
    STAGED_USER = "staged_user"
    WHISPER = "whisper"
    SMALL_ACTION = "small_action"
    MODERATOR_ACTION = "moderator_action"
    PRIVATE = "private"
    POST_GONE = "post_gone"
    POST_HIDDEN = "post_hidden"
    TOPIC_GONE = "topic_gone"
    TOPIC_CLOSED = "topic_closed"
    MENTION_IN_QUOTE = "mention_in_quote"
    MENTION_IN_CODE = "mention_in_code"
    MENTION_IN_ONEBOX = "mention_in_onebox"
    MENTION_IN_ELIDED = "mention_in_elided"
    THANKS = "thanks"
    HELP_GIVEN = "help_given"
    ANSWERING_OFF = "answering_off"
    CATEGORY_OFF = "category_off"
    MEMBER_LIMIT = "member_limit"
    TOPIC_LIMIT = "topic_limit"
    CATEGORY_LIMIT = "category_limit"
    HOURLY_LIMIT = "hourly_limit"
    SOURCE_GONE = "source_gone"
    FORUM_REFUSED = "forum_refused"
    FORUM_FORBIDS = "forum_forbids"
    TOO_OLD = "too_old"
    ANSWERED_BY_PEOPLE = "answered_by_people"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Posted:
    """One reply is on the forum, or waits for approval there (`enqueued`, then without a post id)."""

    result: Result
    reply_post_id: PostId | None
    enqueued: bool = False
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class Shadowed:
    """The answer was computed and kept, not posted."""

    result: Result


@dataclass(frozen=True, slots=True)
class Skipped:
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Duplicate:
    """This post already has its answer."""


Outcome = Posted | Shadowed | Skipped | Duplicate
