"""Encoding of tensors, compared with the SDK's conversion and protobuf's parser."""

from __future__ import annotations

import struct
import time
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from google.protobuf.unknown_fields import (  # type: ignore[import-not-found]
    UnknownFieldSet,
)
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.protobuf_reader import MAX_FIELDS
from cogwork.resource.messages.tensors import (
    Tensors,
    decode_tensors,
    encode_tensors,
    read_infer_reply,
    read_infer_request,
    write_infer_reply,
    write_infer_request,
)
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.messages.protobuf_encoding import encode_field_header, encode_varint

assert sdk.VERSION  # the SDK must be imported first
from viam.proto.service import mlmodel  # noqa: E402
from viam.services.mlmodel.utils import (  # noqa: E402
    flat_tensors_to_ndarrays,
    ndarrays_to_flat_tensors,
)

TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Draw arrays of every type and byte order: empty, scalar, transposed, reversed, strided."""
    dtype = np.dtype(draw(st.sampled_from("<>")) + draw(st.sampled_from(TYPES)))
    shape = draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    array: NDArray[Any] = draw(
        npst.arrays(dtype, shape, elements={"allow_nan": False} if dtype.kind == "f" else None)
    )
    if draw(st.booleans()):
        array = array.T
    if array.ndim and draw(st.booleans()):
        array = array[:: draw(st.sampled_from([-1, 2]))]
    return array


names = st.text(max_size=12)
tensors = st.dictionaries(names, arrays(), max_size=3)


def equal_tensors(ours: Tensors, theirs: Tensors) -> bool:
    return ours.keys() == theirs.keys() and all(
        ours[name].dtype == theirs[name].dtype
        and ours[name].shape == theirs[name].shape
        and np.array_equal(ours[name], theirs[name], equal_nan=ours[name].dtype.kind == "f")
        for name in ours
    )


def to_native(tensors: Tensors) -> dict[str, NDArray[Any]]:
    return {name: array.astype(array.dtype.newbyteorder("=")) for name, array in tensors.items()}


@given(tensors)
def test_tensors_survive_a_round_trip(tensors: Tensors) -> None:
    assert equal_tensors(decode_tensors(encode_tensors(tensors)), to_native(tensors))


@given(tensors)
def test_encoding_matches_the_sdk(tensors: Tensors) -> None:
    ours = mlmodel.FlatTensors.FromString(encode_tensors(tensors))
    assert ours == ndarrays_to_flat_tensors(to_native(tensors))


@given(names, arrays())
def test_single_tensor_is_encoded_byte_for_byte_like_the_sdk(
    name: str, array: NDArray[Any]
) -> None:
    theirs = ndarrays_to_flat_tensors(to_native({name: array})).SerializeToString()
    assert encode_tensors({name: array}) == theirs


@given(tensors)
def test_decoding_matches_the_sdk(tensors: Tensors) -> None:
    message = ndarrays_to_flat_tensors(to_native(tensors))
    read = decode_tensors(message.SerializeToString())
    assert equal_tensors(read, flat_tensors_to_ndarrays(message))


@pytest.mark.parametrize("bits", [0x7FA00001, 0xFFC00000, 0x80000000, 0x00000001])
def test_every_bit_of_a_float_survives(bits: int) -> None:
    array = np.array([bits], np.uint32).view(np.float32)
    assert decode_tensors(encode_tensors({"a": array}))["a"].view(np.uint32) == [bits]


def field(number: int, content: bytes) -> bytes:
    return encode_field_header(number, len(content)) + content


def tensor(*parts: bytes, name: str = "a") -> bytes:
    return field(1, field(1, name.encode()) + field(2, b"".join(parts)))


def shape(*extents: int) -> bytes:
    return field(1, struct.pack(f"<{len(extents)}Q", *extents))


def floats(*values: float) -> bytes:
    return field(10, field(1, struct.pack(f"<{len(values)}f", *values)))


UNKNOWN = (
    encode_varint(200 << 3) + b"\xff" * 9 + b"\x01",
    encode_varint(200 << 3 | 1) + b"12345678",
    field(200, b"\x0a\xff"),
    encode_varint(200 << 3 | 5) + b"1234",
    encode_varint(16 << 3 | 5) + b"1234" + encode_varint(16 << 3 | 5) + b"1234",
    # A group with a nested group, and a known field of another wire type.
    b"\x9b\x06" + b"\xa3\x06" + b"\x0a\x02ab" + b"\xa4\x06" + b"\x08\x01" + b"\x9c\x06",
    b"\x08\x01",
)
STORED_LETTERS = {4: "I", 5: "I", 6: "i", 7: "I", 8: "q", 9: "Q", 10: "f", 11: "d"}


@st.composite
def numbers(draw: st.DrawFn, letter: str, values: list[int]) -> list[bytes]:
    """Draw pieces of a repeated field: packed or unpacked, with unknown fields between them."""
    tag = b"\x09" if letter in "qQd" else b"\x0d"
    pieces = []
    while values:
        count = draw(st.integers(1, len(values)))
        stored = [struct.pack("<" + letter, value) for value in values[:count]]
        values = values[count:]
        packed = draw(st.booleans())
        pieces.append(field(1, b"".join(stored)) if packed else tag + tag.join(stored))
        pieces.append(draw(st.just(b"") | st.sampled_from(UNKNOWN)))
    return pieces


@st.composite
def tensor_parts(draw: st.DrawFn, number: int) -> list[bytes]:
    """Draw a tensor in an unusual but valid encoding."""
    values = draw(st.lists(st.integers(0, 100), max_size=9))
    extents = draw(st.sampled_from([[len(values)], [1, len(values)], [len(values), 1, 1]]))
    if number in STORED_LETTERS:
        pieces = draw(numbers(STORED_LETTERS[number], values))
    else:
        pieces = [field(1, b"early"), field(1, bytes(values))]
    cut = draw(st.integers(0, len(pieces)))
    data = [field(number, b"".join(pieces[:cut])), field(number, b"".join(pieces[cut:]))]
    shape = draw(numbers("Q", extents))
    return draw(st.sampled_from([data + shape, shape + data, data[:1] + shape + data[1:]]))


@st.composite
def entries(draw: st.DrawFn) -> bytes:
    number, other = draw(st.integers(2, 11)), draw(st.integers(2, 11))
    parts = draw(tensor_parts(number))
    if draw(st.booleans()):
        # A value of another type, which the next one replaces.
        parts.insert(0, field(other, b"") if other == number else field(other, field(1, b"")))
    cut = draw(st.integers(0, len(parts)))
    value = [field(2, b"".join(parts[:cut])), field(2, b"".join(parts[cut:]))]
    key = [field(1, b"early"), field(1, draw(st.sampled_from([b"a", b"b"])))]
    order = draw(st.sampled_from([key + value, value + key, value[:1] + key + value[1:], value]))
    return field(1, b"".join(order))


messages = st.lists(entries() | st.sampled_from(UNKNOWN), max_size=4).map(b"".join)


def decode_with_sdk(data: bytes) -> dict[str, NDArray[Any]] | None:
    """Decode with the SDK, or return None if that fails."""
    try:
        message = mlmodel.FlatTensors.FromString(data)
        # Python's protobuf drops an entry that holds an unknown field; C++ and Go read it.
        dropped = any(
            (each.field_number, each.wire_type) == (1, 2) for each in UnknownFieldSet(message)
        )
        return None if dropped else flat_tensors_to_ndarrays(message)
    except (DecodeError, ValueError, OverflowError):
        return None


def decodes_like_sdk_or_refuses(data: bytes) -> bool:
    theirs = decode_with_sdk(data)
    try:
        ours = decode_tensors(data)
    except InvalidRequest as error:
        return theirs is None or str(error).endswith("huge")
    # Our decoder also accepts a list without a shape, which the SDK refuses.
    return theirs is None or equal_tensors(ours, theirs)


@given(messages)
def test_unusual_encodings_decode_like_the_sdk(data: bytes) -> None:
    theirs = decode_with_sdk(data)
    assert theirs is not None
    assert equal_tensors(decode_tensors(data), theirs)


@given(st.binary(max_size=64) | st.binary(max_size=40).map(lambda octets: tensor(octets)))
@example(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(tensor(b"\x85\x01" + b"1234" + b"\x85\x01" + b"1234"))
def test_any_bytes_decode_like_the_sdk_or_are_refused(data: bytes) -> None:
    assert decodes_like_sdk_or_refuses(data)


@given(tensors.map(encode_tensors) | messages, st.data())
def test_damaged_messages_decode_like_the_sdk_or_are_refused(
    message: bytes, data: st.DataObject
) -> None:
    octets = bytearray(message)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(octets)))
        octets[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    assert decodes_like_sdk_or_refuses(bytes(octets))


@given(names, tensors, st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=2))
def test_infer_request_is_compatible_with_protobuf(
    name: str, tensors: Tensors, extra: dict[str, Any]
) -> None:
    more = Struct()
    more.update(extra)
    ours = write_infer_request(name, tensors, more.SerializeToString())
    parsed = mlmodel.InferRequest.FromString(ours)
    assert (parsed.name, parsed.extra) == (name, more)
    assert parsed.HasField("input_tensors")
    assert parsed.input_tensors == ndarrays_to_flat_tensors(to_native(tensors))
    for data in (ours, parsed.SerializeToString()):
        read = read_infer_request(data)
        assert (read.name, Struct.FromString(read.extra)) == (name, more)
        assert equal_tensors(read.tensors, to_native(tensors))


@given(tensors)
def test_infer_reply_is_compatible_with_protobuf(tensors: Tensors) -> None:
    ours = write_infer_reply(tensors)
    parsed = mlmodel.InferResponse.FromString(ours)
    assert parsed.output_tensors == ndarrays_to_flat_tensors(to_native(tensors))
    assert equal_tensors(read_infer_reply(ours), to_native(tensors))
    assert equal_tensors(read_infer_reply(parsed.SerializeToString()), to_native(tensors))


def test_concatenated_requests_are_merged() -> None:
    one, two = {"a": np.zeros(2, np.uint8)}, {"b": np.ones((), np.float32)}
    first, second = Struct(), Struct()
    first["x"], second["y"] = 1, 2
    read = read_infer_request(
        write_infer_request("old", one, first.SerializeToString())
        + write_infer_request("model", two, second.SerializeToString())
    )
    assert read.name == "model"
    assert equal_tensors(read.tensors, one | two)
    assert dict(Struct.FromString(read.extra)) == {"x": 1, "y": 2}
    nothing = read_infer_request(b"")
    assert (nothing.name, nothing.tensors, nothing.extra) == ("", {}, b"")


@pytest.mark.parametrize("dtype", [each for each in TYPES if each not in ("i2", "u2")])
def test_aligned_data_is_not_copied(dtype: str) -> None:
    width = np.dtype(dtype).itemsize
    message = encode_tensors({"a": np.arange(6, dtype=dtype).reshape(2, 3)})
    for start in range(width):
        buffer = np.zeros(len(message) + 16, np.uint8)
        buffer[start : start + len(message)] = np.frombuffer(message, np.uint8)
        read = decode_tensors(buffer.data[start : start + len(message)])["a"]
        aligned = (buffer.ctypes.data + start + len(message)) % width == 0
        assert np.shares_memory(read, buffer) == aligned
        assert read.flags.aligned
        assert not read.flags.writeable
        assert read.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_scalar_and_list_may_have_no_shape() -> None:
    read = decode_tensors(
        tensor(floats(7), name="one") + tensor(floats(1, 2), name="two") + tensor(floats(), name="")
    )
    assert {name: array.shape for name, array in read.items()} == {"one": (), "two": (2,), "": (0,)}


def test_16_bit_values_use_the_low_bits_of_32() -> None:
    stored = field(1, struct.pack("<3I", 0xFFFF_FFFE, 0x0000_FFFE, 0x0001_0003))
    read = decode_tensors(tensor(field(4, stored)) + tensor(field(5, stored), name="b"))
    assert equal_tensors(
        read, {"a": np.array([-2, -2, 3], "i2"), "b": np.array([0xFFFE, 0xFFFE, 3], "u2")}
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tensor(shape(2, 3), floats(1)), r'tensor "a" has 1 values, but its shape \[2, 3\] needs '),
        (tensor(shape(2**63, 2), floats()), r"shape \[9223372036854775808, 2\] needs 1844"),
        (tensor(shape(2**64 - 1), floats(1)), "has 1 values, but its shape"),
        (tensor(shape(2**32, 2**32), floats()), "has 0 values, but its shape"),
        (tensor(shape(0, 2**63), floats()), r"is empty, but its shape \[0, 92.*\] is too large"),
        (tensor(shape(2**31, 0, 2**31), floats()), r"is empty, but its shape .*\] is too large"),
        (tensor(shape(*[1] * 65), floats(1)), "65 dimensions; the limit is 32"),
        (tensor(shape(*[2**64 - 1] * 32), floats(1)), "needs "),
        (tensor(field(1, b"1234567"), floats(1)), "7 bytes, which is not a multiple of 8"),
        (tensor(field(10, field(1, b"123"))), "3 bytes, which is not a multiple of 4"),
        (tensor(field(10, b"\x0d123")), "has 4 bytes, but only 3 are left"),
        (tensor(field(10, b"\x0d1234\x0d123")), "has 4 bytes, but only 3 are left"),
        (tensor(floats(1))[:-1], "has 13 bytes, but only 12 are left"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "has 18446744073709551615 bytes, but only 0 are left"),
        (b"\x0a" + b"\xff" * 10 + b"\x01", "damaged at byte 1: the varint is not terminated"),
        (b"\x0a", "damaged at byte 1: the varint is not terminated"),
        (b"\x02\x00", "the field number is invalid"),
        (b"\xfa\xff\xff\xff\x1f\x00", "the field number is invalid"),
        (b"\x8a\x80\x80\x80\x80\x00\x00", "the field number is invalid"),
        (b"\x0e", "wire type 6 is not allowed"),
        (b"\x14", "wire type 4 is not allowed"),
        (b"\x13\x1c", "the end of a group does not match"),
        (b"\x13" * 101 + b"\x14" * 101, "more than 100 groups are nested"),
        (field(1, field(1, b"\xff")), "the string is not UTF-8"),
    ],
)
def test_invalid_messages_are_refused(data: bytes, words: str) -> None:
    assert decode_with_sdk(data) is None
    with pytest.raises(InvalidRequest, match=words):
        decode_tensors(data)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, np.float16),
        np.zeros(2, np.bool_),
        np.array(["x"]),
        np.array([None]),
        np.zeros(2, np.complex64),
        np.zeros(2, "i4,f4"),
        np.zeros(2, "M8[ns]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_unsupported_array_type_is_named(array: NDArray[Any]) -> None:
    with pytest.raises(InvalidRequest) as error:
        encode_tensors({"good": np.zeros(1, np.int8), "bad\n": array})
    assert str(error.value).startswith(f'tensor "badU+000A" has type {array.dtype}, which cannot')
    assert "one of int8, uint8, int16, " in str(error.value)


def test_tensor_without_a_type_is_ignored() -> None:
    assert decode_tensors(tensor(shape(1)) + field(1, b"")) == {}
    assert decode_tensors(tensor(floats(1)) + tensor(shape(1))) == {}


def test_entry_with_unknown_fields_is_read() -> None:
    entry = UNKNOWN[0] + field(1, b"a") + UNKNOWN[1] + field(2, floats(1)) + UNKNOWN[5]
    assert decode_tensors(field(1, entry)) == {"a": 1}


def test_many_unpacked_numbers_are_decoded() -> None:
    count = 300_000
    values = np.arange(count, dtype="<f4")
    unpacked = np.zeros(count, [("tag", "u1"), ("value", "<f4")])
    unpacked["tag"], unpacked["value"] = 0x0D, values
    read = decode_tensors(tensor(shape(count), field(10, unpacked.tobytes())))
    assert equal_tensors(read, {"a": values})


@pytest.mark.parametrize(
    "piece",
    [b"\x10\x00", b"\x151234" * 4 + b"\x10\x00", b"\x13\x14", field(1, b"")],
)
def test_message_with_too_many_fields_is_refused_fast(piece: bytes) -> None:
    data = piece * (8_000_000 // len(piece))
    started = time.process_time()
    with pytest.raises(InvalidRequest, match=f"more than {MAX_FIELDS} fields"):
        decode_tensors(data)
    assert time.process_time() - started < 5
