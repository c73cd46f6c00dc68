"""Late questions: what waited too long gets its sources alone, or nothing where people have answered (spec P13)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.answer.condense.condenser import RuleCondenser
from service.answer.pipeline import Stages
from service.answer.ports import Forum
from service.answer.trigger import Bot, withdrawal
from service.discourse.cooked import Mentioned, find_mentions
from service.discourse.names import folded_name
from service.domain import Post, PostType, Result
from service.errors import Transient
from service.settings import LimitSettings
from service.telemetry import log

SAID_ANYHOW = frozenset({Result.GATED, Result.HELPED})
"""Replies that take nothing from the forum's threads: late or not, and whoever else has written, they are posted."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Since when a question has waited for its answer, for how many seconds, and whether that is too long."""

    since: datetime
    seconds: float
    late: bool


def waited(post: Post, limits: LimitSettings, now: datetime) -> Wait:
    """How long this post has waited; a clock of the forum's that is ahead of ours makes it 0.

    The date of the text that asks counts, as it does for `max_age_minutes`: an edit may have added the mention.
    """
    seconds = max(0.0, (now - post.updated_at).total_seconds())
    late = bool(limits.late_minutes) and seconds > timedelta(minutes=limits.late_minutes).total_seconds()
    return Wait(post.updated_at, seconds, late)


def without_model(stages: Stages) -> Stages:
    """The same stages, none of which asks a language model: the sources then speak for themselves."""
    return replace(stages, condenser=RuleCondenser(), checker=None, sources_alone=True)


async def answered_by_people(question: Post, since: datetime, forum: Forum, bot: Bot) -> bool:
    """Whether a human other than the asker has posted in the question's topic since then.

    The forum says so, just before we post: what made the question late (a dead worker, lost deliveries) made our index
    late too, and its posts may still wait in the same queue. A post that is addressed to us itself is no answer. Where
    the forum can't tell, nobody has answered: a late question never gets more than its sources.
    """
    try:
        posts = await forum.public_posts_after(question)
    except Transient as exc:
        log.warning("later_posts_unread", topic_id=question.topic_id, error=str(exc))
        return False
    return any(_answers(post, question, since, bot) for post in posts)


def _answers(post: Post, question: Post, since: datetime, bot: Bot) -> bool:
    name = folded_name(post.username)
    of_asker = post.user_id == question.user_id or name == folded_name(question.username)
    of_bot = post.user_id == bot.user_id or name == folded_name(bot.username) or name in bot.known_bots
    by_human = post.user_id is not None and post.user_id > 0 and not of_bot
    said = post.created_at > since and post.post_type == PostType.REGULAR and withdrawal(post) is None
    to_us = folded_name(post.reply_to_username or "") == folded_name(bot.username)
    asks_us = to_us or find_mentions(post.cooked, bot.username) is Mentioned.PLAIN
    return said and by_human and not of_asker and not asks_us
