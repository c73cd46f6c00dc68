"""What the forum holds and who hears of its changes; what is put in is not announced."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from service.simulator.cook import Cooked, Preview, cook, excerpt
from service.simulator.model import Category, Change, Member, Notification, Post, Topic, fold


class Board:
    """A small forum in memory. Ids are never used twice; deleted things stay and are marked.

    Methods that name a post, topic, category or member raise KeyError where there is none.
    """

    def __init__(self, *, title: str, base_url: str) -> None:
        self.title = title
        self.base_url = base_url.rstrip("/")
        self.base_path = urlsplit(self.base_url).path
        self.members: dict[int, Member] = {}
        self.categories: dict[int, Category] = {}
        self.topics: dict[int, Topic] = {}
        self.posts: dict[int, Post] = {}
        self.notifications: dict[int, Notification] = {}
        self.listeners: list[Callable[[Sequence[Change]], None]] = []
        self.last_ids: dict[str, int] = {}
        self._by_name: dict[str, int] = {}
        self._streams: dict[int, list[int]] = {}

    def member(self, username: str) -> Member | None:
        found = self._by_name.get(fold(username))
        return None if found is None else self.members[found]

    def stream(self, topic_id: int) -> list[Post]:
        """All posts of a topic by number, deleted ones included."""
        posts = [self.posts[i] for i in self._streams.get(topic_id, [])]
        return sorted(posts, key=lambda post: post.number)  # one that was moved has an older id than others

    def at(self, topic_id: int, number: int) -> Post | None:
        return next((p for p in self.stream(topic_id) if p.number == number), None)

    def replies(self, post: Post) -> list[Post]:
        return [p for p in self.stream(post.topic_id) if p.reply_to == post.number]

    def topic_url(self, topic: Topic, number: int | None = None) -> str:
        """The path of a topic or of one of its posts, subfolder included."""
        path = f"{self.base_path}/t/{topic.slug}/{topic.id}"
        return path if number is None else f"{path}/{number}"

    def canonical_name(self, username: str) -> str | None:
        """The member's name as he writes it himself (for cook)."""
        found = self.member(username)
        return found.username if found else None

    def preview(self, topic_id: int, number: int) -> Preview | None:
        """What a onebox or a quote shows of a post (for cook); None where an anonymous reader sees nothing."""
        topic, post = self.topics.get(topic_id), self.at(topic_id, number)
        if topic is None or post is None or topic.deleted_at or topic.category_id is None:
            return None
        if self.categories[topic.category_id].read_restricted or post.hidden or post.deleted_at:
            return None
        author = self.members[post.user_id].username
        return Preview(topic.title, self.topic_url(topic, number), author, excerpt(post.cooked))

    def cook(self, raw: str, topic_id: int | None = None) -> Cooked:
        return cook(raw, self, topic_id=topic_id)

    def new_id(self, kind: str) -> int:
        self.last_ids[kind] = self.last_ids.get(kind, 0) + 1
        return self.last_ids[kind]

    def add(self, *things: Member | Category | Topic | Post | Notification) -> None:
        """Put things in as they are, without announcing them; later ids are above theirs."""
        for thing in things:
            match thing:
                case Member():
                    self.members[thing.id] = thing
                    self._by_name[fold(thing.username)] = thing.id
                case Category():
                    self.categories[thing.id] = thing
                case Topic():
                    self.topics[thing.id] = thing
                case Post():
                    if thing.id not in self.posts:
                        self._streams.setdefault(thing.topic_id, []).append(thing.id)
                    self.posts[thing.id] = thing
                case Notification():
                    self.notifications[thing.id] = thing
            kind = type(thing).__name__.lower()
            self.last_ids[kind] = max(self.last_ids.get(kind, 0), thing.id)

    def recook(self) -> None:
        """Cook every post anew: mentions and quotes can name what came later."""
        for post in list(self.posts.values()):
            self.posts[post.id] = replace(post, cooked=self.cook(post.raw, post.topic_id).html)

    def place(self, post: Post) -> None:
        """Put a post that is known into another topic, or under another number, as it is, without announcing it."""
        self._streams[self.posts[post.id].topic_id].remove(post.id)
        self._streams.setdefault(post.topic_id, []).append(post.id)
        self.posts[post.id] = post

    def announce(self, *changes: Change) -> None:
        """Tell the listeners; without a change, only that something is to be kept."""
        for listener in self.listeners:
            listener(changes)
