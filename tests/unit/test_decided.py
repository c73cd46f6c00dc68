"""Carrying out a moderator's decision: once whatever crashes, and never against what the forum or a switch says."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from service.answer.decided import Decided, carry_out
from service.answer.ports import AnsweredPost, AnsweringMode, Deed, DeedKind, FixedReply, Flags
from service.answer.respond import respond
from service.answer.trigger import Bot
from service.domain import FRENCH, CategoryId, Posted, PostId, Shadowed, UserId
from service.errors import Misconfigured, Rejected, Transient, Unsure
from tests.fakes.answering import NOW, Crash, Crashing, FakeFlags, World

RAW = "What a moderator wrote in place of it."


@dataclass
class MemoryDeeds:
    """The decisions' contract on a memory ledger."""

    world: World
    deed: Deed
    answer: AnsweredPost | None = None
    closed: list[str] = field(default_factory=list)

    async def waiting(self, deed_id: int) -> Deed | None:
        return None if self.closed else self.deed

    async def answered(self, post_id: PostId) -> AnsweredPost | None:
        if self.answer is not None:
            return self.answer
        row = self.world.ledger.rows.get(post_id)
        if row is None or row.reply is None:
            return None
        outcome = {Shadowed: "shadowed", Posted: "posted"}.get(type(row.outcome))
        reply = row.outcome.reply_post_id if isinstance(row.outcome, Posted) else None
        return AnsweredPost(row.post.topic_id, outcome, row.reply, reply)

    async def posted(self, deed: Deed, outcome: Posted, number: int | None, *, now: datetime) -> None:
        row = self.world.ledger.rows[deed.post_id]
        row.outcome, row.reply_number = outcome, number
        self.closed.append("done")

    async def edited(self, deed: Deed, raw: str, *, now: datetime) -> None:
        self.closed.append("done")

    async def hidden(self, deed: Deed, *, now: datetime) -> None:
        self.closed.append("done")

    async def read(self, deed: Deed, raw: str, *, now: datetime) -> None:
        self.closed.append(raw)

    async def refused(self, deed: Deed, why: str, *, now: datetime) -> None:
        self.closed.append(why)


@dataclass
class OurPosts:
    """Our posts on the forum; `forbids` are the calls that the key may not make, `meets` what the next call meets."""

    said: dict[PostId, str] = field(default_factory=lambda: {PostId(70): "what we said"})
    forbids: frozenset[str] = frozenset()
    meets: list[Exception] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def _meet(self, call: str, post_id: PostId) -> None:
        if self.meets:
            raise self.meets.pop(0)
        if call in self.forbids:
            raise Rejected("forbidden", status=403)
        if post_id not in self.said:
            raise Rejected("no such post", status=404)

    async def edit_own(self, post_id: PostId, raw: str, *, why: str) -> None:
        self._meet("edit", post_id)
        self.said[post_id] = raw
        self.reasons.append(why)

    async def delete_own(self, post_id: PostId) -> None:
        self._meet("delete", post_id)
        del self.said[post_id]

    async def own_text(self, post_id: PostId) -> str | None:
        return self.said.get(post_id)


def deed(kind: DeedKind, post_id: int = 9007, raw: str | None = None) -> Deed:
    return Deed(1, PostId(post_id), kind, "so", raw, "mia", UserId(6), NOW, None, None)


def deps_of(world: World, deeds: MemoryDeeds, own: OurPosts | None = None, at: Crashing | None = None) -> Decided:
    def guard(port: Any) -> Any:
        return at.guard(port) if at else port

    bot = Bot("ariane", frozenset({"system"}), UserId(77))
    return Decided(
        guard(deeds), guard(world.ledger), guard(world.flags), guard(world.forum), guard(own or OurPosts()), bot, FRENCH
    )


async def shadowed(**changes: Any) -> World:
    """A question answered in shadow."""
    world = World(flags=FakeFlags(Flags(AnsweringMode.SHADOW, posts_pipeline=True)), **changes)
    assert isinstance(await respond(world.asked, world.deps(), now=NOW), Shadowed)
    assert world.forum.replies == []
    return world


async def test_an_answer_in_shadow_is_posted_word_for_word() -> None:
    world = await shadowed()
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    await carry_out(1, deps_of(world, deeds), last_try=False, now=NOW)
    row = world.ledger.rows[world.asked.id]
    assert world.forum.replies == [(world.asked.id, row.reply.raw)]
    assert (deeds.closed, row.outcome, row.reply_number) == (
        ["done"],
        Posted(row.reply.result, PostId(70_000)),
        70,
    )
    await carry_out(1, deps_of(world, deeds), last_try=False, now=NOW)
    assert len(world.forum.replies) == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 16))
async def test_a_crash_at_any_call_leaves_one_reply(at: int, after: bool) -> None:
    world = await shadowed()
    world.forum.remembers = False
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    try:
        await carry_out(1, deps_of(world, deeds, at=Crashing(at, after)), last_try=False, now=NOW)
    except Crash:
        await carry_out(1, deps_of(world, deeds), last_try=False, now=NOW)
    assert len(world.forum.replies) == 1
    assert deeds.closed == ["done"]
    assert isinstance(world.ledger.rows[world.asked.id].outcome, Posted)


async def test_a_post_whose_answer_was_lost_is_found() -> None:
    world = await shadowed()
    world.forum.meets = [Unsure("lost")]
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    await carry_out(1, deps_of(world, deeds), last_try=False, now=NOW)
    assert (len(world.forum.replies), deeds.closed) == (1, ["done"])


async def test_a_category_in_shadow_holds_nothing_back_either() -> None:
    world = await shadowed()
    world.flags = FakeFlags(Flags(AnsweringMode.ON, True, categories={CategoryId(2): AnsweringMode.SHADOW}))
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    await carry_out(1, deps_of(world, deeds), last_try=False, now=NOW)
    assert deeds.closed == ["done"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda world: world.forum.posts.pop(world.asked.id), "post_gone"),
        (lambda world: world.forum.posts.pop(world.ledger.rows[world.asked.id].reply.cited[0]), "source_gone"),
        (lambda world: world.forum.topics.pop(world.asked.topic_id), "topic_gone"),
        (lambda world: setattr(world.flags, "flags", Flags()), "answering_off"),
        (
            lambda world: setattr(
                world.flags, "flags", Flags(AnsweringMode.ON, categories={CategoryId(2): AnsweringMode.OFF})
            ),
            "category_off",
        ),
        (lambda world: world.forum.meets.append(Rejected("no", status=403)), "forum_forbids"),
        (lambda world: world.forum.meets.append(Rejected("no", status=422)), "forum_refused"),
        (lambda world: world.ledger.rows.clear(), "nothing_to_do"),
        (
            lambda world: setattr(
                world.ledger.rows[world.asked.id],
                "reply",
                replace(world.ledger.rows[world.asked.id].reply, raw=""),
            ),
            "nothing_to_do",
        ),
    ],
)
async def test_what_stands_against_it_is_kept_and_nothing_is_posted(change: Any, why: str) -> None:
    world = await shadowed()
    change(world)
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    await carry_out(1, deps_of(world, deeds), last_try=False, now=NOW)
    assert (deeds.closed, world.forum.replies) == ([why], [])


@pytest.mark.parametrize("error", [Transient("slow"), Misconfigured("no key")])
async def test_the_last_try_closes_the_deed(error: Exception) -> None:
    world = await shadowed()
    deeds = MemoryDeeds(world, deed(DeedKind.POST))
    for last_try, closed in ((False, []), (True, ["given_up"])):
        world.forum.meets = [error]  # type: ignore[list-item]  # both are ArianeError
        with pytest.raises(type(error)):
            await carry_out(1, deps_of(world, deeds), last_try=last_try, now=NOW)
        assert deeds.closed == closed


async def of_ours(kind: DeedKind, own: OurPosts, raw: str | None = None) -> list[str]:
    """What came of a decision on our post 70."""
    world = World()
    answer = AnsweredPost(world.asked.topic_id, "posted", FixedReply("x", Posted.__name__), PostId(70))  # type: ignore[arg-type]  # not looked at
    deeds = MemoryDeeds(world, deed(kind, raw=raw), answer)
    await carry_out(1, deps_of(world, deeds, own), last_try=False, now=NOW)
    return deeds.closed


async def test_hiding_deletes_our_post() -> None:
    own = OurPosts()
    assert (await of_ours(DeedKind.HIDE, own), own.said) == (["done"], {})
    assert await of_ours(DeedKind.HIDE, own) == ["done"]  # it is gone, by whomever


async def test_hiding_again_what_was_taken_back_is_done() -> None:
    """The forum forbids to delete, and to edit, what its author deleted: a worker killed after that tries again."""
    own = OurPosts({}, forbids=frozenset({"delete", "edit"}))
    assert await of_ours(DeedKind.HIDE, own) == ["done"]


async def test_hiding_leaves_a_note_where_the_key_may_not_delete() -> None:
    own = OurPosts(forbids=frozenset({"delete"}))
    assert await of_ours(DeedKind.HIDE, own) == ["done"]
    assert "modérateurs" in own.said[PostId(70)]
    assert own.reasons == ["Ariane: so"]


async def test_hiding_says_that_the_key_may_do_neither() -> None:
    own = OurPosts(forbids=frozenset({"delete", "edit"}))
    assert await of_ours(DeedKind.HIDE, own) == ["forum_forbids"]
    assert own.said == {PostId(70): "what we said"}


async def test_an_edit_says_what_the_moderator_wrote() -> None:
    own = OurPosts()
    assert (await of_ours(DeedKind.EDIT, own, RAW), own.said) == (["done"], {PostId(70): RAW})


async def test_what_our_post_says_is_read_for_whoever_corrects_it() -> None:
    own = OurPosts()
    assert await of_ours(DeedKind.READ, own) == ["what we said"]
    own.said.clear()
    assert await of_ours(DeedKind.READ, own) == ["post_gone"]


@pytest.mark.parametrize(("status", "why"), [(403, "forum_forbids"), (404, "post_gone"), (422, "forum_refused")])
async def test_an_edit_that_the_forum_refuses(status: int, why: str) -> None:
    own = OurPosts(meets=[Rejected("no", status=status)])
    assert await of_ours(DeedKind.EDIT, own, RAW) == [why]


async def test_a_conflict_is_tried_again() -> None:
    with pytest.raises(Transient):
        await of_ours(DeedKind.EDIT, OurPosts(meets=[Rejected("no", status=409)]), RAW)


async def test_there_is_nothing_to_hide_of_what_was_never_posted() -> None:
    world = await shadowed()
    deeds, own = MemoryDeeds(world, deed(DeedKind.HIDE)), OurPosts()
    await carry_out(1, deps_of(world, deeds, own), last_try=False, now=NOW)
    assert (deeds.closed, own.said) == (["nothing_to_do"], {PostId(70): "what we said"})
