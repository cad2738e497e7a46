"""Conversion between Struct and Python, compared with that of the SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.structs import (
    MAX_EXTRA_VALUES,
    extra_to_dict,
    to_dict,
    to_dict_async,
    to_struct,
    to_struct_async,
)
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.app.v1.robot_pb2 import ComponentConfig  # noqa: E402
from viam.gen.module.v1.module_pb2 import AddResourceRequest  # noqa: E402
from viam.utils import dict_to_struct, struct_to_dict  # noqa: E402

numbers = st.floats(allow_nan=False)
leaves = numbers | st.booleans() | st.text()
values = st.recursive(
    leaves | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)
without_null = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=15
)


@given(st.dictionaries(st.text(), values))
def test_mapping_survives_a_round_trip(mapping: dict[str, Any]) -> None:
    assert to_dict(to_struct(mapping)) == mapping


@given(st.dictionaries(st.text(), without_null))
def test_conversion_matches_the_sdk(mapping: dict[str, Any]) -> None:
    struct = dict_to_struct(mapping)
    assert to_struct(mapping) == struct
    assert to_dict(struct) == struct_to_dict(struct)


async def test_large_structs_are_converted_asynchronously() -> None:
    mapping = {"points": [float(number) for number in range(20_000)], "name": "belt"}
    struct = await to_struct_async(mapping)
    assert await to_dict_async(struct) == mapping


def test_number_of_extra_values_is_limited() -> None:
    most = to_struct({"points": [1.0] * (MAX_EXTRA_VALUES - 1)})
    assert len(extra_to_dict(most)["points"]) == MAX_EXTRA_VALUES - 1
    with pytest.raises(InvalidRequest, match="more than 2000 values"):
        extra_to_dict(to_struct({"points": [1.0] * MAX_EXTRA_VALUES}))
    long = to_struct({"text": "a" * 100_000})
    assert extra_to_dict(long) == {"text": "a" * 100_000}


def test_none_tuples_and_unsupported_types() -> None:
    assert to_struct(None) == Struct()
    assert to_struct({"a": (1, 2)}) == to_struct({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match="type bytes cannot be sent"):
        to_struct({"a": b"x"})


@pytest.mark.parametrize(("opening", "closing", "levels"), [('{"a":', "}", 32), ("[", "]", 46)])
def test_too_deeply_nested_value_raises(opening: str, closing: str, levels: int) -> None:
    def nested(depth: int) -> dict[str, Any]:
        value = json.loads(opening * depth + "1" + closing * depth)
        return value if isinstance(value, dict) else {"a": value}

    # Include the messages that surround it in a request to a module.
    sent = AddResourceRequest(config=ComponentConfig(attributes=to_struct(nested(levels))))
    AddResourceRequest.FromString(sent.SerializeToString())
    with pytest.raises(TypeError, match="nested too deeply"):
        to_struct(nested(levels + 1))
