"""A module on grpc.aio that replies at once, so that benchmarks measure only the path to it.

It provides the model `acme:bench:<its name>` for three APIs: a generic component, a camera with
images of 1 MB, and maps: `map-64-100` is streamed in chunks of 64 KiB, 100 MB in total.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import uvloop
from viam.gen.common.v1.common_pb2 import DoCommandResponse
from viam.gen.component.camera.v1.camera_pb2 import GetImagesResponse, Image
from viam.gen.module.v1 import module_pb2 as messages
from viam.gen.robot.v1.robot_pb2 import ResourceRPCSubtype
from viam.gen.service.slam.v1.slam_pb2 import GetPointCloudMapRequest, GetPointCloudMapResponse

NAME = os.environ.get("VIAM_MODULE_NAME", "quick")
PICTURE = 1_000_000
SERVICES = {
    ("component", "generic"): "viam.component.generic.v1.GenericService",
    ("component", "camera"): "viam.component.camera.v1.CameraService",
    ("service", "slam"): "viam.service.slam.v1.SLAMService",
}


async def main() -> None:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((_make_module_handler(), *_make_resource_handlers()))
    server.add_insecure_port(f"unix:{sys.argv[1]}")
    await server.start()
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    await terminated.wait()
    await server.stop(None)


def _make_module_handler() -> grpc.GenericRpcHandler:
    replies = {
        "Ready": messages.ReadyResponse(ready=True, handlermap=_make_handler_map()),
        "ValidateConfig": messages.ValidateConfigResponse(),
        "AddResource": messages.AddResourceResponse(),
        "ReconfigureResource": messages.ReconfigureResourceResponse(),
        "RemoveResource": messages.RemoveResourceResponse(),
    }
    return grpc.method_handlers_generic_handler(
        "viam.module.v1.ModuleService",
        {name: _make_reply_handler(reply.SerializeToString()) for name, reply in replies.items()},
    )


def _make_handler_map() -> messages.HandlerMap:
    handlers = messages.HandlerMap()
    for (kind, subtype), service in SERVICES.items():
        rpc = ResourceRPCSubtype(proto_service=service)
        rpc.subtype.namespace, rpc.subtype.type, rpc.subtype.subtype = "rdk", kind, subtype
        handlers.handlers.add(subtype=rpc, models=[f"acme:bench:{NAME}"])
    return handlers


def _make_resource_handlers() -> list[grpc.GenericRpcHandler]:
    command = DoCommandResponse()
    command.result["answer"] = 42
    image = Image(source_name="color", mime_type="image/jpeg", image=os.urandom(PICTURE))
    methods: tuple[dict[str, grpc.RpcMethodHandler[Any, Any]], ...] = (
        {"DoCommand": _make_reply_handler(command.SerializeToString())},
        {"GetImages": _make_reply_handler(GetImagesResponse(images=[image]).SerializeToString())},
        {"GetPointCloudMap": grpc.unary_stream_rpc_method_handler(_stream_map)},
    )
    return [
        grpc.method_handlers_generic_handler(service, handlers)
        for service, handlers in zip(SERVICES.values(), methods, strict=True)
    ]


def _make_reply_handler(reply: bytes) -> grpc.RpcMethodHandler[Any, Any]:
    async def answer(_: bytes, __: Any) -> bytes:
        return reply

    return grpc.unary_unary_rpc_method_handler(answer)


async def _stream_map(request: bytes, _: Any) -> AsyncIterator[bytes]:
    _, size, total = GetPointCloudMapRequest.FromString(request).name.split("-")
    piece = _make_piece(int(size) * 1024)
    for _ in range(int(total) * 1_000_000 // len(piece)):
        yield piece


@functools.cache
def _make_piece(size: int) -> bytes:
    return GetPointCloudMapResponse(point_cloud_pcd_chunk=os.urandom(size)).SerializeToString()


if __name__ == "__main__":
    uvloop.run(main())
