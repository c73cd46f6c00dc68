"""The names of categories for the prompt: public ones, in an order that a growing forum keeps, read anew in time."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.answer.categories import KEPT_SECONDS, MOST, CategoryNames, public_names
from service.answer.ports import Categories
from service.errors import Transient
from service.store.corpus import CorpusStore
from service.telemetry import FALLBACKS
from tests.unit.categories_told import Forum, category

PLANTS, STAFF = category(2, "Plants"), category(3, "Staff", private=True)


def store_matches(store: CorpusStore) -> Categories:
    """mypy proves here that the corpus matches the port."""
    return store


def test_public_ones_are_named_once_those_at_the_top_first_and_the_older_before_the_newer() -> None:
    seeds, tools = category(9, "Seeds", parent=2), category(7, "Tools")
    assert public_names([seeds, STAFF, tools, category(11, "Plants", parent=7), PLANTS]) == ("Plants", "Tools", "Seeds")
    assert public_names([STAFF]) == public_names([]) == ()


@given(st.lists(st.tuples(st.integers(1, 30), st.text(max_size=3), st.booleans()), max_size=90))
def test_a_new_category_moves_no_older_one_of_its_level(told: list[tuple[int, str, bool]]) -> None:
    before = [category(number, name, private=private) for number, name, private in told]
    after = [*before, category(31, "the new one")]
    assert public_names(after)[: len(public_names(before))] == public_names(before)
    assert len(public_names(after)) <= MOST
    public = {one.name for one in before if not one.read_restricted}
    assert set(public_names(before)) <= public


async def test_they_are_read_once_in_a_while_and_one_that_turned_private_is_gone_then() -> None:
    forum = Forum([PLANTS, STAFF])
    names = CategoryNames(forum, clock=forum.clock)
    assert [await names.read() for _ in range(3)] == [("Plants",)] * 3
    assert forum.reads == 1
    forum.told = [replace(PLANTS, read_restricted=True), category(4, "Pots")]
    forum.now += KEPT_SECONDS - 0.1
    assert await names.read() == ("Plants",)
    forum.now += 0.1
    assert await names.read() == ("Pots",)
    assert forum.reads == 2


async def test_while_they_cannot_be_read_there_are_none_and_the_next_question_tries_again() -> None:
    def counted() -> float:
        return float(FALLBACKS.labels("categories", "transient")._value.get())

    forum, before = Forum([PLANTS]), counted()
    names = CategoryNames(forum, clock=forum.clock)
    await names.read()
    forum.now += KEPT_SECONDS
    forum.told = Transient("the database is away")
    assert await names.read() == ()
    assert counted() == before + 1
    forum.told = [PLANTS]
    assert await names.read() == ("Plants",)
