"""What Postgres can hold of hostile text and numbers."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.store.values import storable, to_json

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_storable_text_is_utf8_without_nul_and_keeps_the_rest(text: str) -> None:
    kept = storable(text)
    assert b"\x00" not in kept.encode("utf-8")
    assert len(kept) == len(text)
    assert storable(kept) == kept


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | ANY_TEXT, lambda inner: st.lists(inner)))
def test_json_has_only_what_jsonb_takes(value: object) -> None:
    written = json.dumps(to_json(value), allow_nan=False)
    assert "\\u0000" not in written.replace("\\\\", "")


def test_numpy_numbers_become_plain_ones_and_nan_null() -> None:
    assert to_json([np.float32(0.5), np.int64(3), np.float64("nan"), float("inf"), True]) == [0.5, 3, None, None, True]


def test_an_unknown_type_is_a_bug() -> None:
    with pytest.raises(TypeError, match="object"):
        to_json({"a": object()})
