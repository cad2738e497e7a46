from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from hypothesis import example, given
from hypothesis import strategies as st

from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.messages.raw_request import read_resource_name

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.app.data.v1.data_pb2 import CaptureInterval  # noqa: E402
from viam.gen.component.camera.v1.camera_pb2 import GetImagesRequest  # noqa: E402
from viam.gen.service.mlmodel.v1.mlmodel_pb2 import FlatTensor, InferRequest  # noqa: E402
from viam.gen.service.shell.v1.shell_pb2 import ShellRequest  # noqa: E402
from viam.gen.service.vision.v1.vision_pb2 import GetDetectionsRequest  # noqa: E402

MAX_MESSAGE_SIZE = 1 << 25


def make_extra() -> Struct:
    extra = Struct()
    extra.update({"a": [1, None, {"b": "c"}], "ü": "ß" * 300})
    return extra


def make_infer_request(name: str) -> InferRequest:
    request = InferRequest(name=name, extra=make_extra())
    request.input_tensors.tensors["image"].CopyFrom(FlatTensor(shape=[1, 2, 3]))
    return request


REQUESTS: list[Callable[[str], Message]] = [
    lambda name: GetImagesRequest(name=name, filter_source_names=["x"] * 20, extra=make_extra()),
    lambda name: GetDetectionsRequest(
        name=name, image=random.Random(1).randbytes(400), width=1 << 40, height=-1, mime_type="m"
    ),
    make_infer_request,
    lambda name: ShellRequest(name=name, data_in="ls\n", extra=make_extra()),
]
names = st.text(st.characters(codec="utf-8"), max_size=200)


@pytest.mark.parametrize("make_request", REQUESTS)
@given(name=names)
def test_name_of_any_request_is_read(make_request: Callable[[str], Message], name: str) -> None:
    assert (read_resource_name(make_request(name).SerializeToString()) or "") == name


@pytest.mark.parametrize("make_request", REQUESTS)
@pytest.mark.parametrize("name", ["", "belt", "größe:ß🦆", "x" * 130, "y" * 1024])
def test_truncated_request_has_its_whole_name_or_none(
    make_request: Callable[[str], Message], name: str
) -> None:
    whole = make_request(name).SerializeToString()
    named_until = len(whole) - len(make_request("").SerializeToString())
    for end in range(len(whole) + 1):
        expected = name if name and end >= named_until else None
        assert read_resource_name(whole[:end]) == expected, f"cut at byte {end}"


@pytest.mark.parametrize("make_request", REQUESTS)
@given(st.data())
def test_mutated_request_raises_nothing(
    make_request: Callable[[str], Message], data: st.DataObject
) -> None:
    mutated = bytearray(make_request("belt").SerializeToString())
    for _ in range(data.draw(st.integers(1, 8))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    assert isinstance(read_resource_name(bytes(mutated)), str | None)


@given(st.binary(max_size=400))
@example(b"\xff" * 30)
@example(b"\x0a" + b"\xff" * 30)
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abc")
def test_any_bytes_contain_the_name_or_none(data: bytes) -> None:
    name = read_resource_name(data)
    assert name is None or name.encode() in data


def test_message_without_a_name_has_none() -> None:
    assert read_resource_name(b"") is None
    assert read_resource_name(CaptureInterval().SerializeToString()) is None


def test_name_that_is_not_utf8_is_none() -> None:
    assert read_resource_name(b"\x0a\x02\xff\xfe") is None


def test_too_long_name_is_none() -> None:
    assert read_resource_name(GetImagesRequest(name="x" * 5000).SerializeToString()) is None


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(b"\x10\x00", id="numbers"),
        pytest.param(b"\x12\x00", id="empty texts"),
        pytest.param(b"\x08\x00", id="names that are numbers"),
        pytest.param(b"\x15\x00\x00\x00\x00", id="four bytes"),
        pytest.param(b"\x80", id="a number that never ends"),
        pytest.param(random.Random(2).randbytes(1 << 16), id="noise"),
        pytest.param(b"\x0a" + b"\xff" * 15, id="a name without an end"),
    ],
)
def test_reading_the_largest_message_is_fast(pattern: bytes) -> None:
    """The name is read on the event loop."""
    message = (pattern * (MAX_MESSAGE_SIZE // len(pattern) + 1))[:MAX_MESSAGE_SIZE]
    before = time.thread_time()
    read_resource_name(message)
    assert time.thread_time() - before < 0.005
