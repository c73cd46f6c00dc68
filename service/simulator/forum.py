"""The only ways to change the forum: every change is told to the listeners."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from service.simulator.board import Board
from service.simulator.cook import Cooked
from service.simulator.model import (
    REGULAR,
    WHISPER,
    Category,
    Change,
    Event,
    Member,
    Notification,
    NotificationType,
    Post,
    Topic,
    slugify,
)

STUB = "(post deleted by author)"
"""What an author's own delete leaves as raw (docs/discourse, section 3)."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who did it and when: what every change needs."""

    member: Member
    now: datetime


class Forum(Board):
    """A forum whose members and moderators write."""

    def create_topic(
        self, by: Author, *, title: str, category_id: int, raw: str, tags: Iterable[str] = (), lang: str = "en"
    ) -> Post:
        self.categories[category_id]
        topic = Topic(
            self.new_id("topic"), title, slugify(title), category_id, by.member.id, by.now, by.now, tuple(tags), lang
        )
        self.add(topic)
        return self._append(by, topic, raw, None, REGULAR, (Change(Event.TOPIC_CREATED, topic.id),))

    def create_post(
        self, by: Author, *, topic_id: int, raw: str, reply_to: int | None = None, post_type: int = REGULAR
    ) -> Post:
        return self._append(by, self.topics[topic_id], raw, reply_to, post_type, ())

    def _append(
        self, by: Author, topic: Topic, raw: str, reply_to: int | None, post_type: int, first: tuple[Change, ...]
    ) -> Post:
        cooked = self.cook(raw, topic.id)
        post = Post(
            self.new_id("post"),
            topic.id,
            topic.next_number,
            by.member.id,
            raw,
            cooked.html,
            by.now,
            by.now,
            reply_to,
            post_type,
        )
        self.add(post, replace(topic, next_number=topic.next_number + 1, updated_at=by.now))
        told = self._notify(post, cooked, before=None)
        self.announce(*first, Change(Event.POST_CREATED, post.id), *told)
        return post

    def _notify(self, post: Post, cooked: Cooked, *, before: Cooked | None) -> list[Change]:
        """Notify whom the post mentions, answers or quotes, once a post; an edit (`before`) only whom it adds."""
        answered = self.at(post.topic_id, post.reply_to) if post.reply_to and before is None else None
        addressed = (
            (NotificationType.MENTIONED, cooked.mentions),
            (NotificationType.REPLIED, () if answered is None else (self.members[answered.user_id].username,)),
            (NotificationType.QUOTED, cooked.quoted),
        )
        skipped = {*before.mentions, *before.quoted} if before else set()
        done = {post.user_id} | {n.user_id for n in self.notifications.values() if n.post_id == post.id}
        told = []
        for kind, names in addressed:
            for member in (self.member(name) for name in names if name not in skipped):
                if member and member.id not in done and (member.staff or not self._is_private(post)):
                    done.add(member.id)
                    note = Notification(self.new_id("notification"), member.id, kind, post.id, post.updated_at)
                    self.add(note)
                    told.append(Change(Event.NOTIFICATION_CREATED, note.id))
        return told

    def _is_private(self, post: Post) -> bool:
        category = self.categories.get(self.topics[post.topic_id].category_id or 0)
        return post.post_type == WHISPER or category is None or category.read_restricted

    def edit_post(self, post_id: int, *, raw: str, now: datetime) -> Post:
        """Replace the text; members mentioned for the first time are notified."""
        old = self.posts[post_id]
        cooked = self.cook(raw, old.topic_id)
        post = replace(old, raw=raw, cooked=cooked.html, updated_at=now, version=old.version + 1)
        self.add(post)
        before = self.cook(old.raw, old.topic_id)
        told = self._notify(post, cooked, before=before)
        self.announce(Change(Event.POST_EDITED, post_id), *told)
        return post

    def update_topic(self, topic: Topic, *, now: datetime) -> Topic:
        """Keep a topic with new title, category, tags or status: topic_edited alone (docs/discourse, section 3)."""
        topic = replace(topic, slug=slugify(topic.title), updated_at=now)
        self.add(topic)
        self.announce(Change(Event.TOPIC_EDITED, topic.id))
        return topic

    def hide_post(self, post_id: int, *, hidden: bool, now: datetime) -> None:
        """What flags do: nothing is announced (docs/discourse, section 3)."""
        self.add(replace(self.posts[post_id], hidden=hidden, updated_at=now))
        self.announce()

    def delete_post(self, by: Author, post_id: int) -> None:
        """Delete a post; an author's own delete leaves a stub first; the first post takes its topic with it.

        Neither this nor its undoing touches `updated_at`, as in Discourse.
        """
        post = self.posts[post_id]
        if post.number == 1:
            topic = self.topics[post.topic_id]
            self.add(replace(post, deleted_at=by.now), replace(topic, deleted_at=by.now))
            self.announce(Change(Event.POST_DESTROYED, post_id), Change(Event.TOPIC_DESTROYED, topic.id))
            return
        if by.member.id == post.user_id and not by.member.staff:
            post = replace(post, raw=STUB, cooked=self.cook(STUB).html, user_deleted=True, version=post.version + 1)
            post = replace(post, updated_at=by.now)
            self.add(post)
            self.announce(Change(Event.POST_EDITED, post_id))
        self.add(replace(post, deleted_at=by.now))
        self.announce(Change(Event.POST_DESTROYED, post_id))

    def recover_post(self, post_id: int, *, now: datetime) -> None:
        post = replace(self.posts[post_id], deleted_at=None, user_deleted=False)
        self.add(post)
        changes = [Change(Event.POST_RECOVERED, post_id)]
        if post.number == 1:
            self.add(replace(self.topics[post.topic_id], deleted_at=None, updated_at=now))
            changes.append(Change(Event.TOPIC_RECOVERED, post.topic_id))
        self.announce(*changes)

    def set_category(self, category: Category) -> None:
        """Make or change a category."""
        event = Event.CATEGORY_UPDATED if category.id in self.categories else Event.CATEGORY_CREATED
        self.add(category)
        self.announce(Change(event, category.id))
