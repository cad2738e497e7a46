from __future__ import annotations

import asyncio
import socket
import struct

import pytest
from tests.support.waiting import wait_until

from cogwork.front.socket_relay import CHUNK_SIZE, SocketRelay

pytestmark = pytest.mark.both_loops


class Unlimited:
    held_size = 0

    def feed_client(self, data: memoryview) -> memoryview:
        return data

    def feed_server(self, data: memoryview) -> memoryview:
        return data


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


class Adding(Unlimited):
    """Adds something to what the server sends."""

    added = b""

    def feed_server(self, data: memoryview) -> memoryview:
        added, self.added = self.added, b""
        return memoryview(bytes(data) + added)


async def test_what_the_monitor_adds_is_sent_at_once_or_after_what_waits() -> None:
    client, public = socket.socketpair()
    private, server = socket.socketpair()
    for each in (client, public, private, server):
        each.setblocking(False)
    closed = asyncio.Event()
    monitor = Adding()
    relay = SocketRelay(public, private, memoryview(bytearray(CHUNK_SIZE)), monitor, closed.set)
    relay.start()
    loop = asyncio.get_running_loop()
    with client, server:
        async with asyncio.timeout(60):
            monitor.added = b"at once"
            relay.ask_monitor()
            assert await loop.sock_recv(client, 100) == b"at once"
            sending = asyncio.ensure_future(loop.sock_sendall(server, bytes(8 << 20)))
            await wait_until(lambda: relay.has_unsent)
            monitor.added = b"later"
            relay.ask_monitor()
            received = b""
            while len(received) < (8 << 20) + len(b"later"):
                received += await loop.sock_recv(client, CHUNK_SIZE)
            assert received.count(b"later") == 1
            await sending
            relay.close()
            await closed.wait()


async def test_client_that_is_cut_off_behind_its_data_is_noticed() -> None:
    """uvloop calls once for both, and does not report the error any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        public, _ = listener.accept()
    private, server = socket.socketpair()
    for each in (public, private, server):
        each.setblocking(False)
    closed = asyncio.Event()
    relay = SocketRelay(public, private, memoryview(bytearray(CHUNK_SIZE)), Unlimited(), closed.set)
    with server:
        relay.start()
        client.send(b"data")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        async with asyncio.timeout(60):
            assert await asyncio.get_running_loop().sock_recv(server, 100) == b"data"
        relay.check()
        async with asyncio.timeout(60):
            await closed.wait()
