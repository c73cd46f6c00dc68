"""The database of a bench under test: benches of other tests may run beside it, on the same server."""

import psycopg
import pytest

from service.bench import scratch


def named(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name that the next bench gives its database."""
    name = scratch.new_name()
    monkeypatch.setattr(scratch, "new_name", lambda: name)
    return name


def is_gone(name: str, database_url: str) -> bool:
    with psycopg.connect(database_url) as conn:
        return conn.execute("SELECT FROM pg_database WHERE datname = %s", (name,)).rowcount == 0
