"""What a reply to an answer of ours says of it, by the words of the language files: thanks, an objection, nothing."""

import re
from collections.abc import Set
from enum import StrEnum
from functools import cache
from typing import Protocol

from service.answer.courtesy import any_of
from service.answer.messages import folded_words, wordings
from service.answer.trigger import Bot
from service.discourse.cooked import question_text
from service.discourse.names import folded_name
from service.domain import Post, PostId, TopicId, UserId

READ_CHARS = 1_000
"""Who thanks or objects says so at the beginning."""

_SENTENCE = re.compile(r"[^.!?…\n]*[.!?…\n]?")


class Opinion(StrEnum):
    """What a member says; the words of the signal that is kept of it."""

    THANKS = "thanked"
    OBJECTS = "objected"


class Opinions(Protocol):
    """Keeps what members say of our replies."""

    async def said(
        self, kind: str | None, topic_id: TopicId, post_number: int, *, in_post: PostId, by: UserId | None
    ) -> None:
        """Keep what a post says of the reply of ours with this number, if it is one, in place of what it said."""
        ...


async def hear(post: Post, bot: Bot, opinions: Opinions) -> None:
    """Keep what this post says of the one it replies to, where that is ours."""
    by_member = post.user_id is not None and post.user_id > 0 and folded_name(post.username) not in bot.known_bots
    if post.reply_to_post_number is None or not by_member or not post.cooked:
        return
    found = opinion(question_text(post.cooked, bot.username))
    await opinions.said(found, post.topic_id, post.reply_to_post_number, in_post=post.id, by=post.user_id)


def opinion(text: str) -> Opinion | None:
    """The opinion in a member's own words, without quotes; an objection counts for more than thanks.

    What is asked is no opinion: a sentence with a question mark is left aside.
    """
    spare, objects, thanks = _patterns()
    said = [folded_words(one) for one in _SENTENCE.findall(text[:READ_CHARS]) if not one.endswith("?")]
    if any(objects.search(spare.sub(" ", words)) for words in said):
        return Opinion.OBJECTS
    return Opinion.THANKS if any(thanks.search(words) for words in said) else None


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    languages = wordings().values()
    spare = {phrase for one in languages for phrase in one.no_objections}
    objections = {phrase for one in languages for phrase in one.objections}
    gratitude = {phrase for one in languages for phrase in one.gratitude}
    return _words(spare), _words(objections), _words(gratitude)


def _words(phrases: Set[str]) -> re.Pattern[str]:
    return re.compile(rf"\b{any_of(phrases)}\b")
