"""A member's groups, as the forum tells them: listed, or by his trust level and rank."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.discourse.members import groups_from_json
from service.errors import Rejected

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_groups_are_those_listed_and_the_automatic_ones() -> None:
    user = {"trust_level": 1, "moderator": True, "groups": [{"id": 41, "name": "experts"}, {"id": 3, "name": "staff"}]}
    assert groups_from_json({"user": user}) == {"experts", "staff", "moderators", "trust_level_0", "trust_level_1"}
    assert groups_from_json({"user": {}}) == frozenset()


@pytest.mark.parametrize("value", [None, [], {}, {"user": None}, {"user": []}])
def test_another_shape_is_refused(value: object) -> None:
    with pytest.raises(Rejected):
        groups_from_json(value)


@given(st.fixed_dictionaries({"trust_level": json, "admin": json, "moderator": json, "groups": json}))
def test_any_user_has_names_for_groups(user: dict[str, object]) -> None:
    assert all(isinstance(name, str) for name in groups_from_json({"user": user}))


@given(json)
def test_any_answer_is_read_or_refused(value: object) -> None:
    with contextlib.suppress(Rejected):
        groups_from_json(value)
