"""Messages whose elements are counted before they are parsed, compared with those that are."""

from __future__ import annotations

import time
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.messages.element_count import count_elements
from cogwork.wire.messages.protobuf_encoding import encode_field_header

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.app.v1.app_pb2 import UpdateRobotPartRequest  # noqa: E402
from viam.gen.common.v1.common_pb2 import DoCommandRequest  # noqa: E402
from viam.gen.component.arm.v1.arm_pb2 import MoveThroughJointPositionsRequest  # noqa: E402
from viam.gen.component.board.v1.board_pb2 import StreamTicksRequest  # noqa: E402
from viam.gen.service.mlmodel.v1.mlmodel_pb2 import InferRequest  # noqa: E402

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)


def is_over(data: bytes, message: type[Any], limit: int) -> bool:
    return count_elements(data, message.DESCRIPTOR, limit) > limit


def count_parsed(message: Any) -> int:
    """Return the elements of a parsed message, in eighths."""
    total = 0
    for field, value in message.ListFields():
        kind = field.message_type
        if not field.is_repeated:
            total += count_parsed(value) if kind is not None else 0
        elif kind is None:
            is_text = field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
            total += len(value) * (8 if is_text else 1)
        else:
            total += 8 * len(value)
            inner = value.values() if kind.GetOptions().map_entry else value
            total += sum(count_parsed(each) for each in inner if hasattr(each, "ListFields"))
    return total


def assert_counted(data: bytes, message: Any) -> None:
    eighths = count_parsed(message)
    # Rounded up: the limit is of whole elements.
    elements = -(-eighths // 8)
    assert not is_over(data, type(message), max(elements, 1))
    if elements > 1:
        assert is_over(data, type(message), elements - 1)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=5))
def test_commands_are_counted_as_when_parsed(command: dict[str, Any]) -> None:
    request = DoCommandRequest(name="n")
    request.command.update(command)
    assert_counted(request.SerializeToString(), request)


@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=20), max_size=20))
def test_lists_of_numbers_are_counted_as_when_parsed(positions: list[list[float]]) -> None:
    request = MoveThroughJointPositionsRequest()
    for values in positions:
        request.positions.add().values.extend(values)
    assert_counted(request.SerializeToString(), request)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50))
def test_varints_are_counted_as_when_parsed(shape: list[int]) -> None:
    request = InferRequest()
    tensor = request.input_tensors.tensors["image"]
    tensor.shape.extend(shape)
    tensor.uint64_tensor.data.extend(shape)
    assert_counted(request.SerializeToString(), request)


@given(st.lists(st.text(max_size=200), max_size=20))
def test_strings_are_counted_as_when_parsed(pins: list[str]) -> None:
    request = StreamTicksRequest(pin_names=pins)
    assert_counted(request.SerializeToString(), request)


@given(st.binary(max_size=100), st.integers(0, 3))
def test_count_of_any_bytes_is_at_most_one_for_each(data: bytes, repeat: int) -> None:
    data = data * (1 + repeat)
    assert not is_over(data, DoCommandRequest, len(data) + 1)


@given(st.binary(max_size=60))
def test_mistake_after_many_elements_does_not_hide_them(end: bytes) -> None:
    """A parser takes their memory before it finds the mistake."""
    request = StreamTicksRequest(pin_names=[""] * 20)
    assert is_over(request.SerializeToString() + end, StreamTicksRequest, 10)


@given(st.binary(max_size=60))
def test_what_precedes_many_elements_does_not_hide_them(start: bytes) -> None:
    data = start + StreamTicksRequest(pin_names=[""] * 200).SerializeToString()
    try:
        parsed = StreamTicksRequest.FromString(data)
    except DecodeError:
        return
    assert is_over(data, StreamTicksRequest, 10) == (len(parsed.pin_names) > 10)


def test_inner_message_is_counted_though_the_outer_one_ends_too_early() -> None:
    command = DoCommandRequest()
    command.command["a"] = [None] * 1000
    assert is_over(command.SerializeToString() + b"\x0a\xff", DoCommandRequest, 100)


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_small_elements_are_not_read_beyond_the_limit(size: int) -> None:
    data = b"\x12\x00" * size  # empty names of pins
    start = time.process_time()
    assert is_over(data, StreamTicksRequest, 1000)
    small = time.process_time() - start
    start = time.process_time()
    assert not is_over(data[:1000], StreamTicksRequest, 1000)
    assert small < 50 * (time.process_time() - start) + 0.05


def test_large_text_costs_nothing() -> None:
    request = UpdateRobotPartRequest(id="x", name="y")
    request.robot_config["a"] = "x" * (1 << 25)
    assert not is_over(request.SerializeToString(), UpdateRobotPartRequest, 2)


def test_unknown_fields_are_no_elements_but_take_time() -> None:
    unknown = encode_field_header(99, 0)
    assert not is_over(unknown * 10, StreamTicksRequest, 10)
    assert is_over(unknown * 1000, StreamTicksRequest, 10)
