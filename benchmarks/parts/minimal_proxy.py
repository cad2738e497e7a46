"""A proxy that only forwards bytes. Run as `minimal_proxy.py TARGET [PATH_OF_A_STREAM...]`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio

from cogwork.serving import process

OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


@contextmanager
def running_proxy(target: str, *streams: str) -> Iterator[str]:
    """Run the proxy in a separate process, and yield its address.

    `streams` are the methods that reply with a stream.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.parts.minimal_proxy", target, *streams],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        yield child.stdout.readline().strip()
        child.stdin.close()


class Forwarder(grpc.GenericRpcHandler):
    def __init__(self, channel: grpc.aio.Channel, streams: Collection[str]) -> None:
        self._channel = channel
        self._streams = streams
        self._handlers: dict[str, Any] = {}

    def service(self, handler_call_details: Any) -> Any:
        path = handler_call_details.method
        if path not in self._handlers:
            make = self._make_stream if path in self._streams else self._make_unary
            self._handlers[path] = make(path)
        return self._handlers[path]

    def _make_unary(self, path: str) -> Any:
        method: Any = self._channel.unary_unary(path)

        async def forward(request: bytes, _: Any) -> Any:
            return await method(request)

        return grpc.unary_unary_rpc_method_handler(forward)

    def _make_stream(self, path: str) -> Any:
        method: Any = self._channel.unary_stream(path)

        async def forward(request: bytes, _: Any) -> AsyncIterator[bytes]:
            async for piece in method(request):
                yield piece

        return grpc.unary_stream_rpc_method_handler(forward)


async def main(target: str, streams: Collection[str]) -> int:
    async with grpc.aio.insecure_channel(target, OPTIONS) as channel:
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((Forwarder(channel, streams),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(f"127.0.0.1:{port}", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await server.stop(None)
    return 0


if __name__ == "__main__":
    process.prepare(os.environ)
    sys.exit(process.run(main(sys.argv[1], sys.argv[2:])))
