"""The logs of real processes at info: what happened and where, never what anybody wrote, never a secret."""

import asyncio
from pathlib import Path

import httpx
import psycopg
import pytest

from service.demo.processes import Children
from service.simulator.switches import Fault
from service.wiring.services import open_services
from tests.e2e.loop import QUESTION, SECRET, acting_as, fill_index, loop_settings
from tests.e2e.processes import HOST, free_port, start_simulator, start_web, start_worker, until
from tests.simulated import ADMIN_KEY, KEY, tiny_forum
from tests.switching import switch_on


@pytest.mark.chaos
async def test_logs_hold_no_text_and_no_secret(database_url: str, tmp_path: Path) -> None:
    port = free_port()
    base_url = f"http://{HOST}:{port}"
    settings = loop_settings(database_url, base_url, tmp_path, limits={})
    forum = tiny_forum(tmp_path, base_url=base_url)
    async with open_services(settings, "test") as services:
        await fill_index(services, forum, tmp_path)
        await switch_on(services.pool, settings)
    async with Children(tmp_path / "logs") as children, httpx.AsyncClient(base_url=base_url, timeout=30) as client:
        web, webhook_url = await start_web(children, settings, "web")
        _, worker = await asyncio.gather(
            start_simulator(children, tmp_path / "forum.yml", port, webhook_url),
            start_worker(children, settings, "worker"),
        )

        async def say(raw: str, *, topic: int = 10, by: str = "alice") -> None:
            body = {"raw": raw, "topic_id": topic}
            assert (await client.post("/posts.json", json=body, headers=acting_as(by))).status_code == 200

        async def fail(fault: Fault, **options: object) -> None:
            answer = await client.post("/simulator/switches", json={"fault": fault, "times": 1, **options})
            assert answer.status_code == 200, answer.text

        async def settled() -> None:
            async def quiet() -> bool:
                with psycopg.connect(database_url) as conn:
                    query = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
                    (left,) = conn.execute(query).fetchone() or (1,)
                    query = "SELECT count(*) FROM inbox"
                    (received,) = conn.execute(query).fetchone() or (0,)
                deliveries = (await client.get("/simulator/deliveries.json")).json()
                return left == 0 and received > 0 and all(one["status"] for one in deliveries)

            await until(quiet)

        await say(f"{QUESTION} zqplain")
        await settled()
        await say("For the staff alone: zqstaff, @ariane.", topic=11, by="boss")
        for fault, options in (
            (Fault.GARBAGE, {"method": "GET", "path": "/t/"}),
            (Fault.STATUS, {"method": "GET", "path": "/u/", "status": 418}),
            (Fault.LOST, {"method": "GET", "path": "/posts/"}),
        ):
            await fail(fault, **options)
            await say(f"{QUESTION} zqfault {fault}")
        await settled()
        assert (await client.get("/simulator/switches.json")).json() == [], "a fault met no request"
        await fail(Fault.HOOK_FORGE)
        await say("A forged one: zqforged and more.")
        with psycopg.connect(database_url, autocommit=True) as conn:  # an error in which Postgres quotes the row
            conn.execute("ALTER TABLE posts ADD CONSTRAINT broken CHECK (body IS NULL OR body NOT LIKE '%zqbroken%')")
            await say("Postgres will quote this: zqbroken.")
            await until(lambda: _logged(worker.log, "job_failed", "broken"))
            conn.execute("ALTER TABLE inbox ADD CONSTRAINT lost CHECK (cooked IS NULL OR cooked NOT LIKE '%zqlost%')")
            await say("Postgres will quote that too: zqlost.")
            await until(lambda: _logged(web.log, "delivery_not_stored", "lost"))
        replies = (await client.get("/t/10.json", headers=acting_as("boss"))).json()["post_stream"]["posts"]
        assert sum(post["username"] == "ariane" for post in replies) == 4
    for log in (web.log, worker.log):
        said = log.read_text(encoding="utf-8")
        assert "listening" in said or "responded" in said
        for word in ("zq", "gurgle", "radiator", "Open the valve", SECRET, KEY, ADMIN_KEY):
            assert word not in said, (log.name, word, _lines_with(said, word))


async def _logged(log: Path, *words: str) -> bool:
    said = await asyncio.to_thread(log.read_text, encoding="utf-8")
    return all(word in said for word in words)


def _lines_with(said: str, word: str) -> list[str]:
    return [line[:500] for line in said.splitlines() if word in line]
