"""The frames of calls over a WebRTC data channel. Pure.

A frame is one message of the channel. It belongs to a call, whose number the client chooses.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

from grpclib.const import Status
from grpclib.metadata import Deadline
from multidict import MultiDict
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Metadata as FrameMetadata
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import (
    PacketMessage,
    RequestHeaders,
    Response,
    ResponseHeaders,
    ResponseMessage,
    ResponseTrailers,
    Stream,
    Strings,
)

from cogwork.wire.deadline import parse_deadline
from cogwork.wire.handlers import Metadata
from cogwork.wire.status import quote_message

MAX_METADATA_SIZE = 16 * 1024
"""Bytes of metadata in a reply. Headers and trailers cannot be split, and a frame holds 65,535."""
_MAX_TIMEOUT = 365 * 24 * 3600.0
_TRANSPORT_HEADERS = frozenset(
    {"te", "content-type", "user-agent", "grpc-timeout", "grpc-accept-encoding", "authorization"}
)
"""Names that the SDK's peer copies from HTTP/2. They are not call metadata. The login of the peer
itself applies to its calls."""


def encode_headers(number: int, metadata: Metadata) -> bytes:
    headers = ResponseHeaders(metadata=_encode_metadata(metadata))
    return Response(stream=Stream(id=number), headers=headers).SerializeToString()


def encode_message(number: int, data: bytes, packet_size: int) -> Iterator[bytes]:
    """Yield the frames of a message, each with at most `packet_size` bytes of it."""
    stream, end = Stream(id=number), max(len(data), 1)
    for start in range(0, end, packet_size):
        packet = PacketMessage(
            data=data[start : start + packet_size], eom=start + packet_size >= end
        )
        message = ResponseMessage(packet_message=packet)
        yield Response(stream=stream, message=message).SerializeToString()


def encode_trailers(
    number: int, status: Status, message: str, metadata: Metadata, *, quoted: bool
) -> bytes:
    """`quoted`: percent-encode the message, for peers that copy it into an HTTP header."""
    trailers = ResponseTrailers(metadata=_encode_metadata(metadata))
    trailers.status.code = status.value
    trailers.status.message = quote_message(message) if quoted else message
    return Response(stream=Stream(id=number), trailers=trailers).SerializeToString()


def read_metadata(headers: RequestHeaders) -> MultiDict[str | bytes]:
    found: MultiDict[str | bytes] = MultiDict()
    for name, strings in headers.metadata.md.items():
        if name.lower() not in _TRANSPORT_HEADERS:
            for value in strings.values:
                found.add(name.lower(), value)
    return found


def read_deadline(headers: RequestHeaders) -> Deadline | None:
    """Return the deadline: of the field, or of the header that the SDK's peer sends instead.

    Raise InvalidRequest.
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


def _encode_metadata(metadata: Mapping[str, str | bytes]) -> FrameMetadata | None:
    """Encode metadata, or nothing if it is too large."""
    encoded = FrameMetadata()
    size = 0
    for name, value in metadata.items():
        text = base64.b64encode(value).decode() if isinstance(value, bytes) else value
        size += len(name) + 4 * len(text)
        if size > MAX_METADATA_SIZE:
            return None
        strings: Strings = encoded.md[name]
        strings.values.append(text)
    return encoded if size else None
