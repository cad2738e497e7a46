"""What a module says of the services that it brings, read by gRPC reflection."""

from __future__ import annotations

from typing import Any

import grpc.aio
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from cogwork.core.errors import CogworkError

_VERSIONS = ("v1", "v1alpha")
"""The messages are the same."""
_PATIENCE = 5.0
_MOST_FILES = 200


class NotDescribed(CogworkError):
    """A service that whoever brings it does not describe."""

    status = "UNIMPLEMENTED"


async def described(channel: grpc.aio.Channel, service: str) -> DescriptorPool:
    """The service with all its messages. Raises NotDescribed."""
    pool = DescriptorPool()
    added: set[str] = set()
    try:
        for file in await _files(channel, ServerReflectionRequest(file_containing_symbol=service)):
            await _add(channel, file, pool, added)
        pool.FindServiceByName(service)  # type: ignore[no-untyped-call]
    except (grpc.aio.AioRpcError, DecodeError, KeyError, TypeError, ValueError) as error:
        raise NotDescribed(f"{service} is not described by its module: {error}") from None
    return pool


async def _add(
    channel: grpc.aio.Channel, file: FileDescriptorProto, pool: DescriptorPool, added: set[str]
) -> None:
    """With what it imports ahead of it."""
    if file.name in added:
        return
    if len(added) >= _MOST_FILES:
        raise ValueError(f"it imports more than {_MOST_FILES} files")
    added.add(file.name)
    for name in file.dependency:
        if name not in added:
            for imported in await _files(channel, ServerReflectionRequest(file_by_filename=name)):
                await _add(channel, imported, pool, added)
    pool.Add(file)  # type: ignore[no-untyped-call]


async def _files(
    channel: grpc.aio.Channel, request: ServerReflectionRequest
) -> list[FileDescriptorProto]:
    *earlier, last = _VERSIONS
    for version in earlier:
        try:
            return await _asked(channel, version, request)
        except grpc.aio.AioRpcError:
            continue
    return await _asked(channel, last, request)


async def _asked(
    channel: grpc.aio.Channel, version: str, request: ServerReflectionRequest
) -> list[FileDescriptorProto]:
    ask: Any = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    return [
        FileDescriptorProto.FromString(data)
        async for reply in ask(iter([request]), timeout=_PATIENCE)
        for data in reply.file_descriptor_response.file_descriptor_proto
    ]
