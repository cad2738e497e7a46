"""gRPC reflection client: fetch the descriptors of a machine's services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

_TIMEOUT = 10.0


def fetch_service(channel: grpc.Channel, name: str) -> ServiceDescriptor:
    """Fetch a service descriptor with all its messages."""
    pool = DescriptorPool()
    added: set[str] = set()
    for file in _fetch_files(channel, ServerReflectionRequest(file_containing_symbol=name)):
        _add_file(channel, file, pool, added)
    service: ServiceDescriptor = pool.FindServiceByName(name)  # type: ignore[no-untyped-call]
    return service


def _add_file(
    channel: grpc.Channel, file: FileDescriptorProto, pool: DescriptorPool, added: set[str]
) -> None:
    """Add a file to the pool, after the files that it imports."""
    if file.name in added:
        return
    added.add(file.name)
    for name in file.dependency:
        if name not in added:
            for imported in _fetch_files(channel, ServerReflectionRequest(file_by_filename=name)):
                _add_file(channel, imported, pool, added)
    pool.Add(file)  # type: ignore[no-untyped-call]


def _fetch_files(channel: grpc.Channel, request: ServerReflectionRequest) -> Iterator[Any]:
    start = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    for reply in start(iter([request]), timeout=_TIMEOUT):
        for data in reply.file_descriptor_response.file_descriptor_proto:
            yield FileDescriptorProto.FromString(data)
