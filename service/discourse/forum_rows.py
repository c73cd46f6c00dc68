"""Rows of a forum's own Postgres turned into the domain, by the same rules as its JSON."""

from datetime import UTC, datetime

import numpy as np
from psycopg.rows import TupleRow

from service.discourse.embeddings import EmbeddedText
from service.discourse.shapes import post_from_json, topic_from_json
from service.domain import Post, Topic, Vector
from service.errors import Rejected


def post_of(row: TupleRow) -> tuple[Post, Topic]:
    """A row of forum_sql.PUBLIC_POSTS, read as the forum's JSON would be; raises Rejected."""
    topic = topic_from_json(
        {
            "id": row[1],
            "title": row[10],
            "slug": row[11],
            "category_id": row[12],
            "archetype": row[13],
            "visible": True,
            "closed": row[14],
            "archived": row[15],
            "tags": row[16],
        }
    )
    names = ("id", "topic_id", "post_number", "post_type", "user_id", "username", "cooked")
    rest = {
        "created_at": _date(row[7], "created_at").isoformat(),
        "updated_at": _date(row[8], "updated_at").isoformat(),
    }
    fields = dict(zip(names, row, strict=False)) | rest | {"reply_to_post_number": row[9]}
    return post_from_json(fields, topic=topic), topic


def embedded_of(row: TupleRow) -> EmbeddedText:
    """A row of forum_sql.EMBEDDED_TEXTS; raises Rejected."""
    made, post_updated, topic_updated = (_date(value, "updated_at") for value in row[2:5])
    title, category, cooked, tags, all_tags = row[5:]
    for value in (row[1], title, category, cooked):
        if not isinstance(value, str):
            raise Rejected("vector: its digest, or its post's title, category or text is missing")
    return EmbeddedText(
        row[0], row[1], made, post_updated, topic_updated, title, category, tuple(tags), tuple(all_tags), cooked
    )


def vector_from_text(text: str) -> Vector | None:
    """pgvector's text form as a vector; None where it isn't one of finite numbers."""
    try:
        with np.errstate(over="ignore"):  # what is past a float's range becomes infinite, and is refused below
            vector = np.array(text.strip("[]").split(","), dtype=np.float32)
    except ValueError:
        return None
    return vector if vector.size and np.isfinite(vector).all() else None


def _date(value: object, column: str) -> datetime:
    """A time of the forum: UTC without saying so, to the millisecond that its REST and webhooks give."""
    if not isinstance(value, datetime):
        raise Rejected(f"{column}: expected a time")
    date = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return date.replace(microsecond=date.microsecond // 1000 * 1000)
