"""The switches: off until set, every change audited, nothing but what is allowed."""

import asyncio

import pytest

from service.answer.ports import AnsweringMode, Flags
from service.answer.signature import sign
from service.domain import CategoryId, EvaluationRun, RunKind, UserId
from service.errors import Misconfigured, Rejected
from service.store.evaluations import EvaluationStore
from service.store.flag_names import limits_of
from service.store.flags import FlagStore
from service.store.pool import Pool
from tests.integration.store_data import rows

TESTED = sign({"retrieval": {"candidates": 25}})


@pytest.fixture
def flags(pool: Pool) -> FlagStore:
    return FlagStore(pool)


async def test_everything_is_off_until_set(flags: FlagStore) -> None:
    assert await flags.read() == Flags(AnsweringMode.OFF, posts_pipeline=False, input_gate=False)


async def test_a_change_is_read_at_once_and_audited(flags: FlagStore, pool: Pool) -> None:
    await EvaluationStore(pool).record_run(EvaluationRun(TESTED, RunKind.SIGNED_OFF, True, "ines", "it answers well"))
    await flags.set("answering", "shadow", by="ines", reason="trial")
    await flags.set("posts_pipeline", "on", by="ines", reason="trial", signature=TESTED.sha256)
    await flags.set("answering", "on", by="noor", reason="good week")
    assert await flags.read() == Flags(AnsweringMode.ON, posts_pipeline=True, signature=TESTED.sha256)
    assert [(c.name, c.old_value, c.new_value, c.changed_by, c.reason) for c in await flags.changes(2)] == [
        ("answering", "shadow", "on", "noor", "good week"),
        ("posts_pipeline", None, "on", "ines", "trial"),
    ]


async def test_changes_at_once_chain_their_old_values(flags: FlagStore) -> None:
    values = ["on", "shadow", "off", "on", "shadow"]
    await asyncio.gather(*(flags.set("answering", value, by="x", reason="") for value in values))
    changes = (await flags.changes(10))[::-1]
    assert [change.old_value for change in changes] == [None, *(change.new_value for change in changes[:-1])]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("answers", "on", "answering, posts_pipeline, input_gate"),
        ("answering", "yes", "off, shadow, on"),
        ("posts_pipeline", "shadow", "off, on"),
        ("posts_pipeline", "on", "no passed test"),
        ("input_gate", "yes", "off, on"),
        ("category:1", "yes", "default, off, shadow, on"),
        ("category:0", "on", "category:ID"),
        ("category:1:per_day", "1", "category:ID"),
        ("category:1:per_hour", "-1", "default, or 0 to"),
        ("category:1:per_hour", "100001", "default, or 0 to"),
        ("group:a b:per_hour", "1", "group:NAME"),
        ("group:staff", "on", "group:NAME"),
        ("answering", "default", "off, shadow, on"),
        ("private_messages", "shadow", "off, on"),
    ],
)
async def test_anything_else_is_rejected_with_what_is_allowed(
    flags: FlagStore, name: str, value: str, words: str
) -> None:
    with pytest.raises(Rejected, match=words) as caught:
        await flags.set(name, value, by="ines", reason="")
    assert caught.value.status == (409 if (name, value) == ("posts_pipeline", "on") else 422)
    assert await flags.changes(1) == []


async def test_a_category_allows_at_most_what_answering_does(flags: FlagStore) -> None:
    await flags.set("answering", "shadow", by="ines", reason="")
    for category, mode in (("1", "on"), ("2", "off"), ("3", "shadow")):
        await flags.set(f"category:{category}", mode, by="ines", reason="")
    read = await flags.read()
    assert [read.answering_in(CategoryId(n)) for n in (1, 2, 3, 4)] == ["shadow", "off", "shadow", "shadow"]
    assert read.answering_in(None) == "shadow"
    await flags.set("answering", "on", by="ines", reason="")
    read = await flags.read()
    assert [read.answering_in(CategoryId(n)) for n in (1, 2, 3, 4)] == ["on", "off", "shadow", "on"]


async def test_limits_are_set_and_taken_away_again(flags: FlagStore) -> None:
    await flags.set("category:7:per_hour", "0", by="ines", reason="")
    await flags.set("group:trust_level_0:per_hour", "2", by="ines", reason="", user_id=UserId(6))
    read = await flags.read()
    assert (read.category_per_hour, read.group_per_hour) == ({7: 0}, {"trust_level_0": 2})
    assert limits_of(read) == [("category:7:per_hour", "0"), ("group:trust_level_0:per_hour", "2")]
    await flags.set("category:7:per_hour", "default", by="noor", reason="enough")
    assert (await flags.read()).category_per_hour == {}
    assert [(c.old_value, c.new_value, c.changed_by, c.changed_by_user_id) for c in await flags.changes(2)] == [
        ("0", "default", "noor", None),
        (None, "2", "ines", 6),
    ]


async def test_a_value_written_past_us_stops_the_answers(flags: FlagStore, pool: Pool) -> None:
    await rows(pool, "INSERT INTO flags (name, value, changed_by) VALUES ('answering', 'maybe', 'psql') RETURNING 1")
    with pytest.raises(Misconfigured, match="maybe"):
        await flags.read()
