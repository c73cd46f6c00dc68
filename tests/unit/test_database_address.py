"""A database's address that can't be used is refused without a word of it: it holds a password."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.database_address import check_address
from service.discourse.database import open_forum_database
from service.errors import Misconfigured
from service.store.migrate import migrate
from service.store.pool import open_pool

SECRET = "hunter2"
BAD = [
    f"postgres:/user:{SECRET}@host/db",
    f"postgresql://user:%{SECRET}@host/db",
    f"postgresql://user:{SECRET} x@host/db",
    f"postgresql://user:{SECRET}@[::1/db",
    f"postgresql://user:p@ss{SECRET}@127.0.0.1:1/db",
    f"user=a pass word={SECRET}",
    "not a url",
]


@pytest.mark.parametrize("url", BAD)
async def test_what_is_wrong_is_said_without_quoting_it(url: str) -> None:
    async def forum() -> None:
        options = {"bots": (), "banners": False, "statement_timeout_seconds": 1.0, "connect_timeout_seconds": 1}
        async with open_forum_database(url, **options):  # type: ignore[arg-type]  # each of its own type
            pass

    async def pool() -> None:
        async with open_pool(url):
            pass

    for use, setting in (
        (forum, "backfill.forum_database_url"),
        (pool, "database.url"),
        (lambda: migrate(url), "database.url"),
    ):
        with pytest.raises(Misconfigured, match=f"^{setting} can't be used") as refused:
            await use()
        assert SECRET not in str(refused.value)
        assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "url", ["postgresql://user:p%40ss@host/db", "postgresql:///x?host=/run/postgresql", "dbname=x", "", "host=::1"]
)
def test_what_libpq_reads_is_let_through(url: str) -> None:
    check_address(url, "database.url")


@given(st.text(max_size=60))
def test_what_is_said_is_the_same_of_any_text(text: str) -> None:
    with pytest.raises(Misconfigured) as always:
        check_address("not a url", "database.url")
    try:
        check_address(text, "database.url")
    except Misconfigured as refused:
        assert str(refused) == str(always.value)
