"""Fetches the descriptors of a machine's services by gRPC reflection."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from cogwork.cli.client.grpc_client import CommandError
from cogwork.wire.clients.reflection_client import query_descriptors, read_files, reflection_path

_TIMEOUT = 10.0


def fetch_service(channel: grpc.Channel, name: str, resource: str) -> ServiceDescriptor:
    """Fetch the descriptor of a resource's service with all its messages.

    If the resource's module or remote has another version of the service, return that version.
    Raise CommandError if the machine does not describe the service.
    """
    queries = query_descriptors(name, resource)
    request = next(queries)
    try:
        while True:
            request = queries.send(_fetch_files(channel, request))
    except StopIteration as end:
        service: ServiceDescriptor = end.value.FindServiceByName(name)
        return service
    except (KeyError, TypeError, ValueError):
        raise _undescribed(name) from None
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise _undescribed(name) from None
        raise


def _undescribed(name: str) -> CommandError:
    return CommandError(
        f"the machine does not describe {name}, so its methods are unknown; call it from a "
        "program, or from a machine that knows this API"
    )


def _fetch_files(
    channel: grpc.Channel, request: ServerReflectionRequest
) -> list[FileDescriptorProto]:
    start: Any = channel.stream_stream(
        reflection_path("v1"),
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    replies = start(iter([request]), timeout=_TIMEOUT)
    return [file for reply in replies for file in read_files(reply)]
