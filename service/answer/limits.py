"""How many answers an hour may bring: to a member, in a topic, in a category, overall (spec P14, P20)."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from service.answer.ports import Flags, Ledger
from service.domain import Post, SkipReason, Topic
from service.settings import LimitSettings

WINDOW = timedelta(hours=1)


async def beyond_limit(
    post: Post,
    topic: Topic,
    flags: Flags,
    limits: LimitSettings,
    *,
    ledger: Ledger,
    groups_of: Callable[[str], Awaitable[frozenset[str]]],
    now: datetime,
) -> SkipReason | None:
    """The limit that this post, whose claim is already counted, goes beyond; the forum is asked for groups if need be.

    Moderators' limits of groups stand in place of the setting for every member.
    """
    if topic.category_id is not None:
        await ledger.place(post.id, topic.category_id)
    recent = await ledger.recent(
        user_id=post.user_id, topic_id=post.topic_id, category_id=topic.category_id, since=now - WINDOW
    )
    groups = await groups_of(post.username) if flags.group_per_hour else frozenset()
    in_category = None if topic.category_id is None else flags.category_per_hour.get(topic.category_id)
    verdicts = (
        (recent.by_member > member_limit(groups, flags.group_per_hour, limits), SkipReason.MEMBER_LIMIT),
        (recent.in_topic > limits.per_topic_per_hour, SkipReason.TOPIC_LIMIT),
        (in_category is not None and recent.in_category > in_category, SkipReason.CATEGORY_LIMIT),
        (recent.overall > limits.per_hour, SkipReason.HOURLY_LIMIT),
    )
    return next((reason for beyond, reason in verdicts if beyond), None)


def member_limit(groups: frozenset[str], by_group: Mapping[str, int], limits: LimitSettings) -> int:
    """Answers an hour to a member of these groups: the largest of their limits, else the setting.

    The largest, since every member is in the groups of all trust levels below his own.
    """
    return max((limit for group, limit in by_group.items() if group in groups), default=limits.per_member_per_hour)
