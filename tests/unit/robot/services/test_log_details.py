from __future__ import annotations

import struct
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from cogwork.robot.services.log_details import read_fields, read_place

HUGE = st.one_of(st.none(), st.booleans(), st.floats(), st.text(max_size=5))


def make_struct(values: dict[str, Any]) -> Struct:
    message = Struct()
    message.update(values)
    return message


def field(key: str, kind: float, **parts: Any) -> Struct:
    """Return a field as Go sends it, in which the parts that are not used are zero."""
    empty = {"Integer": 0, "String": "", "Interface": None}
    return make_struct({"Key": key, "Type": kind, **empty, **parts})


def bits(layout: str, value: float) -> int:
    (found,) = struct.unpack("<q" if layout == "<d" else "<I", struct.pack(layout, value))
    return int(found)


@pytest.mark.parametrize(
    ("kind", "parts", "value"),
    [
        (4, {"Integer": 1}, True),
        (4, {"Integer": 0}, False),
        (8, {"Integer": 1_500_000_000}, "1.5s"),
        (9, {"Integer": bits("<d", 21.5)}, 21.5),
        (9, {"Integer": bits("<d", -0.1)}, -0.1),
        (9, {"Integer": str(bits("<d", 1e300))}, 1e300),
        (10, {"Integer": bits("<f", 2.25)}, 2.25),
        (11, {"Integer": -7}, -7),
        (14, {"Integer": 7}, 7),
        (15, {"String": "text"}, "text"),
        (15, {}, ""),
        (16, {"Integer": 1_700_000_000_500_000_000}, "2023-11-14T22:13:20.500Z"),
        (18, {"Integer": 9}, 9),
        (23, {"Interface": {"a": [1, None]}}, {"a": [1, None]}),
        (26, {"Interface": "it broke"}, "it broke"),
        (99, {"String": "of a later version"}, "of a later version"),
    ],
)
def test_fields_of_go_are_decoded(kind: int, parts: dict[str, Any], value: Any) -> None:
    assert read_fields([field("k", kind, **parts)]) == {"k": value}


def test_fields_without_a_value_are_left_out() -> None:
    assert read_fields([field("space", 24), field("", 27), field("k", 11, Integer=1)]) == {"k": 1}


def test_other_fields_are_names_and_values() -> None:
    given_fields = [make_struct({"a": 1, "b": {"c": [2]}}), make_struct({"Key": "only a name"})]
    assert read_fields(given_fields) == {"a": 1, "b": {"c": [2]}, "Key": "only a name"}


@given(st.lists(st.dictionaries(st.sampled_from(["Key", "Type", "Integer", "String"]), HUGE)))
def test_nothing_a_client_sends_raises(fields: list[dict[str, Any]]) -> None:
    read_fields([make_struct(each) for each in fields])


@pytest.mark.parametrize(
    ("caller", "place"),
    [
        ({}, ("", 0)),
        ({"Defined": True, "File": "/home/me/lamp/main.go", "Line": 42}, ("lamp/main.go", 42)),
        ({"File": "C:\\lamp\\main.go", "Line": 1}, ("lamp/main.go", 1)),
        ({"File": "main.go"}, ("main.go", 0)),
        ({"File": 7, "Line": "x"}, ("", 0)),
        ({"File": "main.go", "Line": 1e300}, ("main.go", 0)),
        ({"File": "main.go", "Line": float("nan")}, ("main.go", 0)),
    ],
)
def test_place_of_a_log_call(caller: dict[str, Any], place: tuple[str, int]) -> None:
    assert read_place(make_struct(caller)) == place
