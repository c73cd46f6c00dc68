"""Every place where we keep something of a member, in one list; erasing it and handing it out go by that list."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, LiteralString

from psycopg import sql

from service.domain import PostId, UserId
from service.store.members import Account, note_change
from service.store.pool import Connection, Pool, connection, transaction
from service.store.removal import withdraw_in_parts, withdraw_posts


class Fate(StrEnum):
    """What erasing a member does with a row that holds him in a column."""

    DELETED = "deleted"
    RENAMED = "renamed"
    CLEARED = "cleared"
    EMPTIED = "emptied"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Held:
    """A column that tells of a member: his id (`by_id`), his name, or a post that he wrote (`of_post`).

    A name counts where the column `beside` it, if there is one, holds no other account's id: names are taken over.
    """

    table: str
    column: str
    fate: Fate
    by_id: bool = False
    of_post: bool = False
    beside: str = ""


def _account(table: str, fate: Fate) -> tuple[Held, Held]:
    """A table whose rows are about a member."""
    return Held(table, "username", fate, beside="user_id"), Held(table, "user_id", fate, by_id=True)


def _decision(table: str, name: str, user_id: str) -> tuple[Held, Held]:
    """A record that outlives whom it names: the name first, which is told by the id."""
    return Held(table, name, Fate.RENAMED, beside=user_id), Held(table, user_id, Fate.CLEARED, by_id=True)


# An opt-out is kept while the account lives: it is what keeps his posts from coming back.
PERSONAL = (
    *_account("posts", Fate.EMPTIED),
    Held("answers", "user_id", Fate.EMPTIED, by_id=True),
    Held("answers", "post_id", Fate.EMPTIED, of_post=True),
    Held("traces", "post_id", Fate.DELETED, of_post=True),
    Held("unanswered", "post_id", Fate.DELETED, of_post=True),
    Held("test_questions", "post_id", Fate.DELETED, of_post=True),
    Held("answer_signals", "by_user_id", Fate.DELETED, by_id=True),
    Held("answer_signals", "about_post_id", Fate.DELETED, of_post=True),
    Held("trials", "asked_by", Fate.DELETED),
    *_account("moderator_sessions", Fate.DELETED),
    Held("sign_in_links", "made_by", Fate.DELETED),
    *_account("departures", Fate.DELETED),
    *_account("opt_outs", Fate.KEPT),
    Held("opt_outs", "by", Fate.RENAMED),
    *_decision("member_changes", "username", "user_id"),
    Held("member_changes", "by", Fate.RENAMED),
    Held("flags", "changed_by", Fate.RENAMED),
    *_decision("flag_changes", "changed_by", "changed_by_user_id"),
    Held("gate_rules", "added_by", Fate.RENAMED),
    *_decision("gate_rule_changes", "changed_by", "changed_by_user_id"),
    *_decision("answer_deeds", "by", "by_user_id"),
    *_decision("test_questions", "made_by", "made_by_user_id"),
    Held("source_alerts", "seen_by", Fate.RENAMED),
    Held("evaluation_runs", "recorded_by", Fate.RENAMED),
)
"""Beside these: deliveries, whose `state` names who wrote the post and whom it replies to, and others' traces."""

_OF_DELIVERY: LiteralString = """
((state ->> 'user_id')::bigint = ANY(%(ids)s) OR state ->> 'user_id' IS NULL AND state ->> 'username' = ANY(%(names)s))
"""

_WROTE: LiteralString = f"""
SELECT post_id FROM posts WHERE user_id = ANY(%(ids)s) OR user_id IS NULL AND username = ANY(%(names)s)
UNION SELECT post_id FROM answers WHERE user_id = ANY(%(ids)s)
UNION SELECT (state ->> 'id')::bigint FROM inbox WHERE {_OF_DELIVERY}
ORDER BY 1
"""  # noqa: S608 - both parts are constants of this module

_DELIVERIES: LiteralString = "SELECT to_jsonb(inbox) FROM inbox WHERE " + _OF_DELIVERY  # noqa: S608 - of our own constants

# The row stays: it tells that the delivery was received, and a replay of it is refused.
_EMPTY_DELIVERIES: LiteralString = (
    "UPDATE inbox SET state = NULL, cooked = NULL, topic_title = NULL, topic_slug = NULL WHERE "  # noqa: S608 - of our own constants
    + _OF_DELIVERY
)

_EMPTY_REPLIED_TO = """
UPDATE inbox SET state = state || '{"reply_to_username": ""}' WHERE state ->> 'reply_to_username' = ANY(%(names)s)
"""

# Traces of others' questions name who wrote what was found for them.
_EMPTY_FOUND = """
UPDATE traces SET trace = trace || jsonb_build_object(
    'candidates', ARRAY(
        SELECT CASE WHEN one ->> 'username' = ANY(%(names)s) THEN one || '{"username": ""}' ELSE one END
        FROM jsonb_array_elements(trace -> 'candidates') WITH ORDINALITY AS every (one, place) ORDER BY place
    ),
    'sources', ARRAY(
        SELECT CASE WHEN one ->> 'username' = ANY(%(names)s) THEN one || '{"username": ""}' ELSE one END
        FROM jsonb_array_elements(trace -> 'sources') WITH ORDINALITY AS every (one, place) ORDER BY place
    )
) WHERE EXISTS (
    SELECT FROM jsonb_path_query(trace, '$.*[*].username') AS named WHERE named #>> '{}' = ANY(%(names)s)
)
"""

_FOUND = """
SELECT one FROM (
    SELECT 1, trace_id, n, jsonb_build_object('trace_id', trace_id, 'found', found)
    FROM traces, jsonb_path_query(trace, '$.*[*] ? (exists (@.username))') WITH ORDINALITY AS named (found, n)
    WHERE found ->> 'username' = ANY(%(names)s) AND NOT post_id = ANY(%(wrote)s)
    UNION ALL
    SELECT 2, trial_id, n, jsonb_build_object('trial_id', trial_id, 'found', found)
    FROM trials, jsonb_path_query(result, '$.trace.*[*] ? (exists (@.username))') WITH ORDINALITY AS named (found, n)
    WHERE found ->> 'username' = ANY(%(names)s) AND NOT asked_by = ANY(%(names)s)
) AS every (kind, id, n, one) ORDER BY kind, id, n
"""

# What is left of an answer says that there was one, so that its question is not answered twice.
_EMPTY_ANSWERS = (
    "DELETE FROM answers WHERE post_id = ANY(%(wrote)s) AND finished_at IS NULL",
    "UPDATE answers SET user_id = NULL, trace = NULL, raw = CASE WHEN raw IS NOT NULL THEN '' END"
    " WHERE post_id = ANY(%(wrote)s)",
)

_EMPTY_POSTS = "UPDATE posts SET user_id = NULL, username = '' WHERE post_id = ANY(%(wrote)s)"


async def erase(
    pool: Pool, accounts: Sequence[Account], *, pseudonym: str, gone: bool, by: str, reason: str, now: datetime
) -> int:
    """Erase all that we keep of a member; how many posts of his were known.

    His posts leave the index in parts, then the rest goes in one transaction, with what he wrote meanwhile. Records of
    decisions name the `pseudonym` in his place. Posts that the forum still shows come back with the next reading. With
    the account `gone` an opt-out has nothing left to keep, and goes too.
    """
    async with connection(pool) as conn:
        posts, read_at = await _posts_now(conn, await _values(conn, accounts))
    await withdraw_in_parts(pool, posts, read_at=read_at)
    async with transaction(pool) as conn:
        values = await _values(conn, accounts)
        posts, read_at = await _posts_now(conn, values)
        await withdraw_posts(conn, posts, read_at=read_at)
        for statement in (_EMPTY_POSTS, _EMPTY_DELIVERIES, _EMPTY_REPLIED_TO, _EMPTY_FOUND, *_EMPTY_ANSWERS):
            await conn.execute(statement, values)
        for held in PERSONAL:
            await _end(conn, held, values | {"pseudonym": pseudonym}, gone=gone)
        await note_change(conn, "erased", Account(None, pseudonym), by=by, reason=reason, now=now)
    return len(values["wrote"])


async def export(pool: Pool, accounts: Sequence[Account]) -> dict[str, list[Any]]:
    """All that we keep of a member: the rows as JSON, by table; tables that hold nothing of him are left out.

    Of others' traces and trials it is what was found of his posts for them, under `found`.
    """
    kept: dict[str, list[Any]] = {}
    async with transaction(pool) as conn:
        values = await _values(conn, accounts)
        for table in dict.fromkeys(held.table for held in PERSONAL):
            where = sql.SQL(" OR ").join(_is_his(held) for held in PERSONAL if held.table == table)
            query = sql.SQL("SELECT to_jsonb(one) FROM {} AS one WHERE ").format(sql.Identifier(table)) + where
            kept[table] = [row[0] async for row in await conn.execute(query, values)]
        kept["inbox"] = [row[0] async for row in await conn.execute(_DELIVERIES, values)]
        kept["found"] = [row[0] async for row in await conn.execute(_FOUND, values)]
    return {table: rows for table, rows in kept.items() if rows}


async def _posts_now(conn: Connection, values: dict[str, Any]) -> tuple[list[PostId], datetime]:
    """His posts that are known, and the time."""
    known = "SELECT post_id FROM posts WHERE post_id = ANY(%(wrote)s) ORDER BY post_id"
    posts = [PostId(row[0]) async for row in await conn.execute(known, values)]
    read_at = await (await conn.execute("SELECT clock_timestamp()")).fetchone()
    assert read_at is not None  # noqa: S101 - a SELECT without FROM has a row
    return posts, read_at[0]


async def _values(conn: Connection, accounts: Sequence[Account]) -> dict[str, Any]:
    ids: list[UserId] = [one.user_id for one in accounts if one.user_id is not None]
    values: dict[str, Any] = {"ids": ids, "names": [one.username for one in accounts if one.username is not None]}
    return values | {"wrote": [row[0] async for row in await conn.execute(_WROTE, values)]}


def _is_his(held: Held) -> sql.Composed:
    known = "ids" if held.by_id else "wrote" if held.of_post else "names"
    holds = sql.SQL("{} = ANY({})").format(sql.Identifier(held.column), sql.Placeholder(known))
    if not held.beside:
        return holds
    other = sql.Identifier(held.beside)
    return sql.SQL("({} AND ({} IS NULL OR {} = ANY(%(ids)s)))").format(holds, other, other)


async def _end(conn: Connection, held: Held, values: dict[str, Any], *, gone: bool) -> None:
    table, column = sql.Identifier(held.table), sql.Identifier(held.column)
    match held.fate:
        case Fate.DELETED:
            action = sql.SQL("DELETE FROM {}").format(table)
        case Fate.KEPT if gone:
            action = sql.SQL("DELETE FROM {}").format(table)
        case Fate.RENAMED:
            action = sql.SQL("UPDATE {} SET {} = %(pseudonym)s").format(table, column)
        case Fate.CLEARED:
            action = sql.SQL("UPDATE {} SET {} = NULL").format(table, column)
        case _:
            return
    await conn.execute(action + sql.SQL(" WHERE ") + _is_his(held), values)
