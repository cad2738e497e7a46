"""Encodes and decodes the frames of calls over a WebRTC data channel. Pure.

A frame is one message of the channel. It belongs to a call, whose number the client chooses.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

from grpclib.const import Status
from grpclib.metadata import Deadline
from multidict import MultiDict
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Metadata as FrameMetadata
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import (
    PacketMessage,
    Request,
    RequestHeaders,
    RequestMessage,
    Response,
    ResponseHeaders,
    ResponseMessage,
    ResponseTrailers,
    Stream,
    Strings,
)

from cogwork.wire.messages.deadline import parse_deadline
from cogwork.wire.table.handlers import Metadata
from cogwork.wire.table.status import quote_message

MAX_METADATA_SIZE = 64_000
"""Maximum bytes of metadata. Headers or trailers must fit into one frame, which has at most 65,535
bytes."""
_ENTRY_SIZE = 16
"""Maximum bytes that the encoding of a metadata entry adds to its name and its value."""
REQUEST_PACKET_SIZE = 16_373
"""Maximum bytes of a request per frame, the same as in other clients."""
_MAX_TIMEOUT = 365 * 24 * 3600.0
_BINARY_SUFFIX = "-bin"
"""Suffix of header names with binary values."""
_TRANSPORT_HEADERS = frozenset(
    {"te", "content-type", "user-agent", "grpc-timeout", "grpc-accept-encoding", "authorization"}
)
"""Headers that the SDK's peer copies from HTTP/2. They are removed from the metadata of calls;
instead of `authorization`, the login of the peer applies to all of its calls."""


def encode_headers(number: int, metadata: Metadata) -> bytes:
    headers = ResponseHeaders(metadata=_encode_metadata(metadata.items()))
    return Response(stream=Stream(id=number), headers=headers).SerializeToString()


def encode_message(number: int, data: bytes, packet_size: int) -> Iterator[bytes]:
    """Yield the frames of a message. Each frame has at most `packet_size` bytes of the message."""
    stream = Stream(id=number)
    for packet in _split_packets(data, packet_size):
        message = ResponseMessage(packet_message=packet)
        yield Response(stream=stream, message=message).SerializeToString()


def encode_request_headers(
    number: int, path: str, metadata: Iterable[tuple[str, str | bytes]], timeout: float | None
) -> bytes:
    """Return the frame with the headers. Raise ValueError if there is too much metadata."""
    pairs = tuple(metadata)
    encoded = _encode_metadata(pairs)
    if pairs and encoded is None:
        raise ValueError(f"the metadata of a call has more than {MAX_METADATA_SIZE} bytes")
    headers = RequestHeaders(method=path, metadata=encoded)
    if timeout is not None:
        headers.timeout.FromNanoseconds(max(1, int(min(timeout, _MAX_TIMEOUT) * 1e9)))
    return Request(stream=Stream(id=number), headers=headers).SerializeToString()


def encode_request(number: int, data: bytes, *, end: bool) -> Iterator[bytes]:
    """Yield the frames of a message. `end` is true if no further message follows."""
    stream = Stream(id=number)
    for packet in _split_packets(data, REQUEST_PACKET_SIZE):
        message = RequestMessage(has_message=True, packet_message=packet, eos=end and packet.eom)
        yield Request(stream=stream, message=message).SerializeToString()


def encode_half_close(number: int) -> bytes:
    return Request(stream=Stream(id=number), message=RequestMessage(eos=True)).SerializeToString()


def encode_reset(number: int) -> bytes:
    return Request(stream=Stream(id=number), rst_stream=True).SerializeToString()


def encode_trailers(
    number: int, status: Status, message: str, metadata: Metadata, *, quoted: bool
) -> bytes:
    """Return the frame with the status.

    If `quoted`, percent-encode the message, for peers that copy it into an HTTP header.
    """
    trailers = ResponseTrailers(metadata=_encode_metadata(metadata.items()))
    trailers.status.code = status.value
    trailers.status.message = quote_message(message) if quoted else message
    return Response(stream=Stream(id=number), trailers=trailers).SerializeToString()


def read_metadata(headers: RequestHeaders) -> MultiDict[str | bytes]:
    return MultiDict(
        pair for pair in decode_metadata(headers.metadata) if pair[0] not in _TRANSPORT_HEADERS
    )


def read_deadline(headers: RequestHeaders) -> Deadline | None:
    """Return the deadline from the `timeout` field, or from the header that the SDK's peer sends
    instead.

    Raise InvalidRequest if the header is invalid.
    """
    seconds = headers.timeout.seconds + headers.timeout.nanos / 1e9
    if seconds > 0:
        return Deadline.from_timeout(min(seconds, _MAX_TIMEOUT))
    values = headers.metadata.md["grpc-timeout"].values if _has_timeout(headers) else ()
    return parse_deadline(values[0] if values else None)


def is_http_peer(headers: RequestHeaders) -> bool:
    """Return whether the client copies statuses into HTTP headers, as the SDK's peer does."""
    return "te" in headers.metadata.md or "content-type" in headers.metadata.md


def _has_timeout(headers: RequestHeaders) -> bool:
    return "grpc-timeout" in headers.metadata.md


def decode_metadata(metadata: FrameMetadata) -> Iterator[tuple[str, str | bytes]]:
    for name, strings in metadata.md.items():
        key = name.lower()
        for value in strings.values:
            yield key, _decode_binary(value) if key.endswith(_BINARY_SUFFIX) else value


def _split_packets(data: bytes, packet_size: int) -> Iterable[PacketMessage]:
    """Return the packets of a message. There is at least one packet."""
    if len(data) <= packet_size:
        return (PacketMessage(data=data, eom=True),)
    return (
        PacketMessage(data=data[start : start + packet_size], eom=start + packet_size >= len(data))
        for start in range(0, len(data), packet_size)
    )


def _decode_binary(text: str) -> bytes:
    """Decode the value of a base64 header, whose padding may be missing."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return text.encode()


def _encode_metadata(metadata: Iterable[tuple[str, str | bytes]]) -> FrameMetadata | None:
    """Encode metadata. Return None if it is too large."""
    encoded = FrameMetadata()
    size = 0
    for name, value in metadata:
        text = base64.b64encode(value).decode() if isinstance(value, bytes) else value
        size += len(name) + len(text.encode()) + _ENTRY_SIZE
        if size > MAX_METADATA_SIZE:
            return None
        strings: Strings = encoded.md[name]
        strings.values.append(text)
    return encoded if size else None
