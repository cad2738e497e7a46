"""Collects the descriptors of a service by gRPC reflection, independent of the transport."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

MAX_FILES = 200

DescriptorQueries: TypeAlias = Generator[
    ServerReflectionRequest, Sequence[FileDescriptorProto], DescriptorPool
]
"""A generator that yields requests, receives the files of each reply, and returns the pool."""


def reflection_path(version: str) -> str:
    return f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"


def read_files(reply: ServerReflectionResponse) -> list[FileDescriptorProto]:
    found = reply.file_descriptor_response.file_descriptor_proto
    return [FileDescriptorProto.FromString(data) for data in found]


def query_descriptors(service: str, resource: str = "") -> DescriptorQueries:
    """Query a service and all of its messages.

    If a resource is given, a Cogwork server answers with the descriptors of the resource's
    provider. Raise KeyError, TypeError or ValueError if the descriptors are incomplete or too many.
    """
    pool = DescriptorPool()
    added: set[str] = set()
    for file in (yield ServerReflectionRequest(host=resource, file_containing_symbol=service)):
        yield from _add_file(file, pool, added, resource)
    pool.FindServiceByName(service)  # type: ignore[no-untyped-call]
    return pool


def _add_file(
    file: FileDescriptorProto, pool: DescriptorPool, added: set[str], resource: str
) -> Generator[ServerReflectionRequest, Sequence[FileDescriptorProto], None]:
    """Add a file after the files that it imports."""
    if file.name in added:
        return
    if len(added) >= MAX_FILES:
        raise ValueError(f"the service imports more than {MAX_FILES} files")
    added.add(file.name)
    for name in file.dependency:
        if name not in added:
            for imported in (yield ServerReflectionRequest(host=resource, file_by_filename=name)):
                yield from _add_file(imported, pool, added, resource)
    pool.Add(file)  # type: ignore[no-untyped-call]
