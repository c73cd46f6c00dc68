"""The names and values of switches: any text is a switch with an allowed value, or refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.answer.ports import AnsweringMode, Flags
from service.domain import CategoryId
from service.errors import Misconfigured, Rejected
from service.store.flag_names import check, limits_of, scoped, state


@given(name=st.text(max_size=40), value=st.text(max_size=20))
@example("category:1", "default")
@example("category:1:per_hour", "default")
@example("category:1:per_hour", "٣")
def test_any_text_is_refused_or_makes_a_state(name: str, value: str) -> None:
    try:
        check(name, value)
    except Rejected as exc:
        assert exc.status == 422
        with pytest.raises(Misconfigured):
            state([(name, value)], "")
    else:
        state([(name, value)], "")


@given(
    categories=st.dictionaries(st.integers(1, 10**17).map(CategoryId), st.sampled_from(AnsweringMode)),
    category_limits=st.dictionaries(st.integers(1, 10**17).map(CategoryId), st.integers(0, 100_000)),
    group_limits=st.dictionaries(st.from_regex(r"[\w.-]{1,100}", fullmatch=True), st.integers(0, 100_000)),
)
def test_what_is_listed_makes_the_same_state_again(
    categories: dict[CategoryId, AnsweringMode],
    category_limits: dict[CategoryId, int],
    group_limits: dict[str, int],
) -> None:
    flags = Flags(categories=categories, category_per_hour=category_limits, group_per_hour=group_limits)
    assert state(limits_of(flags), "") == flags


@given(st.sampled_from(AnsweringMode), st.sampled_from(AnsweringMode))
def test_a_category_never_allows_more(whole: AnsweringMode, own: AnsweringMode) -> None:
    order = list(AnsweringMode)
    got = Flags(whole, categories={CategoryId(1): own}).answering_in(CategoryId(1))
    assert order.index(got) == min(order.index(whole), order.index(own))


@pytest.mark.parametrize("name", ["answering", "category:01", "category:", "group::per_hour", "group:a:b:per_hour"])
def test_what_is_no_category_or_group(name: str) -> None:
    assert scoped(name) is None
