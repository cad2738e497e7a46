from __future__ import annotations

import contextlib
from typing import Any

import pytest
from grpclib.const import Cardinality
from hypothesis import given
from hypothesis import strategies as st

from cogwork.resource import sdk
from cogwork.wire.handlers import Method
from cogwork.wire.protobuf_encoding import encode_field_header
from cogwork.wire.request_limits import (
    DEFAULT_MAX_SIZE,
    MAX_COMMAND_ELEMENTS,
    MAX_COMMAND_SIZE,
    MAX_ELEMENTS,
    MAX_REQUEST_SIZE,
    UNKNOWN_MESSAGE_LIMIT,
    RequestTooLarge,
    limit_of,
    message_limit,
)

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import DoCommandRequest  # noqa: E402
from viam.gen.component.arm.v1.arm_pb2 import MoveThroughJointPositionsRequest  # noqa: E402
from viam.gen.component.motor.v1.motor_pb2 import SetPowerRequest  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import TransformPoseRequest  # noqa: E402
from viam.gen.service.mlmodel.v1.mlmodel_pb2 import InferRequest  # noqa: E402
from viam.gen.service.shell.v1.shell_pb2 import CopyFilesToMachineRequest  # noqa: E402
from viam.gen.service.vision.v1.vision_pb2 import GetDetectionsRequest  # noqa: E402

PATH = "/test.Service/Method"


def limit(message: type[Any]) -> Any:
    descriptor: Any = message.DESCRIPTOR
    return message_limit(descriptor)


@pytest.mark.parametrize(
    ("message", "size", "elements"),
    [
        (SetPowerRequest, DEFAULT_MAX_SIZE, MAX_ELEMENTS),
        (MoveThroughJointPositionsRequest, DEFAULT_MAX_SIZE, MAX_ELEMENTS),
        (DoCommandRequest, MAX_COMMAND_SIZE, MAX_COMMAND_ELEMENTS),
        (GetDetectionsRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (CopyFilesToMachineRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (TransformPoseRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (InferRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
    ],
)
def test_limits_follow_from_the_message(message: type[Any], size: int, elements: int) -> None:
    assert limit(message).size == size
    assert limit(message).elements == elements


def test_bytes_are_checked_before_anything_is_parsed() -> None:
    limit(SetPowerRequest).check(b"\xff" * DEFAULT_MAX_SIZE, PATH)
    with pytest.raises(
        RequestTooLarge,
        match=f"{DEFAULT_MAX_SIZE + 1} bytes; at most {DEFAULT_MAX_SIZE} are accepted",
    ):
        limit(SetPowerRequest).check(b"\xff" * (DEFAULT_MAX_SIZE + 1), PATH)


def test_only_the_payload_may_be_large() -> None:
    image = GetDetectionsRequest(
        name="v", image=b"x" * (MAX_REQUEST_SIZE - 100)
    ).SerializeToString()
    limit(GetDetectionsRequest).check(image, PATH)
    name = GetDetectionsRequest(name="v" * DEFAULT_MAX_SIZE, image=b"x").SerializeToString()
    with pytest.raises(RequestTooLarge, match="besides its payload"):
        limit(GetDetectionsRequest).check(name, PATH)


def test_a_payload_within_other_messages_may_be_large() -> None:
    request = CopyFilesToMachineRequest()
    request.file_data.data = b"x" * (1 << 20)
    limit(CopyFilesToMachineRequest).check(request.SerializeToString(), PATH)


@pytest.mark.parametrize("field", [b"\x78\x00", b"\x7a\x00", b"\x0a\x00"])
def test_many_small_fields_are_not_payload(field: bytes) -> None:
    with pytest.raises(RequestTooLarge, match="besides its payload"):
        limit(GetDetectionsRequest).check(field * (1 << 18), PATH)


def test_elements_count_at_every_depth() -> None:
    request = MoveThroughJointPositionsRequest()
    for _ in range(1000):
        request.positions.add().values.extend([1.0] * 72)
    data = request.SerializeToString()
    limit(MoveThroughJointPositionsRequest).check_elements(request, len(data), PATH)
    request.positions.add()
    with pytest.raises(RequestTooLarge, match="more than 10000 elements"):
        limit(MoveThroughJointPositionsRequest).check_elements(request, len(data), PATH)


def test_keys_and_values_of_a_command_count() -> None:
    request = DoCommandRequest()
    request.command["a"] = [[1.0] * 1000] * 28
    limit(DoCommandRequest).check_elements(request, MAX_COMMAND_SIZE, PATH)
    request.command["b"] = [[1.0] * 1000] * 28
    with pytest.raises(RequestTooLarge):
        limit(DoCommandRequest).check_elements(request, MAX_COMMAND_SIZE, PATH)


async def nothing(_: object) -> None: ...


def test_methods_without_a_message_of_ours() -> None:
    assert (
        limit_of(Method(PATH, Cardinality.UNARY_UNARY, nothing, is_unregistered=True))
        == UNKNOWN_MESSAGE_LIMIT
    )
    assert limit_of(Method(PATH, Cardinality.UNARY_UNARY, nothing)) == UNKNOWN_MESSAGE_LIMIT
    infer = "/viam.service.mlmodel.v1.MLModelService/Infer"
    assert limit_of(Method(infer, Cardinality.UNARY_UNARY, nothing)).size == MAX_REQUEST_SIZE


@given(st.binary(max_size=300))
def test_whatever_the_bytes_are_the_check_ends(data: bytes) -> None:
    """Made longer than what is let through unseen."""
    image = encode_field_header(4, DEFAULT_MAX_SIZE) + b"x" * DEFAULT_MAX_SIZE
    with contextlib.suppress(RequestTooLarge):
        limit(GetDetectionsRequest).check(data + image, PATH)
