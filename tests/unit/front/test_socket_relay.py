from __future__ import annotations

import asyncio
import socket

from cogwork.front.socket_relay import CHUNK_SIZE, SocketRelay


class Unlimited:
    def feed_client(self, data: memoryview) -> int:
        return len(data)

    feed_server = feed_client


async def test_last_reply_of_a_closed_server_reaches_a_client_that_still_sends() -> None:
    client, public = socket.socketpair()
    private, server = socket.socketpair()
    for each in (client, public, private):
        each.setblocking(False)
    closed = asyncio.Event()
    buffer = memoryview(bytearray(CHUNK_SIZE))
    relay = SocketRelay(public, private, buffer, Unlimited(), closed.set)
    with client:
        with server:
            server.sendall(b"too large")
        client.send(bytes(10_000))
        relay.start()
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            assert await loop.sock_recv(client, 100) == b"too large"
            assert await loop.sock_recv(client, 100) == b""
    async with asyncio.timeout(60):
        await closed.wait()
