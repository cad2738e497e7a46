"""Calls that are cancelled faster than the server cleans up do not let it refuse others."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from grpclib.const import Cardinality
from hyperframe.frame import DataFrame, Frame, PingFrame, RstStreamFrame
from tests.support.network import http2_frames as frames

from cogwork.wire.table.handlers import HandlerTable, Method, Stream
from cogwork.wire.transports.grpc import grpc_server

BLOCK, QUICK = "/test/Block", "/test/Quick"
CANCELLED = 3000
"""More than the streams that may be open at once."""
DEADLINE = 30.0


async def test_backlog_of_cancelled_calls_refuses_nobody(tmp_path: Path) -> None:
    go_on = threading.Event()

    async def block(stream: Stream) -> None:
        await stream.recv_message()
        go_on.wait(DEADLINE)  # the loop, so that nothing is cleaned up
        await stream.send_message(b"")

    async def reply(stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_message(b"ok")

    table = HandlerTable()
    methods = [Method(BLOCK, Cardinality.UNARY_UNARY, block)]
    methods.append(Method(QUICK, Cardinality.UNARY_UNARY, reply))
    table.add("test", lambda: methods)
    server = grpc_server(table)
    server.add_insecure_port(f"unix:{tmp_path}/s")
    await server.start()
    try:
        refused = await asyncio.to_thread(cancel_and_call, tmp_path / "s", go_on)
    finally:
        await server.stop(0)
    assert refused == 0


def cancel_and_call(path: Path, go_on: threading.Event) -> int:
    """Cancel calls while the server is blocked, call once more, and return how many it refused."""
    last = 2 * CANCELLED + 3
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(DEADLINE)
        client.connect(str(path))
        client.sendall(frames.opening() + frames.settings(ack=True))
        found = read_frames(client)
        next(found)  # its settings: it can be called
        client.sendall(frames.call(1, BLOCK))
        for stream in range(3, last, 2):
            client.sendall(frames.call(stream, QUICK) + frames.reset(stream))
        client.sendall(frames.call(last, QUICK) + frames.ping())
        refused = 0
        for frame in found:
            if isinstance(frame, PingFrame):
                go_on.set()  # it has received everything
            refused += isinstance(frame, RstStreamFrame)
            if frame.stream_id == last and isinstance(frame, DataFrame | RstStreamFrame):
                break
        return refused


def read_frames(client: socket.socket) -> Iterator[Frame]:
    received = b""
    while True:
        found, received = frames.split(received)
        yield from found
        received += client.recv(1 << 16)
