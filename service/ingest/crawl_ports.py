"""What is kept of the reading of a whole forum, as Protocols; adapters match them structurally."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from service.domain import PostId, Topic, TopicId
from service.ingest.ports import TopicPost


class Stage(StrEnum):
    """What a crawl is at: the lists of topics, all posts by id, topics that lack some, or its end."""

    TOPICS = "topics"
    POSTS = "posts"
    GAPS = "gaps"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class CrawlCursor:
    """Where a crawl is: the next page of topics, and the ids still to be walked, from `before` down to above `floor`.

    `newest` is the highest id there was when this walk began: a later one begins there from above.
    """

    stage: Stage
    topic_page: int
    newest: PostId
    before: PostId
    floor: PostId


class Crawls(Protocol):
    """How far each crawl has come, so that an interrupted one goes on where it stopped, and is nobody else's."""

    def alone(self, source: str) -> AbstractAsyncContextManager[bool]:
        """Whether nobody else reads this source; then nobody else does until the end of the block."""
        ...

    async def cursor(self, source: str) -> CrawlCursor | None: ...
    async def keep_cursor(self, source: str, cursor: CrawlCursor) -> None: ...
    async def expect(self, source: str, last_numbers: Mapping[TopicId, int]) -> None:
        """Remember how many posts these topics have, were none deleted."""
        ...

    async def incomplete(self, source: str) -> list[TopicId]:
        """The topics of which fewer posts are stored than are expected."""
        ...

    async def complete(self, source: str, topic_id: TopicId) -> None:
        """Expect no more posts of this topic."""
        ...

    async def topics_stored(self, topic_ids: Collection[TopicId]) -> dict[TopicId, Topic]: ...
    async def texts_stored(self, post_ids: Collection[PostId]) -> dict[PostId, TopicPost]:
        """What embedding needs of those of these posts that are in the index."""
        ...

    async def titled_topics(self, after: TopicId, limit: int) -> list[TopicId]:
        """The next topics above this id that are stored as public, in the order of their ids."""
        ...

    async def eligible_upto(self, newest: PostId, *, after: PostId, limit: int) -> list[PostId]:
        """The next posts above the id `after`, up to `newest`, that are in the index, in the order of their ids."""
        ...

    async def unknown_posts(self, post_ids: Sequence[PostId]) -> list[PostId]:
        """Those of which nothing is stored, in the same order."""
        ...


class Claims(Protocol):
    """Who embeds what: of several processes that fill one index, only one holds a claim."""

    def claim(self, number: int) -> AbstractAsyncContextManager[bool]:
        """Whether the claim is ours until the end of the block, or our process's."""
        ...
