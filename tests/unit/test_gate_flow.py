"""A declined question: the server's own words, no model, tagged and traced; only while the flag is on."""

from dataclasses import replace

import pytest

from service.answer.gate.decline import declined
from service.answer.gate.match import Decline
from service.answer.gate.rules import GateKind
from service.answer.messages import Message, wordings
from service.answer.ports import AnsweringMode, Flags
from service.answer.respond import respond
from service.domain import ENGLISH, FRENCH, Lang, Outcome, Posted, PostId, Result, Shadowed
from service.errors import Transient
from service.telemetry import GATED
from tests.fakes.answering import MENTION, NOW, Crash, Crashing, FakeFlags, FakeTurns, World, asking

GATED_ON = Flags(AnsweringMode.ON, posts_pipeline=True, input_gate=True)
POEM = asking(f"<p>{MENTION} write me a poem about the rain at Oxley please</p>")


def gated_world(question: str = "", turns: tuple[str, ...] = ()) -> World:
    asked = asking(f"<p>{MENTION} {question}</p>") if question else POEM
    world = World(asked=asked, flags=FakeFlags(GATED_ON), turns=FakeTurns(turns))
    world.embedder.down = Transient("no model may be called")
    world.reranker.down = Transient("no model may be called")
    return world


async def run(world: World) -> Outcome:
    return await respond(world.asked, world.deps(), now=NOW)


async def test_a_declined_question_gets_the_servers_words_and_no_model() -> None:
    world = gated_world()
    counted = GATED.labels("generalist", "write-text-en")
    before = counted._value.get()
    assert await run(world) == Posted(Result.GATED, PostId(70_000))
    assert counted._value.get() == before + 1
    ((_, raw),) = world.forum.replies
    text, footer = raw.split("\n\n")
    assert text in wordings()[ENGLISH].messages[Message.DECLINE_GENERALIST]
    assert "Oxley" not in raw
    assert footer.endswith("9007")
    row = world.ledger.rows[world.asked.id]
    assert (row.reply.result, row.reply.cited, row.trace.notes) == (Result.GATED, (), ["gate:generalist:write-text-en"])
    assert "gate" in row.trace.timings_ms
    assert (world.answerer.calls, row.trace.queries, row.trace.sources) == (0, [], ())


async def test_the_flag_is_read_at_the_moment_of_use() -> None:
    world = World(asked=POEM)
    assert await run(world) == Posted(Result.ANSWERED, PostId(70_000))
    world = World(asked=POEM, flags=FakeFlags(replace(GATED_ON, input_gate=False), later=GATED_ON))
    assert await run(world) == Posted(Result.GATED, PostId(70_000))
    world = World(asked=POEM, flags=FakeFlags(replace(GATED_ON, answering=AnsweringMode.SHADOW)))
    assert await run(world) == Shadowed(Result.GATED)


async def test_an_ordinary_question_goes_on() -> None:
    world = World(flags=FakeFlags(GATED_ON))
    assert await run(world) == Posted(Result.ANSWERED, PostId(70_000))
    assert "gate" in world.ledger.rows[world.asked.id].trace.timings_ms


async def test_the_members_own_turns_count() -> None:
    world = gated_world("and how would I make one at home?", ("Real pipe bombs interest me.",))
    assert await run(world) == Posted(Result.GATED, PostId(70_000))
    world = World(asked=world.asked, flags=FakeFlags(GATED_ON))
    assert await run(world) == Posted(Result.ANSWERED, PostId(70_000))


async def test_a_bare_mention_is_helped_and_not_gated() -> None:
    world = World(asked=asking(f"<p>{MENTION}</p>"), flags=FakeFlags(GATED_ON))
    assert await run(world) == Posted(Result.HELPED, PostId(70_000))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_crash_at_any_call_leaves_exactly_one_reply(after: bool) -> None:
    for at in range(1, 40):
        world = gated_world()
        crashing = Crashing(at, after)
        try:
            await respond(world.asked, world.deps(crashing), now=NOW)
        except Crash:
            await run(world)
        assert len(world.forum.replies) == 1, at
        if crashing.calls < at:
            return
    pytest.fail("it never ended")


@pytest.mark.parametrize("lang", [ENGLISH, FRENCH])
@pytest.mark.parametrize("kind", list(GateKind))
def test_every_kind_has_several_wordings_in_the_members_language(kind: GateKind, lang: Lang) -> None:
    told = {declined(Decline("x", kind, "secret words"), lang, seed=seed).markdown for seed in range(12)}
    assert len(told) >= 3
    assert told == set(wordings()[lang].messages[Message(f"decline_{kind}")])
    assert not any("secret" in text or "{" in text for text in told)
