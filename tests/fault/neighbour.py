r"""A client of resources of a machine with a broken module: it sends commands every 20 ms.

Run as ``neighbour.py <port> <name>…``, with the names of generic components. Each line on its
standard input ends a phase: it then prints, as JSON, how long the calls of that phase took.
"""

import asyncio
import json
import sys
import time
from typing import Any

import grpc.aio

EVERY = 0.02
DEADLINE = 60.0
MOST = 500
"""Calls under way at once."""
METHOD = "/viam.component.generic.v1.GenericService/DoCommand"


class NeighborClient:
    def __init__(self, port: int, names: list[str]) -> None:
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self._call: Any = self._channel.unary_unary(METHOD)
        self._requests = {name: _request(name) for name in names}
        self._calls: set[asyncio.Task[None]] = set()
        self.took: dict[str, list[float]] = {}
        self.failures: set[str] = set()
        self.begin()

    def begin(self) -> None:
        self.took = {name: [] for name in self._requests}
        self.failures = set()

    async def run(self) -> None:
        due = time.monotonic()
        while True:
            due += EVERY
            pause = max(0, due - time.monotonic())
            await asyncio.sleep(pause)
            if len(self._calls) >= MOST:
                self.failures.add("too many calls are under way")
                continue
            for name in self._requests:
                call = asyncio.ensure_future(self._one(name, self.took[name]))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)

    async def aclose(self) -> None:
        await self._channel.close()

    async def _one(self, name: str, took: list[float]) -> None:
        began = time.monotonic()
        try:
            await self._call(self._requests[name], timeout=DEADLINE)
        except grpc.aio.AioRpcError as error:
            self.failures.add(f"{name}: {error.code().name} {error.details()}")
        else:
            took.append(time.monotonic() - began)


def _request(name: str) -> bytes:
    """Return a DoCommandRequest with that name and an empty command."""
    return b"\x0a" + bytes((len(name),)) + name.encode() + b"\x12\x00"


async def main(port: int, names: list[str]) -> None:
    neighbor = NeighborClient(port, names)
    running = asyncio.ensure_future(neighbor.run())
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while await reader.readline():
        said = {"took": neighbor.took, "failures": sorted(neighbor.failures)}
        neighbor.begin()
        print(json.dumps(said), flush=True)
    running.cancel()
    await neighbor.aclose()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
