"""The time to wait before a refused call is retried, in gRPC's error details."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status as RpcStatus
from grpclib.const import Status

from cogwork.core.errors import CogworkError
from cogwork.wire.table.handlers import Metadata

_DETAILS: Final = "grpc-status-details-bin"
_MAX_DELAY: Final = 24 * 3600.0


def encode_retry_info(error: CogworkError, seconds: float) -> Metadata:
    """Return trailing metadata with the time to wait. Send it before the error is raised."""
    status = RpcStatus(code=Status[error.status].value, message=str(error))
    info = RetryInfo()
    info.retry_delay.FromMilliseconds(round(min(seconds, _MAX_DELAY) * 1000))
    status.details.add().Pack(info)
    return {_DETAILS: status.SerializeToString()}


def read_retry_delay(metadata: Iterable[tuple[str, str | bytes]]) -> float | None:
    """Return the seconds to wait, from the trailing metadata of a refused call."""
    for name, value in metadata:
        if name == _DETAILS and isinstance(value, bytes):
            return _read_delay(value)
    return None


def _read_delay(details: bytes) -> float | None:
    info = RetryInfo()
    try:
        for each in RpcStatus.FromString(details).details:
            if each.Unpack(info):
                seconds: float = info.retry_delay.ToMilliseconds() / 1000
                return min(max(seconds, 0.0), _MAX_DELAY)
    except DecodeError:
        pass
    return None
