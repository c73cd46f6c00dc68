"""The inbox: deliveries stored before they are acknowledged, each content once, private text never."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from service.domain import InboxId, Post, PostType
from service.ingest.ports import Delivery
from service.settings import RetentionSettings
from service.store.pool import Connection, Pool, connection, transaction
from service.store.values import storable, to_json

_TEXTS = ("cooked", "topic_title", "topic_slug")
_OPEN_ARCHETYPES = ("regular", "banner")
_OPEN_TYPES = (PostType.REGULAR, PostType.MODERATOR_ACTION, PostType.SMALL_ACTION)

_RECEIVE = """
INSERT INTO inbox (content_key, instance, event, event_id, waiting, state, cooked, topic_title, topic_slug)
SELECT %(content_key)s, %(instance)s, %(event)s, %(event_id)s, %(waiting)s, %(state)s,
       CASE WHEN place.is_public THEN %(cooked)s END,
       CASE WHEN place.is_public THEN %(topic_title)s END,
       CASE WHEN place.is_public THEN %(topic_slug)s END
FROM (SELECT %(may_keep)s AND EXISTS (
          SELECT FROM categories WHERE category_id = %(category_id)s AND NOT read_restricted
      ) AS is_public) AS place
ON CONFLICT (content_key) DO NOTHING
RETURNING inbox_id
"""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A verified delivery: `content_key` is equal for equal contents, `waiting` names the tasks that will use it."""

    content_key: bytes
    instance: str
    event: str
    event_id: str
    waiting: tuple[str, ...]
    post: Post | None


@dataclass(frozen=True, slots=True)
class Expired:
    texts: int
    rows: int


def may_keep_text(post: Post) -> bool:
    """Whether the post's text could be public, its category aside: unknown means private."""
    return (
        post.archetype in _OPEN_ARCHETYPES
        and post.post_type in _OPEN_TYPES
        and not post.hidden
        and not post.deleted
        and not post.user_deleted
    )


def _state(post: Post) -> dict[str, Any]:
    return {field.name: to_json(getattr(post, field.name)) for field in fields(post) if field.name not in _TEXTS}


def _post(state: dict[str, Any], cooked: str | None, title: str | None, slug: str | None) -> Post:
    times = {name: datetime.fromisoformat(state[name]) for name in ("created_at", "updated_at")}
    return Post(**{**state, **times}, cooked=cooked or "", topic_title=title or "", topic_slug=slug or "")


class InboxStore:
    """Matches `service.ingest.ports.Inbox`, and receives for the webhook."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def receive(
        self, delivery: NewDelivery, defer: Callable[[Connection, InboxId], Awaitable[None]]
    ) -> InboxId | None:
        """Store the delivery and `defer` its jobs on the same connection, in one transaction.

        None, and nothing deferred, when this content was received before. The post's texts are kept only while a task
        waits for them and its place is known to be public.
        """
        post = delivery.post
        async with transaction(self._pool) as conn:
            cursor = await conn.execute(
                _RECEIVE,
                {
                    "content_key": delivery.content_key,
                    "instance": storable(delivery.instance),
                    "event": storable(delivery.event),
                    "event_id": storable(delivery.event_id),
                    "waiting": list(delivery.waiting),
                    "state": Jsonb(_state(post)) if post else None,
                    "cooked": storable(post.cooked) if post else None,
                    "topic_title": storable(post.topic_title) if post else None,
                    "topic_slug": storable(post.topic_slug) if post else None,
                    "category_id": post.category_id if post else None,
                    "may_keep": post is not None and bool(delivery.waiting) and may_keep_text(post),
                },
            )
            row = await cursor.fetchone()
            if row is None:
                return None
            inbox_id = InboxId(row[0])
            await defer(conn, inbox_id)
            return inbox_id

    async def delivery(self, inbox_id: InboxId) -> Delivery | None:
        """The stored post delivery, or None when its row has expired or it held no post."""
        async with connection(self._pool) as conn:
            cursor = await conn.execute(
                "SELECT event, state, cooked, topic_title, topic_slug FROM inbox"
                " WHERE inbox_id = %s AND state IS NOT NULL",
                (inbox_id,),
            )
            row = await cursor.fetchone()
        if row is None:
            return None
        event, state, cooked, title, slug = row
        return Delivery(event, _post(state, cooked, title, slug), has_text=cooked is not None)

    async def done(self, inbox_id: InboxId, task: str) -> None:
        """This task has used the delivery; its texts go once no task waits for them."""
        async with connection(self._pool) as conn:
            await conn.execute(
                "UPDATE inbox SET waiting = array_remove(waiting, %(task)s),"
                " cooked = CASE WHEN array_remove(waiting, %(task)s) <> '{}' THEN cooked END,"
                " topic_title = CASE WHEN array_remove(waiting, %(task)s) <> '{}' THEN topic_title END,"
                " topic_slug = CASE WHEN array_remove(waiting, %(task)s) <> '{}' THEN topic_slug END"
                " WHERE inbox_id = %(inbox_id)s",
                {"inbox_id": inbox_id, "task": task},
            )

    async def expire(self, retention: RetentionSettings, *, now: datetime) -> Expired:
        """Drop the texts, then the rows, that are older than the settings allow."""
        async with transaction(self._pool) as conn:
            texts = await conn.execute(
                "UPDATE inbox SET cooked = NULL, topic_title = NULL, topic_slug = NULL"
                " WHERE received_at < %s AND num_nonnulls(cooked, topic_title, topic_slug) > 0",
                (now - timedelta(hours=retention.inbox_body_hours),),
            )
            rows = await conn.execute(
                "DELETE FROM inbox WHERE received_at < %s", (now - timedelta(days=retention.inbox_days),)
            )
            return Expired(texts.rowcount, rows.rowcount)
