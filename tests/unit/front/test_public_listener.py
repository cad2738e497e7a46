"""The public port tells the servers behind it who their clients are."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.network.proxy_header import encode_v2, encode_v2_unnamed

from cogwork.front.peer_name import parse_socket_name
from cogwork.front.public_listener import PublicListener
from cogwork.front.relay import GrpcRelay, Relay
from cogwork.net.peer import Peer

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class HttpPort:
    """A listener with a server behind it that keeps who has connected."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.peers: asyncio.Queue[Peer] = asyncio.Queue()

    async def find_peer(self, header: bytes) -> Peer:
        """Send a request after a header, and return its client as the server sees it."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(header + REQUEST)
        try:
            return await asyncio.wait_for(self.peers.get(), 10)
        finally:
            writer.close()
            await writer.wait_closed()


@pytest.fixture
async def trusting_port(tmp_path: Path) -> AsyncIterator[HttpPort]:
    """A port that trusts a proxy on this computer."""
    public = socket.create_server(("127.0.0.1", 0))
    port = HttpPort(public.getsockname()[1])

    async def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port.peers.put_nowait(parse_socket_name(writer.get_extra_info("peername")))
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_unix_server(on_connection, tmp_path / "http")
    listener = PublicListener(GrpcRelay(tmp_path / "grpc"), Relay(tmp_path / "http"))
    listener.trust_proxies(["127.0.0.1"])
    listener.serve([public])
    try:
        yield port
    finally:
        await listener.aclose()
        server.close()
        await server.wait_closed()


async def test_client_named_by_a_proxy_is_at_its_own_address(trusting_port: HttpPort) -> None:
    peer = await trusting_port.find_peer(encode_v2("192.0.2.7", 50000))
    assert peer == Peer("ipv4:192.0.2.7:50000")


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN 127.0.0.1 127.0.0.1 1 2\r\n",
        encode_v2_unnamed(0x00),
        encode_v2_unnamed(0x31, bytes(216)),
    ],
)
async def test_client_that_a_proxy_does_not_name_is_not_on_this_computer(
    trusting_port: HttpPort, header: bytes
) -> None:
    peer = await trusting_port.find_peer(header)
    assert not peer.is_local
    assert not peer.is_confidential
    host, port = peer.host_and_port
    assert host == "0.0.0.0"
    assert port != 0


async def test_proxy_itself_is_on_this_computer(trusting_port: HttpPort) -> None:
    peer = await trusting_port.find_peer(encode_v2("127.0.0.1", 1, is_local=True))
    assert peer.is_local
    assert peer.host_and_port[0] == "127.0.0.1"
