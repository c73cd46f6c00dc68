"""The fallback table's rows of the database: one question in mid-answer and one just asked, under each fault."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
import pytest_asyncio
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from service.errors import Misconfigured
from service.fallbacks import FALLBACKS
from service.fallbacks.row import Fallback, Fault, Part
from service.simulator.model import Post
from service.simulator.switches import Fault as ForumFault
from service.wiring.database import open_database
from tests.conftest import new_database
from tests.e2e.fallback_kit import SLACK_SECONDS, Log, gave_up, grown, part_up, unhandled, values
from tests.e2e.model_loop import ModelLoop, model_loop, until, until_true

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(60)]

ROWS = {row.fault: row for row in FALLBACKS if row.part is Part.DATABASE}
LAST_MIGRATION = "0004_references_quarantine.sql"
Lift = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Patient:
    """The loop, the role that it uses, and a connection of our own to its server, past the door."""

    it: ModelLoop
    role: str
    admin: AsyncConnection[TupleRow]
    url: str

    async def run(self, statement: LiteralString) -> None:
        await self.admin.execute(sql.SQL(statement).format(role=sql.Identifier(self.role)))

    async def end_sessions(self, *, that_wait: bool = False) -> int:
        """Terminate the loop's sessions (those that wait for a lock); how many there were."""
        waiting = " AND wait_event_type = 'Lock'" if that_wait else ""
        cursor = await self.admin.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s{waiting}", [self.role]
        )
        return cursor.rowcount

    async def ready(self) -> tuple[int, Mapping[str, str]]:
        answer = await self.it.loop.client.get("/readyz")
        return answer.status_code, answer.json()["checks"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def patient(
    server_url: str, template_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Patient]:
    """A loop whose role has no more rights than it needs: a superuser is let in past every limit."""
    role = f"loop_{uuid4().hex[:12]}"
    with new_database(server_url) as url, new_role(url, role):
        async with (
            await AsyncConnection.connect(url, autocommit=True) as admin,
            model_loop(url, tmp_path_factory.mktemp("loop"), user={"user": role}) as it,
        ):
            yield Patient(it, role, admin, url)


@contextmanager
def new_role(url: str, name: str) -> Iterator[None]:
    """A role that reads and writes every table, and nothing more."""
    role = sql.Identifier(name)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        conn.execute(sql.SQL("GRANT pg_read_all_data, pg_write_all_data TO {}").format(role))
    yield
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP ROLE {}").format(role))


async def refuse(of: Patient) -> Lift:
    await of.it.doors["database"].shut()
    return of.it.doors["database"].open


async def lock(of: Patient) -> Lift:
    holder = await AsyncConnection.connect(of.url)
    await holder.execute("LOCK TABLE inbox, answers IN ACCESS EXCLUSIVE MODE")
    return holder.close


async def fill_up(of: Patient) -> Lift:
    await of.run("ALTER ROLE {role} CONNECTION LIMIT 0")
    await of.end_sessions()

    async def lift() -> None:
        await of.run("ALTER ROLE {role} CONNECTION LIMIT -1")

    return lift


async def forbid_writing(of: Patient) -> Lift:
    await of.run("ALTER ROLE {role} SET default_transaction_read_only = on")
    await of.end_sessions()

    async def lift() -> None:
        await of.run("ALTER ROLE {role} RESET default_transaction_read_only")
        await of.end_sessions()

    return lift


async def end_transactions(of: Patient) -> Lift:
    """End each that begins, while they wait for a lock."""
    unlock = await lock(of)
    ended = 0

    async def reap() -> None:
        nonlocal ended
        while True:
            ended += await of.end_sessions(that_wait=True)
            await asyncio.sleep(0.05)

    reaping = asyncio.create_task(reap())

    async def lift() -> None:
        reaping.cancel()
        await asyncio.gather(reaping, return_exceptions=True)
        assert ended >= 2
        await unlock()

    return lift


async def age(of: Patient) -> Lift:
    await of.run("ALTER TABLE answers RENAME COLUMN trace TO not_yet")
    await of.run("CREATE TABLE kept AS SELECT * FROM schema_migrations")
    await of.admin.execute("DELETE FROM schema_migrations WHERE name = %s", [LAST_MIGRATION])

    async def lift() -> None:
        await of.run("ALTER TABLE answers RENAME COLUMN not_yet TO trace")
        await of.admin.execute("INSERT INTO schema_migrations SELECT * FROM kept WHERE name = %s", [LAST_MIGRATION])

    return lift


BREAKS: Mapping[Fault, Callable[[Patient], Awaitable[Lift]]] = {
    Fault.REFUSES: refuse,
    Fault.LOCKED: lock,
    Fault.FULL: fill_up,
    Fault.READ_ONLY: forbid_writing,
    Fault.TERMINATED: end_transactions,
}


async def in_mid_answer(of: Patient) -> Post:
    """A question whose answer is being made: the forum is slow to say who asked."""
    held = of.it.loop.room.switches.turn_on(ForumFault.SLOW, method="GET", path="/u/", times=1, seconds=0.4)
    post = of.it.ask()
    await until(lambda: held not in list(of.it.loop.room.switches))
    return post


async def everything_delivered(of: Patient) -> None:
    """Send what was refused again, as the forum does, until all is taken."""
    hooks = of.it.loop.room.webhooks
    assert hooks is not None

    async def taken() -> bool:
        await of.it.redeliver()
        return all(delivery.status == 200 for delivery in hooks.kept.values())

    await until_true(taken, seconds=30)


async def check_healthy(of: Patient, log: Log, failed: float) -> None:
    """Every question ever asked has one reply, no job was lost, and no task died for a reason that isn't ours."""
    await of.it.idle()
    assert of.it.answers(*of.it.asked) == [1] * len(of.it.asked)
    assert log.foreign() == []
    assert gave_up() == failed
    await until(lambda: part_up(Part.DATABASE) == 1, seconds=5)
    status, checks = await of.ready()
    assert (status, checks["database"], checks["schema"]) == (200, "ok", "ok")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead job loop starts again soon, so that the tests take seconds."""
    monkeypatch.setattr("service.worker.RESTART_SECONDS", (0.2, 1.0))


@pytest.mark.parametrize("row", [ROWS[fault] for fault in BREAKS], ids=BREAKS)
async def test_a_question_while_the_database_fails(patient: Patient, row: Fallback, log: Log) -> None:
    it, failed, before = patient.it, gave_up(), values(row.counted)
    with unhandled():
        posts = [await in_mid_answer(patient)]
        lift = await BREAKS[row.fault](patient)
        posts.append(it.ask())
        await it.loop.delivered()
        await grown(row.counted, before)
        assert it.answers(*posts) == [0, 0]
        if not row.up:
            assert (await patient.ready())[0] == 503
        await until(lambda: part_up(Part.DATABASE) == row.up, seconds=5)
        await lift()
        await everything_delivered(patient)
        took = await it.answered(*posts, seconds=40)
        assert took <= row.within.seconds(it.loop.settings) + SLACK_SECONDS
        await check_healthy(patient, log, failed)


async def test_a_commit_whose_answer_is_lost(patient: Patient, log: Log) -> None:
    it, row, failed = patient.it, ROWS[Fault.COMMIT_LOST], gave_up()
    before, door = values(row.counted), it.doors["database"]
    with unhandled():
        await door.shut()  # new sessions, in which no statement is prepared yet: the door reads what they send
        await door.open()
        await check_healthy(patient, log, failed)
        door.cut_after = (b"INSERT INTO inbox", b"COMMIT")
        posts = [it.ask()]
        await it.loop.delivered()
        assert not door.cut_after
        await it.answered(*posts)
        await everything_delivered(patient)
        await it.idle()
        door.cut_after = (b"UPDATE answers SET outcome",)
        posts.append(it.ask())
        took = await it.answered(*posts)
        assert took <= row.within.seconds(it.loop.settings) + SLACK_SECONDS
        await grown(row.counted, before)
        assert not door.cut_after
        await everything_delivered(patient)
        await check_healthy(patient, log, failed)


async def test_a_search_that_hangs(patient: Patient, log: Log) -> None:
    it, row, failed = patient.it, ROWS[Fault.SEARCH], gave_up()
    before = values(row.counted)
    with unhandled():
        async with await AsyncConnection.connect(patient.url) as holder:
            await holder.execute("LOCK TABLE topic_embeddings IN ACCESS EXCLUSIVE MODE")
            post = it.ask()
            took = await it.answered(post)
            assert took <= row.within.seconds(it.loop.settings) + SLACK_SECONDS
            await grown(row.counted, before)
            # The same lock holds up the job that indexes the question, which says otherwise until the next look.
            await until(lambda: part_up(Part.DATABASE) == row.up, seconds=10)
        trace = await it.trace(post)
        assert (trace.mode, trace.zone, trace.notes) == (row.mode, row.best_zone, list(row.notes))
        await it.answered(it.ask())
        await check_healthy(patient, log, failed)


async def test_a_schema_of_yesterday(patient: Patient, log: Log) -> None:
    it, row, failed = patient.it, ROWS[Fault.OLD_SCHEMA], gave_up()
    before = values(row.counted)
    with unhandled():
        lift = await age(patient)
        post = it.ask()
        await grown(row.counted, before)
        assert it.answers(post) == [0]
        status, checks = await patient.ready()
        assert (status, checks["database"]) == (503, "ok")
        assert "ariane migrate" in checks["schema"]
        assert part_up(Part.DATABASE) == row.up
        with pytest.raises(Misconfigured, match=f"lacks {LAST_MIGRATION}: run `ariane migrate`"):
            async with open_database(it.loop.settings, "new"):
                pass
        await lift()
        took = await it.answered(post)
        assert took <= row.within.seconds(it.loop.settings) + SLACK_SECONDS
        await check_healthy(patient, log, failed)
