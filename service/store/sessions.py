"""Who is signed in to the moderators' pages: attempts, sessions and set-up links, kept as hashes only."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import LiteralString

from service.domain import UserId
from service.store.pool import Pool, connection, transaction
from service.store.values import storable

SIGN_IN_MINUTES = 10
"""How long a sign-in may take at the forum, and how long a set-up link can be used."""

SEEN_SECONDS = 30
"""A session's last use is written down no more often than this."""

MOST_BEGUN = 10_000
"""Sign-ins on their way: anybody may begin one, so that those begun first make room for more."""

_FORGET_BEGUN = """
DELETE FROM sign_ins WHERE started_at < %s
OR nonce_sha256 IN (SELECT nonce_sha256 FROM sign_ins ORDER BY started_at DESC OFFSET %s)
"""

_PRESENT = """
WITH present AS (
    SELECT * FROM moderator_sessions
    WHERE session_sha256 = %(sha256)s AND began_at > %(began_after)s AND seen_at > %(seen_after)s
), noted AS (
    UPDATE moderator_sessions SET seen_at = %(now)s FROM present
    WHERE moderator_sessions.session_sha256 = present.session_sha256 AND present.seen_at < %(stale)s
)
SELECT username, user_id, admin, moderator, groups FROM present
"""


@dataclass(frozen=True, slots=True)
class Person:
    """Who signed in, as the forum said at that moment; without a `user_id` he came by a set-up link."""

    username: str
    user_id: UserId | None
    admin: bool
    moderator: bool
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SignIn:
    """A sign-in that was begun: the forum gives `nonce` back, and the browser keeps `browser`, so that nobody else can
    end it."""

    nonce: str
    browser: str


@dataclass(frozen=True, slots=True)
class SessionLife:
    """How long a session lasts without use, and in all."""

    idle: timedelta
    absolute: timedelta


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class SessionStore:
    """The sign-ins and sessions; what it hands out is random, and what it keeps of it is a SHA-256."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def begin(self, next_path: str, *, now: datetime) -> SignIn:
        """Begin a sign-in that ends at `next_path`."""
        new = SignIn(_new_secret(), _new_secret())
        async with connection(self._pool) as conn:
            await conn.execute(_FORGET_BEGUN, (_oldest(now), MOST_BEGUN))
            await conn.execute(
                "INSERT INTO sign_ins (nonce_sha256, browser_sha256, next_path, started_at) VALUES (%s, %s, %s, %s)",
                (_sha256(new.nonce), _sha256(new.browser), storable(next_path), now),
            )
        return new

    async def take(self, sign_in: SignIn, *, now: datetime) -> str | None:
        """Use up a begun sign-in, for good; where it leads, or None for one that is unknown, used, too old or another
        browser's."""
        return await self._taken(
            "DELETE FROM sign_ins WHERE nonce_sha256 = %s AND browser_sha256 = %s AND started_at > %s"
            " RETURNING next_path",
            (_sha256(sign_in.nonce), _sha256(sign_in.browser), _oldest(now)),
        )

    async def new_link(self, made_by: str, *, now: datetime) -> str:
        """The token of a new set-up link, for who made it."""
        token = _new_secret()
        async with connection(self._pool) as conn:
            await conn.execute("DELETE FROM sign_in_links WHERE made_at < %s", (_oldest(now),))
            await conn.execute(
                "INSERT INTO sign_in_links (token_sha256, made_by, made_at) VALUES (%s, %s, %s)",
                (_sha256(token), storable(made_by), now),
            )
        return token

    async def take_link(self, token: str, *, now: datetime) -> str | None:
        """Use up a set-up link, for good; who made it, or None for one that is unknown, used or too old."""
        return await self._taken(
            "DELETE FROM sign_in_links WHERE token_sha256 = %s AND made_at > %s RETURNING made_by",
            (_sha256(token), _oldest(now)),
        )

    async def open(self, person: Person, *, life: SessionLife, now: datetime) -> str:
        """Begin a session; the secret that its cookie holds."""
        session = _new_secret()
        async with transaction(self._pool) as conn:
            await conn.execute(
                "DELETE FROM moderator_sessions WHERE began_at < %s OR seen_at < %s",
                (now - life.absolute, now - life.idle),
            )
            await conn.execute(
                "INSERT INTO moderator_sessions"
                " (session_sha256, username, user_id, admin, moderator, groups, began_at, seen_at)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    _sha256(session),
                    storable(person.username),
                    person.user_id,
                    person.admin,
                    person.moderator,
                    sorted(storable(group) for group in person.groups),
                    now,
                    now,
                ),
            )
        return session

    async def present(self, session: str, *, life: SessionLife, now: datetime) -> Person | None:
        """Whose session this is, or None when it is unknown, over, or was left alone too long."""
        values = {
            "sha256": _sha256(session),
            "now": now,
            "stale": now - timedelta(seconds=SEEN_SECONDS),
            "began_after": now - life.absolute,
            "seen_after": now - life.idle,
        }
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_PRESENT, values)).fetchone()
        if row is None:
            return None
        username, user_id, admin, moderator, groups = row
        return Person(username, None if user_id is None else UserId(user_id), admin, moderator, frozenset(groups))

    async def close(self, session: str) -> None:
        """End a session; one that is unknown is over already."""
        async with connection(self._pool) as conn:
            await conn.execute("DELETE FROM moderator_sessions WHERE session_sha256 = %s", (_sha256(session),))

    async def _taken(self, query: LiteralString, values: tuple[object, ...]) -> str | None:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(query, values)).fetchone()
        return None if row is None else str(row[0])


def _oldest(now: datetime) -> datetime:
    return now - timedelta(minutes=SIGN_IN_MINUTES)
