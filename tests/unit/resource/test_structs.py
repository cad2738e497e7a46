"""Struct and Python, there and back; beside the SDK's own conversion where that is exact."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.errors import InvalidRequest
from cogwork.resource import sdk
from cogwork.resource.structs import (
    MOST_EXTRA,
    extra_to_dict,
    to_dict,
    to_dict_aside,
    to_struct,
    to_struct_aside,
)

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.utils import dict_to_struct, struct_to_dict  # noqa: E402

numbers = st.floats(allow_nan=False)
leaves = numbers | st.booleans() | st.text()
values = st.recursive(
    leaves | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)
without_null = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


@given(st.dictionaries(st.text(), values))
def test_there_and_back(mapping: dict[str, Any]) -> None:
    assert to_dict(to_struct(mapping)) == mapping


@given(st.dictionaries(st.text(), without_null))
def test_as_the_sdk_does_it(mapping: dict[str, Any]) -> None:
    struct = dict_to_struct(mapping)
    assert to_struct(mapping) == struct
    assert to_dict(struct) == struct_to_dict(struct)


async def test_large_ones_are_converted_beside_the_loop() -> None:
    mapping = {"points": [float(number) for number in range(20_000)], "name": "belt"}
    struct = await to_struct_aside(mapping)
    assert await to_dict_aside(struct) == mapping


def test_an_extra_is_bounded() -> None:
    most = to_struct({"points": [1.0] * (MOST_EXTRA - 1)})
    assert len(extra_to_dict(most)["points"]) == MOST_EXTRA - 1
    with pytest.raises(InvalidRequest, match="more than 10000 values"):
        extra_to_dict(to_struct({"points": [1.0] * MOST_EXTRA}))
    long = to_struct({"text": "a" * 100_000})
    assert extra_to_dict(long) == {"text": "a" * 100_000}


def test_nothing_and_what_has_no_place() -> None:
    assert to_struct(None) == Struct()
    assert to_struct({"a": (1, 2)}) == to_struct({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match="bytes has no place"):
        to_struct({"a": b"x"})
