"""Finds our earlier reply to a post on the forum: what an attempt that died may have left there."""

from service.answer.ports import CreatedReply
from service.discourse.calls import UNSEEN, ForumCalls
from service.discourse.names import folded_name
from service.discourse.shapes import Fields, fields_of, id_of, stream_of
from service.discourse.thread import CHUNK, chunks
from service.domain import PostId, TopicId
from service.errors import Rejected, Transient
from service.remote import Refused

MAX_REPLY_PAGES = 10
SCANNED_AFTER = 2 * CHUNK
"""Posts looked through for our reply after the question, and CHUNK more at the topic's end."""


async def own_reply_to(post_id: PostId, calls: ForumCalls, bot: str) -> CreatedReply | None:
    """The reply of `bot` (a folded name): among the post's replies, else among the posts after it.

    None too when the post is gone. Raises Transient where the forum tells the question and not what follows it.
    """
    try:
        asked = fields_of(await calls.as_bot("GET", f"posts/{post_id}.json"), "post")
    except Refused as exc:
        if exc.status in UNSEEN:
            return None
        raise
    topic_id, number = TopicId(id_of(asked, "topic_id", "post")), id_of(asked, "post_number", "post")
    try:
        found = await _among_replies(post_id, number, calls, bot)
        return found or await _among_later_posts(post_id, topic_id, number, calls, bot)
    except Refused as exc:  # not "there is none": posting now might double it
        raise Transient(f"the forum gave the question, not what answers it: {exc}") from exc


def created(fields: Fields) -> CreatedReply:
    """A post of ours as the forum describes it; raises Rejected."""
    return CreatedReply(PostId(id_of(fields, "id", "reply")), id_of(fields, "post_number", "reply"))


async def _among_replies(post_id: PostId, number: int, calls: ForumCalls, bot: str) -> CreatedReply | None:
    """Our reply among those that Discourse counts as replies to the post; it counts quotes of it too."""
    after = 1
    for _ in range(MAX_REPLY_PAGES):
        page = _posts(await calls.as_bot("GET", f"posts/{post_id}/replies.json", {"after": after}))
        if found := _ours(page, number, bot):
            return found
        if len(page) < CHUNK:
            break
        after = max(id_of(post, "post_number", "reply") for post in page)
    return None


async def _among_later_posts(
    post_id: PostId, topic_id: TopicId, number: int, calls: ForumCalls, bot: str
) -> CreatedReply | None:
    """Our reply among the topic's posts that are newer than the question, wherever it lists them."""
    later = [other for other in stream_of(await calls.as_bot("GET", f"t/{topic_id}.json")) if other > post_id]
    for chunk in chunks(list(dict.fromkeys(later[:SCANNED_AFTER] + later[-CHUNK:]))):
        answer = fields_of(await calls.as_bot("GET", f"t/{topic_id}/posts.json", {"post_ids[]": chunk}), "topic")
        stream = fields_of(answer.get("post_stream"), "topic.post_stream")
        if found := _ours(_posts(stream.get("posts")), number, bot):
            return found
    return None


def _ours(posts: list[Fields], number: int, bot: str) -> CreatedReply | None:
    for post in posts:
        # The published contract gives the number as text.
        to_it = str(post.get("reply_to_post_number")) == str(number)
        if to_it and folded_name(str(post.get("username"))) == bot:
            return created(post)
    return None


def _posts(value: object) -> list[Fields]:
    if not isinstance(value, list):
        raise Rejected("forum: expected a list of posts")
    return [fields_of(entry, "post") for entry in value]
