"""The demo's first question: asked on the forum as a member would, and followed until the reply is there."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from service.demo.plan import Plan
from service.errors import Misconfigured, Transient

QUESTIONS = (
    ("cosette", "Mes tomates ont des taches brunes sur les feuilles depuis la pluie, que faire contre le mildiou ?"),
    ("newleaf22", "My seedlings are tall and thin and keep falling over, what did I do wrong?"),
    ("TwoPots", "How do I water my balcony pots while I am away on holiday?"),
    ("bastien_b", "Mon compost sent mauvais et il est tout mouillé, comment le rattraper ?"),
)
"""Asked in turn, one at each start: the forum refuses the same words twice within five minutes."""

WAIT_SECONDS = 90.0
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on the forum, and our reply to it (its raw Markdown, and its address)."""

    text: str
    post_id: int
    reply: str
    reply_url: str


async def ask_on_forum(plan: Plan, *, turn: int) -> Asked:
    """Open a topic that mentions the bot and wait for its reply; raises Transient when none comes."""
    member, text = QUESTIONS[turn % len(QUESTIONS)]
    headers = {"Api-Key": plan.member_key, "Api-Username": member}
    async with httpx.AsyncClient(base_url=plan.forum_url, timeout=10.0) as client:
        post = await _create(client, headers, text, turn)
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            topic = (await client.get(f"/t/{post['topic_id']}.json")).json()
            for reply in topic["post_stream"]["posts"]:
                if reply["username"] == "ariane" and reply["reply_to_post_number"] in (None, post["post_number"]):
                    url = f"{plan.forum_url}/t/{topic['slug']}/{topic['id']}/{reply['post_number']}"
                    raw = (await client.get(f"/posts/{reply['id']}.json")).json()["raw"]
                    return Asked(text, post["id"], raw, url)
            await asyncio.sleep(POLL_SECONDS)
    raise Transient(f"no reply after {WAIT_SECONDS:.0f} s: see the logs in {plan.home / 'logs'}")


async def _create(client: httpx.AsyncClient, headers: Mapping[str, str], text: str, turn: int) -> dict[str, Any]:
    body = {"title": _title(text, turn), "raw": f"@ariane {text}", "category": 1}
    answer = await client.post("/posts.json", json=body, headers=headers)
    if answer.is_error:
        raise Misconfigured(f"the simulated forum refused the first question: {answer.status_code} {answer.text[:200]}")
    created: dict[str, Any] = answer.json()
    return created


def _title(text: str, turn: int) -> str:
    return f"{text.partition(',')[0].strip(' ?')} ({turn + 1})"
