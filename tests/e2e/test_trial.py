"""A moderator tries a question, and the gate with a rule of his own: a worker process answers, nothing is posted."""

from pathlib import Path

import pytest

from service.demo.processes import Children
from service.store.flags import FlagStore
from tests.e2e.loop import QUESTION, whole_loop
from tests.e2e.processes import start_worker, until
from tests.moderators import Pages, open_pages, visible

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

RULE = {
    "do": "add",
    "id": "weather-en",
    "kind": "generalist",
    "language": "en",
    "verb": "weather",
    "object": "tomorrow|tonight",
    "within": "5",
    "positives": "What is the weather tomorrow?\nThe weather tonight, please\nHow is the weather tonight?",
    "lookalikes": "Is there a weather shader?\nWhere is the sky node?\nHow do I draw rain?",
    "why": "a test",
}


async def tried(pages: Pages, question: str) -> str:
    sent = await pages.post("/try", {"question": question})
    path = sent.headers["location"].removeprefix("/moderation")

    async def ended() -> bool:
        return "refresh" not in (await pages.client.get(path)).headers

    await until(ended)
    return visible(await pages.text(path))


async def test_a_worker_answers_and_posts_nothing(database_url: str, tmp_path: Path) -> None:
    async with whole_loop(database_url, tmp_path) as loop, Children(tmp_path / "logs") as children:
        pool = loop.services.pool
        await start_worker(children, loop.settings, "worker")
        async with open_pages(pool, loop.settings) as pages:
            await pages.sign_in()
            await FlagStore(pool).set("input_gate", "on", by="x", reason="x")
            shown = await tried(pages, QUESTION)
            assert "Result answered Gate let through" in shown
            assert "Search reranked Zone" in shown
            assert "ms in all" in shown
            signed = await pages.post("/try/1", {"verdict": "passed", "why": "it is right"})
            assert signed.headers["location"] == "/moderation/flags?done=1"  # the worker's configuration is ours
            asks = "How will the weather be tomorrow?"
            assert "Gate let through" in await tried(pages, asks)
            await pages.post("/gate/rules", RULE)
            assert "Result declined by the gate Gate declined by generalist:weather-en" in await tried(pages, asks)

            async def told() -> bool:
                return "The forum answers its reads" in visible(await pages.text("/")) and "Ranking works" in visible(
                    await pages.text("/")
                )

            await until(told)
        async with pool.connection() as conn:
            assert (await conn.execute("SELECT 1 FROM answers UNION ALL SELECT 1 FROM traces")).rowcount == 0
