from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from tests.support.waiting import run_others
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import ICECandidate

from cogwork.auth.roles import Role
from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.fair_places import Holder
from cogwork.net import session_description
from cogwork.net.peer import Peer
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.ice_servers import IceServer
from cogwork.wire.transports.webrtc_peers import MAX_PEERS, InvalidOffer, TooManyPeers, WebRtcPeers

SDP = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=fingerprint:sha-256 AB:CD\r\n"
PER_IDENTITY = 48
FOR_OWNERS = 8
OFFER = session_description.encode("offer", SDP)


class Process:
    """Stands in for the WebRTC process: it accepts every offer, and keeps the sockets."""

    def __init__(self) -> None:
        self.on_open: Callable[[str], None] = lambda _: None
        self.on_key: Callable[[str], None] = lambda _: None
        self.on_bitrate: Callable[[str, int], None] = lambda *_: None
        self.connections: dict[str, socket.socket] = {}
        self.candidates: list[str] = []
        self.gate: asyncio.Event | None = None
        """Holds up the answers."""
        self.has_offer = asyncio.Event()

    async def open(
        self, peer_id: str, sdp: str, _: Sequence[IceServer], connection: socket.socket
    ) -> str:
        if "broken" in sdp:
            raise InvalidRequest("the offer is broken")
        self.connections[peer_id] = connection.dup()
        self.has_offer.set()
        if self.gate is not None:
            await self.gate.wait()
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

    async def connect(
        self, identity: str = "alice", offer: str = OFFER, role: Role = Role.OWNER
    ) -> str:
        client = Peer("ipv4:192.0.2.1:1", is_encrypted=True)
        peer_id, _ = await self.peers.answer(offer, client, Holder(identity, role), {})
        return peer_id

    async def fill(self, role: Role, identities: int) -> list[str]:
        """Take all places that clients of this lower role get."""
        return [
            await self.connect(f"client {number % identities}", role=role)
            for number in range(MAX_PEERS - FOR_OWNERS)
        ]

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


async def test_one_identity_cannot_take_all_places(site: Site) -> None:
    for _ in range(PER_IDENTITY):
        await site.connect()
    with pytest.raises(TooManyPeers, match="48 of them yours; disconnect some"):
        await site.connect()
    for number in range(MAX_PEERS - PER_IDENTITY):
        await site.connect(f"client {number}")
    for peer_id in site.process.connections:
        site.process.on_open(peer_id)
    with pytest.raises(TooManyPeers, match=f"{MAX_PEERS} WebRTC clients, 0 of them"):
        await site.connect("another")
    await site.disconnect(next(iter(site.process.connections)))
    await site.connect("another")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_lower_roles_do_not_keep_owners_out(site: Site, role: Role) -> None:
    first, *others = await site.fill(role, identities=56)
    with pytest.raises(TooManyPeers, match="56 WebRTC clients, 0 of them yours"):
        await site.connect("another", role=role)
    for number in range(FOR_OWNERS):
        await site.connect(f"owner {number}")
    assert await is_connected(site, first)
    await site.connect("last owner")
    assert not await is_connected(site, first)
    # Connections that are open end only by themselves.
    for peer_id in others:
        site.process.on_open(peer_id)
        assert await is_connected(site, peer_id)
    with pytest.raises(TooManyPeers, match="64 WebRTC clients"):
        await site.connect("last owner")


async def test_places_of_one_role_are_shared(site: Site) -> None:
    opened, *others = await site.fill(Role.OPERATOR, identities=2)
    site.process.on_open(opened)
    third = [await site.connect("third", role=Role.OPERATOR) for _ in range(4)]
    connected = [await is_connected(site, each) for each in others]
    assert connected == [False] * 4 + [True] * 51
    assert await is_connected(site, opened)
    with pytest.raises(TooManyPeers, match="0 of them yours"):
        await site.connect("viewer", role=Role.VIEWER)
    assert all([await is_connected(site, each) for each in third])


async def test_offer_that_loses_its_place_while_it_is_answered_is_refused(site: Site) -> None:
    gate = site.process.gate = asyncio.Event()
    slow = asyncio.create_task(site.connect("operator", role=Role.OPERATOR))
    async with asyncio.timeout(60):
        await site.process.has_offer.wait()
    site.process.gate = None
    for number in range(MAX_PEERS):
        await site.connect(f"owner {number}")
    gate.set()
    with pytest.raises(
        TooManyPeers, match="this client was disconnected to make room for another client"
    ):
        await slow


async def is_connected(site: Site, peer_id: str) -> bool:
    ended = asyncio.Event()
    await run_others()
    site.peers.on_end(peer_id, ended.set)
    return not ended.is_set()


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
