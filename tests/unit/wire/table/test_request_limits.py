from __future__ import annotations

import contextlib
from typing import Any

import pytest
from grpclib.const import Cardinality
from hypothesis import given
from hypothesis import strategies as st

from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.messages.protobuf_encoding import encode_field_header
from cogwork.wire.table.handlers import Method
from cogwork.wire.table.request_limits import (
    DEFAULT_MAX_SIZE,
    MAX_COMMAND_ELEMENTS,
    MAX_ELEMENTS,
    MAX_REQUEST_SIZE,
    MAX_UPLOAD_SIZE,
    UNKNOWN_MESSAGE_LIMIT,
    RequestTooLarge,
    limit_of,
    message_limit,
)

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.app.v1.app_pb2 import UploadModuleFileRequest  # noqa: E402
from viam.gen.common.v1.common_pb2 import DoCommandRequest  # noqa: E402
from viam.gen.component.arm.v1.arm_pb2 import MoveThroughJointPositionsRequest  # noqa: E402
from viam.gen.component.motor.v1.motor_pb2 import SetPowerRequest  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import TransformPoseRequest  # noqa: E402
from viam.gen.service.mlmodel.v1.mlmodel_pb2 import InferRequest  # noqa: E402
from viam.gen.service.shell.v1.shell_pb2 import CopyFilesToMachineRequest  # noqa: E402
from viam.gen.service.vision.v1.vision_pb2 import GetDetectionsRequest  # noqa: E402

PATH = "/test.Service/Method"


def get_limit(message: type[Any]) -> Any:
    descriptor: Any = message.DESCRIPTOR
    return message_limit(descriptor)


@pytest.mark.parametrize(
    ("message", "size", "elements"),
    [
        (SetPowerRequest, DEFAULT_MAX_SIZE, MAX_ELEMENTS),
        (MoveThroughJointPositionsRequest, DEFAULT_MAX_SIZE, MAX_ELEMENTS),
        (DoCommandRequest, MAX_REQUEST_SIZE, MAX_COMMAND_ELEMENTS),
        (GetDetectionsRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (CopyFilesToMachineRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (TransformPoseRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (InferRequest, MAX_REQUEST_SIZE, MAX_ELEMENTS),
        (UploadModuleFileRequest, MAX_UPLOAD_SIZE, MAX_ELEMENTS),
    ],
)
def test_limits_depend_on_the_message_type(message: type[Any], size: int, elements: int) -> None:
    assert get_limit(message).size == size
    assert get_limit(message).elements == elements


def test_size_is_checked_before_parsing() -> None:
    get_limit(SetPowerRequest).check(b"\xff" * DEFAULT_MAX_SIZE, PATH)
    with pytest.raises(
        RequestTooLarge,
        match=f"{DEFAULT_MAX_SIZE + 1} bytes; at most {DEFAULT_MAX_SIZE} are accepted",
    ):
        get_limit(SetPowerRequest).check(b"\xff" * (DEFAULT_MAX_SIZE + 1), PATH)


def test_only_the_payload_field_may_be_large() -> None:
    image = GetDetectionsRequest(
        name="v", image=b"x" * (MAX_REQUEST_SIZE - 100)
    ).SerializeToString()
    get_limit(GetDetectionsRequest).check(image, PATH)
    name = GetDetectionsRequest(name="v" * DEFAULT_MAX_SIZE, image=b"x").SerializeToString()
    with pytest.raises(RequestTooLarge, match="besides its payload"):
        get_limit(GetDetectionsRequest).check(name, PATH)


def test_nested_payload_may_be_large() -> None:
    request = CopyFilesToMachineRequest()
    request.file_data.data = b"x" * (1 << 20)
    get_limit(CopyFilesToMachineRequest).check(request.SerializeToString(), PATH)


@pytest.mark.parametrize("field", [b"\x78\x00", b"\x7a\x00", b"\x0a\x00"])
def test_many_small_fields_are_not_payload(field: bytes) -> None:
    with pytest.raises(RequestTooLarge, match="besides its payload"):
        get_limit(GetDetectionsRequest).check(field * (1 << 18), PATH)


def test_elements_are_counted_at_every_depth() -> None:
    request = MoveThroughJointPositionsRequest()
    for _ in range(1000):
        request.positions.add().values.extend([1.0] * 72)
    limit = get_limit(MoveThroughJointPositionsRequest)
    limit.count_elements(request.SerializeToString(), PATH)
    request.positions.add()
    with pytest.raises(RequestTooLarge, match="more than 10000 elements"):
        limit.count_elements(request.SerializeToString(), PATH)


def test_keys_and_values_of_a_command_are_counted() -> None:
    request = DoCommandRequest()
    request.command["a"] = [[1.0] * 1000] * 28
    get_limit(DoCommandRequest).count_elements(request.SerializeToString(), PATH)
    request.command["b"] = [[1.0] * 1000] * 28
    with pytest.raises(RequestTooLarge):
        get_limit(DoCommandRequest).count_elements(request.SerializeToString(), PATH)


async def do_nothing(_: object) -> None: ...


def test_unregistered_methods_have_the_unknown_message_limit() -> None:
    assert (
        limit_of(Method(PATH, Cardinality.UNARY_UNARY, do_nothing, is_unregistered=True))
        == UNKNOWN_MESSAGE_LIMIT
    )
    assert limit_of(Method(PATH, Cardinality.UNARY_UNARY, do_nothing)) == UNKNOWN_MESSAGE_LIMIT
    infer = "/viam.service.mlmodel.v1.MLModelService/Infer"
    assert limit_of(Method(infer, Cardinality.UNARY_UNARY, do_nothing)).size == MAX_REQUEST_SIZE


@given(st.binary(max_size=300))
def test_check_of_any_bytes_ends(data: bytes) -> None:
    """The data is made longer than what passes without a check."""
    image = encode_field_header(4, DEFAULT_MAX_SIZE) + b"x" * DEFAULT_MAX_SIZE
    with contextlib.suppress(RequestTooLarge):
        get_limit(GetDetectionsRequest).check(data + image, PATH)
