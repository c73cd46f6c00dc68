"""Questions in private messages to the bot, where moderators allow them (spec P14, P19): read by the bot's own eyes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.answer.ports import CreatedReply, FlagReader, Forum
from service.answer.trigger import PRIVATE_MESSAGE, Bot
from service.domain import Post, PostId, Topic, TopicId


@dataclass(frozen=True, slots=True)
class MessageForum:
    """A forum as the bot sees it in one private message, and as the public sees it everywhere else.

    Only the question and its topic are read there: what an answer cites stays public.
    """

    forum: Forum
    post_id: PostId
    topic_id: TopicId

    async def public_post(self, post_id: PostId) -> Post | None:
        return await (self.forum.own_post if post_id == self.post_id else self.forum.public_post)(post_id)

    async def public_topic(self, topic_id: TopicId) -> Topic | None:
        return await (self.forum.own_topic if topic_id == self.topic_id else self.forum.public_topic)(topic_id)

    async def own_post(self, post_id: PostId) -> Post | None:
        return await self.forum.own_post(post_id)

    async def own_topic(self, topic_id: TopicId) -> Topic | None:
        return await self.forum.own_topic(topic_id)

    async def public_posts_after(self, post: Post) -> Sequence[Post]:
        return await self.own_posts_after(post)

    async def own_posts_after(self, post: Post) -> Sequence[Post]:
        return await self.forum.own_posts_after(post)

    async def our_reply_to(self, post_id: PostId) -> CreatedReply | None:
        return await self.forum.our_reply_to(post_id)

    async def is_staged(self, username: str) -> bool:
        return await self.forum.is_staged(username)

    async def groups_of(self, username: str) -> frozenset[str]:
        return await self.forum.groups_of(username)

    async def reply(self, *, topic_id: TopicId, post_number: int, raw: str) -> CreatedReply:
        return await self.forum.reply(topic_id=topic_id, post_number=post_number, raw=raw)


async def read_message(post: Post, bot: Bot, forum: Forum, flags: FlagReader) -> tuple[Post, Bot, Forum] | None:
    """A post of a private message as the bot reads it, and who answers it by what; None for any other post.

    None, too, where moderators don't allow it or the bot takes no part in the message.
    """
    if post.archetype != PRIVATE_MESSAGE or not (await flags.read()).private_messages:
        return None
    own = await forum.own_post(post.id)
    if own is None or own.topic_id != post.topic_id:
        return None
    read = replace(own, archetype=PRIVATE_MESSAGE, category_id=None)
    return read, replace(bot, messages=True), MessageForum(forum, post.id, post.topic_id)
