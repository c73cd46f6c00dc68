"""What members make of an answer reaches the moderators' page: likes, flags, solutions, thanks and objections."""

import pytest

from service.domain import PostId
from service.store.signals import SignalStore
from tests.e2e.loop import QUESTION, Loop, acting_as
from tests.moderators import open_pages, visible


async def kinds(loop: Loop, post_id: int) -> dict[str, int]:
    await loop.drain()
    return {one.kind: one.n for one in await SignalStore(loop.services.pool).of(PostId(post_id))}


async def test_what_members_do_and_say_is_shown_on_the_answer(loop: Loop) -> None:
    async def react(reaction: str, post: int, by: str) -> None:
        sent = await loop.client.post("/simulator/react", json={"reaction": reaction, "post": post, "by": by})
        assert sent.status_code == 200, sent.text

    asked = await loop.say(QUESTION)
    await loop.drain()
    [reply] = [one for one in loop.room.forum.posts.values() if one.user_id == 1000]
    assert await kinds(loop, asked["id"]) == {}
    for by in ("alice", "newbie", "newbie"):
        await react("like", reply.id, by)
    await react("like", asked["id"], "newbie")  # no answer of ours
    assert await kinds(loop, asked["id"]) == {"liked": 2}

    await react("flag", reply.id, "newbie")
    assert await kinds(loop, asked["id"]) == {"flagged": 1, "liked": 2}
    await react("dismiss", reply.id, "alice")
    assert await kinds(loop, asked["id"]) == {"liked": 2}

    await react("solve", reply.id, "alice")
    assert await kinds(loop, asked["id"]) == {"liked": 2, "solved": 1}
    await react("unsolve", reply.id, "alice")
    await react("solve", asked["id"], "alice")
    assert await kinds(loop, asked["id"]) == {"liked": 2, "solved_by_other": 1}

    said = await loop.say("Thank you, that worked.", reply_to=reply.number)
    assert await kinds(loop, asked["id"]) == {"liked": 2, "solved_by_other": 1, "thanked": 1}
    edit = {"post": {"raw": "I take it back, that did not work at all."}}
    edited = await loop.client.put(f"/posts/{said['id']}.json", json=edit, headers=acting_as("alice"))
    assert edited.status_code == 200
    assert await kinds(loop, asked["id"]) == {"liked": 2, "objected": 1, "solved_by_other": 1}
    await loop.say("Thanks, but I asked somebody else.", reply_to=asked["post_number"])  # not to us

    async with open_pages(loop.services.pool, loop.settings) as pages:
        await pages.sign_in()
        text = visible(await pages.text(f"/answers/{asked['id']}"))
    assert "liked × 2" in text
    assert "objected to × 1" in text

    await loop.client.post("/simulator/moderate", json={"deed": "delete", "target": reply.id})
    assert (await kinds(loop, asked["id"]))["deleted"] == 1


@pytest.mark.parametrize(
    "sent", [{}, {"reaction": "kiss", "post": 1, "by": "alice"}, {"reaction": "like", "post": "x"}]
)
async def test_a_reaction_that_is_none(loop: Loop, sent: dict[str, object]) -> None:
    assert (await loop.client.post("/simulator/react", json=sent)).status_code == 422
