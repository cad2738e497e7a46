from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import ICECandidate

from cogwork.core.errors import InvalidRequest
from cogwork.front.peer_name import Peer
from cogwork.webrtc import session_description
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.ice_servers import IceServer
from cogwork.wire.webrtc_peers import MAX_PEERS, InvalidOffer, TooManyPeers, WebRtcPeers

SDP = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"
PER_HOST = 48
OFFER = session_description.encode("offer", SDP)


class Process:
    """Stands in for the WebRTC process: it accepts every offer, and keeps the sockets."""

    def __init__(self) -> None:
        self.on_key: Callable[[str], None] = lambda _: None
        self.on_bitrate: Callable[[str, int], None] = lambda *_: None
        self.connections: dict[str, socket.socket] = {}
        self.candidates: list[str] = []

    async def open(
        self, peer_id: str, sdp: str, _: Sequence[IceServer], connection: socket.socket
    ) -> str:
        if "broken" in sdp:
            raise InvalidRequest("the offer is broken")
        self.connections[peer_id] = connection.dup()
        return SDP

    def add_candidate(self, _: str, text: str, *__: Any) -> None:
        self.candidates.append(text)

    def open_source(self, *_: Any) -> None: ...

    async def add_track(self, *_: Any) -> str:
        return "H264"

    def attach(self, *_: Any) -> None: ...

    def remove_track(self, *_: Any) -> None: ...


class Site:
    def __init__(self) -> None:
        self.process = Process()
        self.clients: list[tuple[str, bool]] = []
        self.peers = WebRtcPeers(
            self.process, on_client=lambda *client: self.clients.append(client)
        )
        self.peers.serve(HandlerTable())

    async def connect(self, host: str = "192.0.2.1", offer: str = OFFER) -> str:
        peer_id, _ = await self.peers.answer(offer, Peer(f"ipv4:{host}:1", is_encrypted=True), {})
        return peer_id

    async def disconnect(self, peer_id: str) -> None:
        ended = asyncio.Event()
        self.peers.on_end(peer_id, ended.set)
        self.process.connections.pop(peer_id).close()
        async with asyncio.timeout(60):
            await ended.wait()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    yield site
    for peer_id in tuple(site.process.connections):
        await site.disconnect(peer_id)


async def test_clients_have_addresses_of_their_own(site: Site) -> None:
    first, second = await site.connect(), await site.connect()
    assert site.clients == [("webrtc:192.0.2.1:1", True), ("webrtc:192.0.2.1:2", True)]
    assert site.peers.find("webrtc:192.0.2.1:2") == second
    assert site.peers.find("ipv4:192.0.2.1:1") is None
    await site.disconnect(first)
    assert site.clients[-1] == ("webrtc:192.0.2.1:1", False)
    assert site.peers.find("webrtc:192.0.2.1:1") is None


async def test_one_host_cannot_take_all_places(site: Site) -> None:
    for _ in range(PER_HOST):
        await site.connect()
    with pytest.raises(TooManyPeers, match="48 of them on your computer; disconnect some"):
        await site.connect()
    for number in range(MAX_PEERS - PER_HOST):
        await site.connect(f"198.51.100.{number}")
    with pytest.raises(TooManyPeers, match=f"{MAX_PEERS} WebRTC clients, 0 of them"):
        await site.connect("203.0.113.1")
    await site.disconnect(next(iter(site.process.connections)))
    await site.connect("203.0.113.1")


async def test_refused_offers_take_no_place(site: Site) -> None:
    broken = session_description.encode("offer", f"{SDP}a=broken\r\n")
    for _ in range(2 * MAX_PEERS):
        with pytest.raises(InvalidRequest, match="broken"):
            await site.connect(offer=broken)
    candidate = "a=candidate:1 1 udp 1 192.0.2.1 5 typ host\r\n"
    with pytest.raises(InvalidOffer, match="candidates"):
        await site.connect(offer=session_description.encode("offer", SDP + 1000 * candidate))
    with pytest.raises(InvalidOffer, match="base64"):
        await site.connect(offer="?")
    await site.connect()
    assert len(site.clients) == 1


async def test_candidates_are_bounded(site: Site) -> None:
    peer_id = await site.connect()
    for _ in range(1000):
        site.peers.add_candidate(peer_id, ICECandidate(candidate="candidate:1"))
    assert 0 < len(site.process.candidates) < 200
    site.process.candidates.clear()
    other = await site.connect()
    site.peers.add_candidate(other, ICECandidate(candidate="x" * 100_000))
    assert site.process.candidates == []
    with pytest.raises(InvalidRequest, match='no active offer for "nobody"'):
        site.peers.add_candidate("nobody", ICECandidate())
