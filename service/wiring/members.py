"""Which accounts a name or an id means, and the index's rules as the members who opted out make them."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from service.discourse.names import folded_name
from service.domain import UserId
from service.errors import Rejected
from service.ingest.eligibility import IndexRules
from service.store.members import Account, MemberStore
from service.store.personal import erase
from service.store.pool import Pool

MAX_ID = 2**63 - 1


async def rules_now(rules: IndexRules, pool: Pool) -> IndexRules:
    """These rules with the members who are not to be quoted at this moment."""
    found = await MemberStore(pool).opt_outs()
    ids = {one.user_id for one in found if one.user_id is not None}
    names = {folded_name(one.username) for one in found if one.username is not None}
    return replace(rules, opted_out=frozenset(ids) | frozenset(names))


async def erase_departed(
    user_id: UserId, pool: Pool, groups_of: Callable[[str], Awaitable[frozenset[str]]], *, now: datetime
) -> bool:
    """Erase what is kept of an account that a delivery said is gone; False where the forum still has it.

    Every account is in a group, that of its trust level: one in none is not there.
    """
    store = MemberStore(pool)
    username = await store.departed(user_id)
    if username is None:
        return False
    if await groups_of(username):
        await store.has_not_departed(user_id)
        return False
    accounts = {*await accounts_of(str(user_id), pool), Account(user_id, username)}
    pseudonym = f"member-{secrets.token_hex(4)}"
    await erase(
        pool,
        sorted_once(list(accounts)),
        pseudonym=pseudonym,
        gone=True,
        by="forum",
        reason="account destroyed",
        now=now,
    )
    return True


async def accounts_of(who: str, pool: Pool) -> Sequence[Account]:
    """The accounts that `who` means: a username, with or without @, or a user id; digits alone are an id.

    Where an account is known by its posts, every name and id that they give it. One that no post tells of is returned
    as it was given. Raises Rejected for a name that several accounts had.
    """
    store = MemberStore(pool)
    opted_out = [Account(one.user_id, one.username) for one in await store.opt_outs()]
    return accounts_named(who, [*await store.authors(), *opted_out])


def accounts_named(who: str, known: Sequence[Account]) -> Sequence[Account]:
    """The same, among these accounts."""
    if who.isascii() and who.isdigit():
        if int(who) > MAX_ID:
            raise Rejected(f"{who}: no user id is as large")
        user_id = UserId(int(who))
        return sorted_once([one for one in known if one.user_id == user_id]) or [Account(user_id, None)]
    name = who.removeprefix("@")
    if not name.strip():
        raise Rejected("a username or a user id is needed")
    named = [one for one in known if one.username is not None and folded_name(one.username) == folded_name(name)]
    ids = {one.user_id for one in named if one.user_id is not None}
    if len(ids) > 1:
        raise Rejected(
            f"{name}: several accounts had this name: give one of the ids {', '.join(map(str, sorted(ids)))}"
        )
    renamed = [one for one in known if one.user_id in ids]
    return sorted_once([*named, *renamed]) or [Account(None, name)]


def sorted_once(accounts: Sequence[Account]) -> list[Account]:
    """Each account once, in an order of its own."""
    return sorted(set(accounts), key=lambda one: (one.user_id or 0, one.username or ""))
