"""A database of Discourse's shape, as far as docs/discourse section 7 tells it: tables, and rows put in by name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg

from service.discourse.embeddings import EmbeddedText, digest_of, whole_texts
from service.domain import PostId, Vector
from tests.integration.store_data import NOON, later

SCHEMA = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE users (id integer PRIMARY KEY, username varchar(60) NOT NULL);
CREATE TABLE categories (
    id integer PRIMARY KEY, name varchar(50) NOT NULL, slug varchar NOT NULL, parent_category_id integer,
    read_restricted boolean NOT NULL DEFAULT false, topic_id integer
);
CREATE TABLE topics (
    id integer PRIMARY KEY, title varchar NOT NULL, slug varchar, category_id integer,
    archetype varchar NOT NULL DEFAULT 'regular', visible boolean NOT NULL DEFAULT true,
    closed boolean NOT NULL DEFAULT false, archived boolean NOT NULL DEFAULT false,
    deleted_at timestamp, updated_at timestamp NOT NULL
);
CREATE TABLE posts (
    id integer PRIMARY KEY, user_id integer, topic_id integer NOT NULL, post_number integer NOT NULL,
    raw text NOT NULL DEFAULT '', cooked text NOT NULL, created_at timestamp NOT NULL, updated_at timestamp NOT NULL,
    reply_to_post_number integer, deleted_at timestamp, hidden boolean NOT NULL DEFAULT false,
    user_deleted boolean NOT NULL DEFAULT false, post_type integer NOT NULL DEFAULT 1,
    wiki boolean NOT NULL DEFAULT false
);
CREATE TABLE tags (id integer PRIMARY KEY, name varchar NOT NULL);
CREATE TABLE topic_tags (topic_id integer NOT NULL, tag_id integer NOT NULL);
CREATE TABLE tag_group_memberships (tag_id integer NOT NULL, tag_group_id integer NOT NULL);
CREATE TABLE tag_group_permissions (tag_group_id integer NOT NULL, group_id integer NOT NULL, permission_type integer);
"""

EMBEDDINGS = """
CREATE TABLE embedding_definitions (
    id bigint PRIMARY KEY, display_name varchar NOT NULL, dimensions integer NOT NULL,
    max_sequence_length integer NOT NULL, version integer NOT NULL DEFAULT 1, api_key varchar, embed_prompt varchar
);
CREATE TABLE ai_posts_embeddings (
    post_id bigint NOT NULL, model_id bigint NOT NULL, model_version integer NOT NULL, strategy_id integer NOT NULL,
    strategy_version integer NOT NULL, digest text NOT NULL, embeddings halfvec NOT NULL,
    created_at timestamp NOT NULL, updated_at timestamp NOT NULL, UNIQUE (model_id, strategy_id, post_id)
);
"""


@dataclass
class DiscourseDatabase:
    """Rows go in with defaults: a public post of a public topic, by a member."""

    url: str
    model_id: int = 42
    _conn: "psycopg.Connection[tuple[Any, ...]]" = field(init=False)

    def __post_init__(self) -> None:
        self._conn = psycopg.connect(self.url, autocommit=True)
        self._conn.execute(SCHEMA.encode())
        self.put("users", id=7, username="ines")
        self.put("users", id=-1, username="system")
        self.put("categories", id=1, name="Garden", slug="garden")
        self.put("categories", id=2, name="Staff room", slug="staff", read_restricted=True)

    def close(self) -> None:
        self._conn.close()

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._conn.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def rows(self, query: LiteralString, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """What a query of ours finds."""
        return self._conn.execute(query, values).fetchall()

    def put(self, table: str, **values: object) -> None:
        names = ", ".join(values)
        marks = ", ".join(["%s"] * len(values))
        self._conn.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})".encode(), list(values.values()))

    def topic(self, topic_id: int, **values: object) -> None:
        rest = {"title": f"Title {topic_id}", "slug": f"title-{topic_id}", "category_id": 1, "updated_at": NOON}
        self.put("topics", id=topic_id, **rest | values)

    def post(self, post_id: int, topic_id: int, number: int = 1, **values: object) -> None:
        given = {
            "user_id": 7,
            "cooked": f"<p>Words of {post_id}.</p>\n<ul><li>one</li>\n<li>two</li></ul>",
            "created_at": NOON,
            "updated_at": NOON,
        }
        self.put("posts", id=post_id, topic_id=topic_id, post_number=number, **given | values)

    def tag(self, tag_id: int, name: str, *topic_ids: int, seen_by: int | None = None) -> None:
        """A tag of these topics; `seen_by` is the only group that sees it."""
        self.put("tags", id=tag_id, name=name)
        for topic_id in topic_ids:
            self.put("topic_tags", topic_id=topic_id, tag_id=tag_id)
        if seen_by is not None:
            self.put("tag_group_memberships", tag_id=tag_id, tag_group_id=tag_id)
            self.put("tag_group_permissions", tag_group_id=tag_id, group_id=seen_by, permission_type=1)

    def with_model(
        self, name: str = "BGE-M3 (our server)", *, dimensions: int, window: int = 512, prompt: str = ""
    ) -> None:
        self._conn.execute(EMBEDDINGS.encode())
        self.define(self.model_id, name, dimensions=dimensions, window=window, prompt=prompt)

    def define(self, model_id: int, name: str, *, dimensions: int, window: int = 512, prompt: str = "") -> None:
        self.put(
            "embedding_definitions",
            id=model_id,
            display_name=name,
            dimensions=dimensions,
            max_sequence_length=window,
            embed_prompt=prompt,
        )

    def whole_text(self, post_id: int) -> str:
        """The strategy 1 text of a post, before truncation."""
        [(title, category, cooked)] = self.run(
            "SELECT title, coalesce(name, ''), cooked FROM posts JOIN topics ON topics.id = topic_id"
            " LEFT JOIN categories ON categories.id = category_id WHERE posts.id = %s",
            post_id,
        )
        tags = self.run(
            "SELECT name FROM tags JOIN topic_tags ON tag_id = tags.id JOIN posts USING (topic_id)"
            " WHERE posts.id = %s ORDER BY tags.id",
            post_id,
        )
        names = tuple(name for (name,) in tags)
        one = EmbeddedText(PostId(post_id), "", NOON, NOON, NOON, title, category, names, names, cooked)
        return next(whole_texts(one))

    def vector(self, post_id: int, vector: Vector | list[float], **values: object) -> None:
        """A vector of the post's text, made after the post, with the digest that it had if it was not cut."""
        given = {
            "model_id": self.model_id,
            "model_version": 1,
            "strategy_id": 1,
            "strategy_version": 1,
            "digest": digest_of(self.whole_text(post_id)) if "digest" not in values else "",
            "embeddings": json.dumps([float(value) for value in vector]),
            "created_at": later(5),
            "updated_at": later(5),
        }
        self.put("ai_posts_embeddings", post_id=post_id, **given | values)
