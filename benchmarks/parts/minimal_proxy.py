"""A proxy that only forwards the bytes of unary calls. Run as `minimal_proxy.py TARGET`."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import grpc
import grpc.aio

from cogwork.serving import process

OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


class Forwarder(grpc.GenericRpcHandler):
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._handlers: dict[str, Any] = {}

    def service(self, handler_call_details: Any) -> Any:
        path = handler_call_details.method
        if path not in self._handlers:
            self._handlers[path] = self._make_handler(path)
        return self._handlers[path]

    def _make_handler(self, path: str) -> Any:
        method: Any = self._channel.unary_unary(path)

        async def forward(request: bytes, _: Any) -> Any:
            return await method(request)

        handler: Any = grpc.unary_unary_rpc_method_handler(forward)
        return handler


async def main(target: str) -> int:
    async with grpc.aio.insecure_channel(target, OPTIONS) as channel:
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((Forwarder(channel),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(f"127.0.0.1:{port}", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await server.stop(None)
    return 0


if __name__ == "__main__":
    process.prepare(os.environ)
    sys.exit(process.run(main(sys.argv[1])))
