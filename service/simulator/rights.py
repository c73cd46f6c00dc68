"""Who may see what: Discourse's guardian, as far as anonymous readers, members and staff differ."""

from service.simulator.forum import Forum
from service.simulator.model import REGULAR, WHISPER, Category, Member, Post, Topic

Reader = Member | None
"""Who asks; None is an anonymous reader."""


def is_staff(reader: Reader) -> bool:
    return reader is not None and reader.staff


def sees_category(reader: Reader, category: Category) -> bool:
    return not category.read_restricted or is_staff(reader)


def sees_topic(forum: Forum, reader: Reader, topic: Topic) -> bool:
    """Unlisted topics can be read by whoever knows the address; private messages by staff and their author."""
    if topic.deleted_at and not is_staff(reader):
        return False
    if topic.category_id is None:
        return is_staff(reader) or (reader is not None and reader.id == topic.user_id)
    return sees_category(reader, forum.categories[topic.category_id])


def sees_post(forum: Forum, reader: Reader, post: Post) -> bool:
    """Hidden posts are seen as a notice (see sees_text)."""
    if not sees_topic(forum, reader, forum.topics[post.topic_id]):
        return False
    return is_staff(reader) or not (post.deleted_at or post.post_type == WHISPER)


def sees_text(reader: Reader, post: Post) -> bool:
    return not post.hidden or is_staff(reader) or (reader is not None and reader.id == post.user_id)


def is_listed(forum: Forum, reader: Reader, topic: Topic) -> bool:
    """Topics that lists and search show."""
    return sees_topic(forum, reader, topic) and topic.visible and not topic.deleted_at and topic.archetype == "regular"


def readable_posts(forum: Forum, reader: Reader, topic: Topic) -> list[Post]:
    """A topic's posts in order, as this reader's post stream has them."""
    return [p for p in forum.stream(topic.id) if not p.deleted_at and sees_post(forum, reader, p)]


def is_ordinary(post: Post) -> bool:
    """A post that people wrote, not a trace of a moderator's action."""
    return post.post_type in {REGULAR, WHISPER}


def may_reply(forum: Forum, member: Member, topic: Topic) -> bool:
    if not sees_topic(forum, member, topic) or topic.deleted_at:
        return False
    return member.staff or not (topic.closed or topic.archived)
