"""Lists that other machines send, read in parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.remotes.listed_members import UnreadableList, split_members
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import ResourceName  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import ResourceNamesResponse  # noqa: E402

ALL = 1 << 30


def make_reply(*names: str) -> bytes:
    resources = [ResourceName(namespace="rdk", name=name) for name in names]
    return bytes(ResourceNamesResponse(resources=resources).SerializeToString())


def read_names(reply: bytes, size: int = ALL, count: int = 3) -> list[list[str]]:
    return [
        [each.name for each in ResourceNamesResponse.FromString(part).resources]
        for part in split_members(reply, size, count)
    ]


@given(st.lists(st.text(max_size=300), max_size=20), st.integers(1, 5))
def test_parts_contain_the_list_in_order(names: list[str], count: int) -> None:
    parts = read_names(make_reply(*names), count=count)
    assert [name for part in parts for name in part] == names
    assert all(len(part) == count for part in parts[:-1])
    assert all(1 <= len(part) <= count for part in parts)


def test_members_beyond_the_size_are_left_out() -> None:
    reply = make_reply("a", "b", "c" * 1000, "d")
    assert read_names(reply, size=100) == [["a", "b"]]
    assert read_names(reply, size=len(reply)) == [["a", "b", "c" * 1000], ["d"]]


def test_fields_of_other_kinds_are_passed_on() -> None:
    other = b"\x10\x05" + b"\x19" + bytes(8) + b"\x25" + bytes(4)
    assert read_names(make_reply("a") + other + make_reply("b"), count=9) == [["a", "b"]]


@pytest.mark.parametrize(
    "reply", [b"\x0a\x05abc", b"\x0b", b"\x0f\x00", b"\x0a\xff\xff\xff\xff\x7f", b"\x19ab"]
)
def test_what_is_not_a_list_is_refused(reply: bytes) -> None:
    with pytest.raises(UnreadableList):
        list(split_members(make_reply("a") + reply, ALL, 100))


@given(st.binary(max_size=200))
def test_any_bytes_are_split_or_refused(reply: bytes) -> None:
    try:
        parts = list(split_members(reply, ALL, 2))
    except UnreadableList:
        return
    assert b"".join(parts) == reply
