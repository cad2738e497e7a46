"""Fetches the descriptors of services in another process by gRPC reflection."""

from __future__ import annotations

from typing import Any

import grpc.aio
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from cogwork.core.errors import CogworkError
from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.reflection_client import query_descriptors, read_files, reflection_path

_VERSIONS = ("v1", "v1alpha")
"""Supported versions of the protocol. Their messages are identical."""
_TIMEOUT = 5.0


class NotDescribed(CogworkError):
    """The process does not describe the service."""

    status = "UNIMPLEMENTED"


class DescriptorBudget:
    """A limit on the encoded bytes of descriptors, because parsing them takes many times as much
    memory."""

    def __init__(self, count: int) -> None:
        self._limit = self._left = count

    def spend(self, count: int) -> None:
        """Count the bytes. Raise ValueError if the limit is exceeded."""
        self._left -= count
        if self._left < 0:
            raise ValueError(f"the descriptors exceed {self._limit} bytes")


async def fetch_descriptors(
    channel: ForwardChannel, service: str, budget: DescriptorBudget
) -> DescriptorPool:
    """Return a pool with the service and all of its messages. Raise NotDescribed."""
    queries = query_descriptors(service)
    try:
        request = next(queries)
        while True:
            request = queries.send(await _fetch_files(channel, request, budget))
    except StopIteration as end:
        pool: DescriptorPool = end.value
        return pool
    except (grpc.aio.AioRpcError, DecodeError, KeyError, TypeError, ValueError) as error:
        raise NotDescribed(
            f"cannot get the descriptors of {service} from its process: {error}"
        ) from None


async def _fetch_files(
    channel: ForwardChannel, request: ServerReflectionRequest, budget: DescriptorBudget
) -> list[FileDescriptorProto]:
    *earlier, last = _VERSIONS
    for version in earlier:
        try:
            return await _query_files(channel, version, request, budget)
        except grpc.aio.AioRpcError:
            continue
    return await _query_files(channel, last, request, budget)


async def _query_files(
    channel: ForwardChannel,
    version: str,
    request: ServerReflectionRequest,
    budget: DescriptorBudget,
) -> list[FileDescriptorProto]:
    ask: Any = channel.stream_stream(
        reflection_path(version),
        request_serializer=ServerReflectionRequest.SerializeToString,
    )
    call = ask(iter([request]), timeout=_TIMEOUT)
    files: list[FileDescriptorProto] = []
    try:
        async for data in call:
            budget.spend(len(data))
            files += read_files(ServerReflectionResponse.FromString(data))
    finally:
        call.cancel()
    return files
