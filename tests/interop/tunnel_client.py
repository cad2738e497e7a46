r"""A client of a tunnel that uses only the public SDK's messages, in a child process.

Run as `tunnel_client.py <how> <port> <destination> <bytes>`: it sends so many bytes, expects as
many, and prints the outcome as JSON. `how` is `grpc`, `grpclib` with the SDK's generated stub, or
`tcp` for the same without a tunnel; if it ends in `-held`, it waits for a line on standard input
before it reads anything.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import grpc
import grpc.aio
from grpclib import GRPCError
from grpclib.client import Channel
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.gen.robot.v1.robot_grpc import RobotServiceStub

PIECE = 1 << 18
_BLOCK = (1 << 20) + 13

Send = Callable[[memoryview], Awaitable[None]]
Receive = Callable[[], Awaitable[bytes]]


class Pattern:
    """A reproducible sequence of bytes for each seed."""

    def __init__(self, seed: str) -> None:
        block = Random(seed).randbytes(_BLOCK)
        self._twice = memoryview(block + block)
        self.at = 0

    def take(self, count: int) -> memoryview:
        begin = self.at % _BLOCK
        self.at += count
        return self._twice[begin : begin + count]

    def check(self, data: bytes | memoryview) -> None:
        for begin in range(0, len(data), PIECE):
            piece = data[begin : begin + PIECE]
            at = self.at
            assert self.take(len(piece)) == piece, f"other bytes than were sent, from {at} on"


async def send_all(send: Send, pattern: Pattern, count: int) -> None:
    while pattern.at < count:
        await send(pattern.take(min(PIECE, count - pattern.at)))


async def receive_all(receive: Receive, pattern: Pattern) -> None:
    while data := await receive():
        pattern.check(data)


@asynccontextmanager
async def tcp(destination: int) -> AsyncIterator[tuple[Send, Receive, Callable[[], Any]]]:
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", destination))
        buffer = memoryview(bytearray(PIECE))

        async def receive() -> memoryview:
            return buffer[: await loop.sock_recv_into(connection, buffer)]

        async def end() -> None:
            connection.shutdown(socket.SHUT_WR)

        yield lambda data: loop.sock_sendall(connection, data), receive, end  # type: ignore[misc]


@asynccontextmanager
async def by_grpc(
    port: int, destination: int
) -> AsyncIterator[tuple[Send, Receive, Callable[[], Any]]]:
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        call: Any = channel.stream_stream(
            "/viam.robot.v1.RobotService/Tunnel",
            request_serializer=robot.TunnelRequest.SerializeToString,
            response_deserializer=robot.TunnelResponse.FromString,
        )()

        async def receive() -> bytes:
            reply = await call.read()
            return b"" if reply is grpc.aio.EOF else reply.data

        await call.write(robot.TunnelRequest(destination_port=destination))
        yield lambda data: call.write(request(data)), receive, call.done_writing


@asynccontextmanager
async def by_grpclib(
    port: int, destination: int
) -> AsyncIterator[tuple[Send, Receive, Callable[[], Any]]]:
    channel = Channel("localhost", port)
    try:
        async with RobotServiceStub(channel).Tunnel.open() as stream:

            async def receive() -> bytes:
                reply = await stream.recv_message()
                return b"" if reply is None else reply.data

            await stream.send_message(robot.TunnelRequest(destination_port=destination))
            yield lambda data: stream.send_message(request(data)), receive, stream.end
    finally:
        channel.close()


def request(data: memoryview) -> robot.TunnelRequest:
    return robot.TunnelRequest(data=data.tobytes())


async def converse(how: str, port: int, destination: int, count: int) -> dict[str, Any]:
    kind, _, held = how.partition("-")
    opened: Any = {
        "tcp": lambda: tcp(destination),
        "grpc": lambda: by_grpc(port, destination),
        "grpclib": lambda: by_grpclib(port, destination),
    }[kind]
    up, down = Pattern("up"), Pattern("down")
    begun = time.monotonic()
    async with opened() as (send, receive, end):

        async def send_pattern() -> None:
            await send_all(send, up, count)
            await end()

        async def check_received() -> None:
            if held:
                await asyncio.to_thread(sys.stdin.readline)
            await receive_all(receive, down)

        await asyncio.gather(send_pattern(), check_received())
    return {"sent": up.at, "received": down.at, "seconds": time.monotonic() - begun}


async def main() -> None:
    how, port, destination, count = sys.argv[1], *map(int, sys.argv[2:])
    try:
        report = await converse(how, port, destination, count)
    except grpc.aio.AioRpcError as error:
        report = {"status": error.code().name, "words": error.details()}
    except GRPCError as error:
        report = {"status": error.status.name, "words": error.message}
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
