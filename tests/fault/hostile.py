r"""A malicious module. `HOSTILE` is one of:

- `models`: it offers 100,000 of them; `dependencies`: its resources need a million others
- `descriptions`: it describes its service endlessly
- `calls`: it calls other resources of the machine, and prints the outcomes to stdout
- `environment`: it prints its environment variables to stdout
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse
from viam.gen.common.v1.common_pb2 import DoCommandRequest, ResourceName
from viam.gen.module.v1 import module_pb2 as messages
from viam.gen.robot.v1.robot_pb2 import ResourceRPCSubtype, RestartModuleRequest

HOSTILE = os.environ.get("HOSTILE", "")
MODEL = f"acme:{HOSTILE}:thing"
MODULE = "/viam.module.v1.ModuleService/"
GENERIC = "viam.component.generic.v1.GenericService"
CALLS = {
    "own": (f"/{GENERIC}/DoCommand", DoCommandRequest(name="own")),
    "needed": (f"/{GENERIC}/DoCommand", DoCommandRequest(name="needed")),
    "g": (f"/{GENERIC}/DoCommand", DoCommandRequest(name="g")),
    "restart": ("/viam.robot.v1.RobotService/RestartModule", RestartModuleRequest()),
}


def ready(request: messages.ReadyRequest, _: object) -> messages.ReadyResponse:
    name = ResourceName(namespace="rdk", type="component", subtype="generic")
    own = ResourceName(namespace="acme", type="component", subtype="own")
    models = [f"acme:{HOSTILE}:m{number}" for number in range(100_000)]
    handlers = [
        messages.HandlerDefinition(
            subtype=ResourceRPCSubtype(subtype=name, proto_service=GENERIC),
            models=[MODEL, *(models if HOSTILE == "models" else ())],
        ),
        messages.HandlerDefinition(
            subtype=ResourceRPCSubtype(subtype=own, proto_service="acme.Own")
        ),
    ]
    if HOSTILE == "calls":
        threading.Timer(1.0, call, (request.parent_address,)).start()
    return messages.ReadyResponse(ready=True, handlermap=messages.HandlerMap(handlers=handlers))


def validate(_: object, __: object) -> messages.ValidateConfigResponse:
    count = 1_000_000 if HOSTILE == "dependencies" else 0
    return messages.ValidateConfigResponse(dependencies=(f"d{number}" for number in range(count)))


def call(parent: str) -> None:
    channel = grpc.insecure_channel(f"unix:{parent}")
    said = {}
    for name, (path, request) in CALLS.items():
        try:
            make_call: Any = channel.unary_unary(path)
            make_call(request.SerializeToString(), timeout=60)
            said[name] = "OK"
        except grpc.RpcError as error:
            said[name] = error.code().name
    print("calls", json.dumps(said), flush=True)


def reflect(requests: Iterator[ServerReflectionRequest], _: object) -> Iterator[Any]:
    for request in requests:
        number = int(request.file_by_filename or "0")
        file = FileDescriptorProto(name=str(number), dependency=[str(number + 1)])
        message = file.message_type.add(name=f"M{number}")
        for field in range(20_000):
            message.field.add(name=f"a{field}", number=field % 18_000 + 1, type=9, label=1)
        reply = ServerReflectionResponse()
        reply.file_descriptor_response.file_descriptor_proto.append(file.SerializeToString())
        yield reply


ANSWERS: dict[str, tuple[Callable[..., Any], type[Any]]] = {
    f"{MODULE}Ready": (ready, messages.ReadyRequest),
    f"{MODULE}ValidateConfig": (validate, messages.ValidateConfigRequest),
    f"{MODULE}AddResource": (
        lambda *_: messages.AddResourceResponse(),
        messages.AddResourceRequest,
    ),
    f"{MODULE}RemoveResource": (
        lambda *_: messages.RemoveResourceResponse(),
        messages.RemoveResourceRequest,
    ),
    f"/{GENERIC}/DoCommand": (lambda *_: messages.AddResourceResponse(), DoCommandRequest),
}


class Handler(grpc.GenericRpcHandler):
    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        path = handler_call_details.method
        write = {"response_serializer": lambda message: message.SerializeToString()}
        if path in ANSWERS:
            answer, kind = ANSWERS[path]
            return grpc.unary_unary_rpc_method_handler(answer, kind.FromString, **write)
        if path.endswith("ServerReflectionInfo") and HOSTILE == "descriptions":
            read = ServerReflectionRequest.FromString
            return grpc.stream_stream_rpc_method_handler(reflect, read, **write)
        return None


def main() -> None:
    if HOSTILE == "environment":
        print("environment", json.dumps(sorted(os.environ)), flush=True)
    server = grpc.server(
        futures.ThreadPoolExecutor(4),
        handlers=[Handler()],
        options=[("grpc.max_send_message_length", -1)],
    )
    server.add_insecure_port(f"unix:{sys.argv[1]}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
