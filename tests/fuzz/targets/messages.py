"""Parsers of protobuf bytes: names in raw requests, fields, tensors, structs, descriptions."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy

from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.resource.messages.protobuf_reader import FieldReader
from cogwork.resource.messages.structs import extra_to_dict, to_dict, to_struct
from cogwork.resource.messages.tensors import (
    decode_tensors,
    encode_tensors,
    read_infer_reply,
    read_infer_request,
    write_infer_request,
)
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.messages.raw_request import read_nested_resource_name, read_resource_name
from cogwork.wire.table.request_limits import (
    MAX_REQUEST_SIZE,
    RequestTooLarge,
    _count_overhead,
    message_limit,
)

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.service.mlmodel.v1.mlmodel_pb2 import InferRequest  # noqa: E402
from viam.gen.service.shell.v1.shell_pb2 import ShellRequest  # noqa: E402

from cogwork.resource.services.shell import _resize  # noqa: E402

_MAX_NAME_BYTES = 1024


def target_name(data: bytes) -> None:
    for found in (read_resource_name(data), read_nested_resource_name(data)):
        if found is not None and not 0 < len(found.encode()) <= _MAX_NAME_BYTES:
            raise ContractViolation(f"a name of {len(found)} characters")


def target_fields(data: bytes) -> None:
    with allow_errors(data, InvalidRequest):
        reader = FieldReader(data)
        end = 0
        for field in reader.iter_fields([reader.root()]):
            if not end <= field.start <= field.end <= len(data):
                raise ContractViolation(f"{field} behind byte {end} of {len(data)}")
            end = field.end


def target_tensors(data: bytes) -> None:
    with allow_errors(data, InvalidRequest):
        read_infer_reply(data)
    with allow_errors(data, InvalidRequest):
        request = read_infer_request(data)
        if sum(tensor.nbytes for tensor in request.tensors.values()) > 2 * len(data) + 64:
            raise ContractViolation("the tensors are larger than the message")
        _check_same(request.tensors, decode_tensors(encode_tensors(request.tensors)))
        again = read_infer_request(
            write_infer_request(request.name, request.tensors, request.extra)
        )
        if (again.name, again.extra) != (request.name, request.extra):
            raise ContractViolation("the request does not survive being written")
        _check_against_protobuf(data, request.name)


def _check_same(first: dict[str, Any], second: dict[str, Any]) -> None:
    if first.keys() != second.keys():
        raise ContractViolation("a tensor was lost")
    for name, tensor in first.items():
        other = second[name]
        if tensor.dtype != other.dtype or tensor.shape != other.shape:
            raise ContractViolation(f"{name}: {tensor.dtype} {tensor.shape} became {other.shape}")
        if tensor.tobytes() != other.tobytes():
            raise ContractViolation(f"{name} has other values")


def _check_against_protobuf(data: bytes, name: str) -> None:
    try:
        theirs = InferRequest.FromString(data)
    except DecodeError:
        return
    if theirs.name != name:
        raise ContractViolation(f'the name is "{theirs.name}" to protobuf and "{name}" to us')


def target_structs(data: bytes) -> None:
    try:
        struct = Struct.FromString(data)
    except DecodeError:
        return
    with allow_errors(data, InvalidRequest):
        extra_to_dict(struct)
    value = to_dict(struct)
    again = to_dict(to_struct(value))
    if repr(_sorted(again)) != repr(_sorted(value)):
        raise ContractViolation("a struct does not survive the way to Python and back")


def _sorted(value: Any) -> Any:
    """Return a value comparable by repr, for which NaN equals itself."""
    if isinstance(value, dict):
        return sorted((key, _sorted(member)) for key, member in value.items())
    return [*map(_sorted, value)] if isinstance(value, list) else value


def target_command(data: bytes) -> None:
    """Convert a command or attributes of the configuration to a message."""
    try:
        value = read_json(decode_lossy(data)).value
    except JsonSyntaxError:
        return
    if isinstance(value, dict):
        Struct.FromString(to_struct(value).SerializeToString())


class _Terminal:
    def resize(self, columns: int, rows: int) -> None:
        if not (0 <= columns < 1 << 16 and 0 <= rows < 1 << 16):
            raise ContractViolation(f"a window of {columns}x{rows}")


def target_window(data: bytes) -> None:
    try:
        request = ShellRequest.FromString(data)
    except DecodeError:
        return
    with allow_errors(data, CogworkError):
        _resize(request, _Terminal())  # type: ignore[arg-type]


def target_size(data: bytes) -> None:
    """Check that the counted overhead of a message is within its size."""
    overhead = _count_overhead(data, InferRequest.DESCRIPTOR)
    if not (0 <= overhead <= len(data) or overhead == MAX_REQUEST_SIZE):
        raise ContractViolation(f"{overhead} bytes of {len(data)} are not payload")
    limit = message_limit(InferRequest.DESCRIPTOR)
    with allow_errors(data, RequestTooLarge):
        limit.check(data, "/path")
        limit.count_elements(data, "/path")


def _request_seeds() -> list[bytes]:
    tensors: dict[str, Any] = {
        "image": np.zeros((1, 2, 2, 3), np.uint8),
        "scores": np.array([1.5, math.nan], np.float32),
        "short": np.array([[1], [-2]], np.int16),
        "scalar": np.array(7, np.int64),
    }
    request = write_infer_request("detector", tensors, to_struct({"a": 1}).SerializeToString())
    unpacked = InferRequest(name="x")
    unpacked.input_tensors.tensors["a"].shape.append(2)
    unpacked.input_tensors.tensors["a"].double_tensor.data.extend([1.0, 2.0])
    # The same numbers unpacked, each under its own tag, and an unknown group.
    raw = (
        b"\x1a\x1d\x0a\x1b\x0a\x01a\x12\x16\x5a\x14" + b"\x09\0\0\0\0\0\0\xf0\x3f" * 2 + b"\x0b\x0c"
    )
    return [request, unpacked.SerializeToString(), raw, b"\x0a\x01a\xa3\x06\x08\x01\xa4\x06"]


def _struct_seeds() -> list[bytes]:
    value = {"a": [1, None, True, {"b": "ü"}], "c": {"d": {}}, "e": math.inf}
    return [to_struct(value).SerializeToString(), b""]


def _window_seeds() -> list[bytes]:
    size = {"message": "window-change", "cols": 80, "rows": 24}
    return [
        ShellRequest(name="s", data_in="ls\n", extra=to_struct(size)).SerializeToString(),
        ShellRequest(name="s", extra=to_struct({"messages": [size, 1]})).SerializeToString(),
    ]


_TAGS = (b"\x0a", b"\x12", b"\x1a", b"\x5a", b"\x0b", b"\x0c", b"\xff\xff\xff\xff\x0f", b"\x80")
_COMMANDS = [
    json.dumps({"a": [1, 2.5, None, True], "b": {"c": "ü"}}).encode(),
    b'{"n": 123456789012345678901234567890}',
]

TARGETS = (
    Target(
        "messages.name",
        target_name,
        lambda: [*_request_seeds(), b"\x0a\x04belt", b"\x0a\x06\x0a\x04belt", b"\x10\x05\x0a\x01a"],
        ("cogwork.wire.messages.raw_request",),
        _TAGS,
    ),
    Target(
        "messages.fields",
        target_fields,
        _request_seeds,
        ("cogwork.resource.messages.protobuf_reader",),
        _TAGS,
    ),
    Target(
        "messages.tensors",
        target_tensors,
        _request_seeds,
        ("cogwork.resource.messages.tensors", "cogwork.resource.messages.protobuf_reader"),
        _TAGS,
    ),
    Target(
        "messages.structs",
        target_structs,
        _struct_seeds,
        ("cogwork.resource.messages.structs",),
        _TAGS,
    ),
    Target(
        "messages.command",
        target_command,
        lambda: _COMMANDS,
        ("cogwork.resource.messages.structs",),
        (b"[", b"]", b"{", b"}", b'"', b":", b"9" * 50, b"\\u0000", b"null", b"true"),
    ),
    Target(
        "messages.window",
        target_window,
        _window_seeds,
        ("cogwork.resource.services.shell:_resize", "cogwork.resource.services.shell:_parse_side"),
        (*_TAGS, b"window-change", b"cols", b"rows", b"messages"),
    ),
    Target(
        "messages.size",
        target_size,
        _request_seeds,
        (
            "cogwork.wire.table.request_limits:RequestLimit",
            "cogwork.wire.table.request_limits:_count_overhead",
            "cogwork.wire.table.request_limits:_skip_value",
            "cogwork.wire.messages.element_count:count_elements",
            "cogwork.wire.messages.protobuf_encoding:read_varint",
        ),
        _TAGS,
        stretched=512 << 10,
    ),
)
