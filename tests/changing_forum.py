"""A forum whose members and moderators do what they can, at random, and what the public sees of it at any moment."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from service.discourse.cooked import plain_text
from service.simulator.forum import Author, Forum
from service.simulator.model import Category, Member, Post, Topic
from service.simulator.moderation import merge_topics, move_posts, set_restricted, set_status
from tests.simulated import Clock

WORDS = ("valve", "key", "pump", "boiler", "leak", "pipe", "gauge", "seal", "bolt", "steam", "joint", "drain", "grit")
EVERYWHERE = "kelp"
"""Is in every post."""
STAFF_CATEGORY = 2
BOTS = frozenset({"ariane", "OtherBot", "robot"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A post that may be found, as an anonymous reader sees it."""

    topic_id: int
    number: int
    text: str
    title: str
    category_id: int
    tags: tuple[str, ...]


def is_public(forum: Forum, topic: Topic) -> bool:
    """Whether everybody finds the topic and its first page: said anew here, so that no rule is tested by itself."""
    category = forum.categories.get(topic.category_id or 0)
    listed = topic.visible and topic.deleted_at is None and topic.archetype == "regular"
    return listed and category is not None and not category.read_restricted


def may_be_found(forum: Forum, post: Post) -> bool:
    mine = forum.members[post.user_id]
    kept = post.deleted_at is None and not post.hidden and not post.user_deleted and post.post_type == 1
    return kept and mine.id > 0 and mine.username not in BOTS and is_public(forum, forum.topics[post.topic_id])


def seen_of(forum: Forum) -> dict[int, Seen]:
    """Everything that may be found now, by post id."""
    found = {}
    for post in forum.posts.values():
        topic = forum.topics[post.topic_id]
        if may_be_found(forum, post):
            place = (post.topic_id, post.number, plain_text(post.cooked))
            found[post.id] = Seen(*place, topic.title, topic.category_id or 0, topic.tags)
    return found


class People:
    """Members and moderators of a forum; `act` lets one of them do one thing, and says what it was."""

    def __init__(self, forum: Forum, clock: Clock, chance: random.Random) -> None:
        self.forum = forum
        self.clock = clock
        self.chance = chance
        forum.add(*(Category(n, f"Category {n}", f"category-{n}") for n in (3, 4, 5)), Member(-3, "robot", "Robot"))
        self._deeds: list[tuple[int, Callable[[], object]]] = [
            (30, self.reply),
            (10, self.edit),
            (6, self.open_topic),
            (6, self.delete),
            (2, self.delete_topic),
            (7, self.recover),
            (5, self.hide),
            (5, self.unhide),
            (5, self.move),
            (1, self.move_first),
            (1, self.merge),
            (4, self.recategorise),
            (2, self.turn_category),
            (5, self.retitle),
            (5, self.tag),
            (3, self.turn_visible),
            (2, self.turn_archived),
            (2, self.rebake),
            (1, self.turn_archetype),
        ]

    def fill(self, posts: int) -> None:
        """Write so many posts, a topic for every sixth of them."""
        for number in range(posts):
            self.clock.tick(60)
            if number % 6:
                self.reply()
            else:
                self.open_topic()

    def act(self) -> str:
        """One thing that can be done now, by name."""
        while True:
            self.clock.tick(self.chance.choice((0.001, 1, 60)))
            [deed] = self.chance.choices([d for _, d in self._deeds], [w for w, _ in self._deeds])
            if deed() is not None:
                return deed.__name__

    def text(self) -> str:
        return (
            f"{' '.join(self.chance.choices(WORDS, k=self.chance.randint(3, 12)))} {EVERYWHERE} {self.chance.random()}"
        )

    def _author(self) -> Author:
        names = ("alice", "Zoé", "boss", "OtherBot", "ariane", "robot")
        member = self.forum.member(self.chance.choices(names, (30, 30, 10, 3, 3, 2))[0])
        assert member is not None
        return Author(member, self.clock())

    def _post(self, fits: Callable[[Post], bool]) -> Post | None:
        posts = [post for post in self.forum.posts.values() if fits(post)]
        return self.chance.choice(posts) if posts else None

    def _topic(self) -> Topic:
        return self.chance.choice([topic for topic in self.forum.topics.values() if topic.archetype == "regular"])

    def reply(self) -> Post:
        kind = self.chance.choices((1, 2, 3, 4), (30, 1, 1, 2))[0]
        return self.forum.create_post(self._author(), topic_id=self._topic().id, raw=self.text(), post_type=kind)

    def open_topic(self) -> Post:
        category = self.chance.choice((1, 1, 3, 3, 4, 4, 5, 5, STAFF_CATEGORY))
        return self.forum.create_topic(self._author(), title=self.text(), category_id=category, raw=self.text())

    def edit(self) -> Post | None:
        post = self._post(lambda post: post.deleted_at is None and not post.user_deleted)
        return post and self.forum.edit_post(post.id, raw=self.text(), now=self.clock())

    def delete(self) -> Post | None:
        post = self._post(lambda post: post.deleted_at is None and post.number > 1)
        if post:
            own = self.chance.random() < 0.5
            by = self.forum.members[post.user_id if own else 1]
            self.forum.delete_post(Author(by, self.clock()), post.id)
        return post

    def delete_topic(self) -> Post | None:
        post = self._post(lambda post: post.deleted_at is None and post.number == 1)
        if post:
            self.forum.delete_post(Author(self.forum.members[1], self.clock()), post.id)
        return post

    def recover(self) -> Post | None:
        post = self._post(lambda post: post.deleted_at is not None)
        if post:
            self.forum.recover_post(post.id, now=self.clock())
        return post

    def hide(self) -> Post | None:
        post = self._post(lambda post: not post.hidden)
        if post:
            self.forum.hide_post(post.id, hidden=True, now=self.clock())
        return post

    def unhide(self) -> Post | None:
        post = self._post(lambda post: post.hidden)
        if post:
            self.forum.hide_post(post.id, hidden=False, now=self.clock())
        return post

    def move(self) -> Post | None:
        post = self._post(lambda post: post.number > 1 and post.deleted_at is None)
        if post is None:
            return None
        along = [one for one in self.forum.stream(post.topic_id) if one.number > 1 and self.chance.random() < 0.3]
        move_posts(self.forum, {post.id, *(one.id for one in along)}, self._topic().id, now=self.clock())
        return post

    def move_first(self) -> Post | None:
        post = self._post(lambda post: post.number == 1 and post.deleted_at is None)
        if post:
            move_posts(self.forum, [post.id], self._topic().id, now=self.clock())
        return post

    def merge(self) -> Topic | None:
        topic, into = self._topic(), self._topic()
        if topic.id == into.id:
            return None
        merge_topics(self.forum, topic.id, into.id, now=self.clock())
        return topic

    def recategorise(self) -> Topic:
        topic = self._topic()
        private = topic.category_id != STAFF_CATEGORY and self.chance.random() < 0.3
        category = STAFF_CATEGORY if private else self.chance.choice((1, 3, 4, 5))
        return self.forum.update_topic(replace(topic, category_id=category), now=self.clock())

    def turn_category(self) -> Category:
        """Open the one that is closed, mostly, or close one."""
        ours = [one for one in self.forum.categories.values() if one.id != STAFF_CATEGORY]
        closed = [one for one in ours if one.read_restricted]
        category = self.chance.choice(closed if closed and self.chance.random() < 0.8 else ours)
        set_restricted(self.forum, category.id, value=not category.read_restricted)
        return category

    def retitle(self) -> Topic:
        return self.forum.update_topic(replace(self._topic(), title=self.text()), now=self.clock())

    def tag(self) -> Topic:
        tags = tuple(self.chance.sample(WORDS, self.chance.randint(0, 3)))
        return self.forum.update_topic(replace(self._topic(), tags=tags), now=self.clock())

    def turn_visible(self) -> Topic:
        unlisted = [topic for topic in self.forum.topics.values() if not topic.visible]
        topic = self.chance.choice(unlisted) if len(unlisted) > 2 else self._topic()
        return set_status(self.forum, topic.id, "visible", value=not topic.visible, now=self.clock())

    def turn_archived(self) -> Topic:
        topic = self._topic()
        return set_status(self.forum, topic.id, "archived", value=not topic.archived, now=self.clock())

    def rebake(self) -> Post | None:
        """Cook a post anew: nobody is told, and no date changes."""
        post = self._post(lambda post: post.deleted_at is None)
        if post:
            cooked = f"{post.cooked}<p>{self.chance.choice(WORDS)}</p>"
            self.forum.add(replace(post, cooked=cooked))
        return post

    def turn_archetype(self) -> Topic:
        """Make a topic a banner or a message, or make it ordinary again."""
        others = [topic for topic in self.forum.topics.values() if topic.archetype != "regular"]
        topic = self.chance.choice(others) if len(others) > 1 else self._topic()
        if topic.archetype != "regular":
            topic = replace(topic, archetype="regular", category_id=1)
        elif self.chance.random() < 0.5:
            topic = replace(topic, archetype="banner")
        else:
            topic = replace(topic, archetype="private_message", category_id=None)
        return self.forum.update_topic(topic, now=self.clock())
