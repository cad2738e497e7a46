"""Fetch the descriptors of a module's services by gRPC reflection."""

from __future__ import annotations

from typing import Any

import grpc.aio
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from cogwork.core.errors import CogworkError

_VERSIONS = ("v1", "v1alpha")
"""Versions of the protocol; their messages are the same."""
_TIMEOUT = 5.0
_MAX_FILES = 200


class NotDescribed(CogworkError):
    """The module does not describe the service."""

    status = "UNIMPLEMENTED"


class DescriptorBudget:
    """A limit on the bytes of descriptors, which take many times as much in memory."""

    def __init__(self, count: int) -> None:
        self._limit = self._left = count

    def spend(self, count: int) -> None:
        """Raises ValueError if the budget is exceeded."""
        self._left -= count
        if self._left < 0:
            raise ValueError(f"the descriptors of its module exceed {self._limit} bytes")


async def fetch_descriptors(
    channel: grpc.aio.Channel, service: str, budget: DescriptorBudget
) -> DescriptorPool:
    """Return a pool with the service and all of its messages. Raises NotDescribed."""
    pool = DescriptorPool()
    added: set[str] = set()
    try:
        request = ServerReflectionRequest(file_containing_symbol=service)
        for file in await _fetch_files(channel, request, budget):
            await _add_file(channel, file, pool, added, budget)
        pool.FindServiceByName(service)  # type: ignore[no-untyped-call]
    except (grpc.aio.AioRpcError, DecodeError, KeyError, TypeError, ValueError) as error:
        raise NotDescribed(
            f"cannot get the descriptors of {service} from its module: {error}"
        ) from None
    return pool


async def _add_file(
    channel: grpc.aio.Channel,
    file: FileDescriptorProto,
    pool: DescriptorPool,
    added: set[str],
    budget: DescriptorBudget,
) -> None:
    """Add a file after the files that it imports."""
    if file.name in added:
        return
    if len(added) >= _MAX_FILES:
        raise ValueError(f"it imports more than {_MAX_FILES} files")
    added.add(file.name)
    for name in file.dependency:
        if name not in added:
            request = ServerReflectionRequest(file_by_filename=name)
            for imported in await _fetch_files(channel, request, budget):
                await _add_file(channel, imported, pool, added, budget)
    pool.Add(file)  # type: ignore[no-untyped-call]


async def _fetch_files(
    channel: grpc.aio.Channel, request: ServerReflectionRequest, budget: DescriptorBudget
) -> list[FileDescriptorProto]:
    *earlier, last = _VERSIONS
    for version in earlier:
        try:
            return await _query_files(channel, version, request, budget)
        except grpc.aio.AioRpcError:
            continue
    return await _query_files(channel, last, request, budget)


async def _query_files(
    channel: grpc.aio.Channel,
    version: str,
    request: ServerReflectionRequest,
    budget: DescriptorBudget,
) -> list[FileDescriptorProto]:
    ask: Any = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
    )
    call = ask(iter([request]), timeout=_TIMEOUT)
    files: list[FileDescriptorProto] = []
    try:
        async for data in call:
            budget.spend(len(data))
            reply = ServerReflectionResponse.FromString(data)
            found = reply.file_descriptor_response.file_descriptor_proto
            files += [FileDescriptorProto.FromString(each) for each in found]
    finally:
        call.cancel()
    return files
