"""The WebRTC clients of the server, from their offer to the end of their data channel."""

from __future__ import annotations

import asyncio
import itertools
import socket
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import ICECandidate

from cogwork.auth.roles import Role
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.limits.fair_places import Holder, choose_displaced
from cogwork.net import session_description
from cogwork.net.peer import OnClient, Peer
from cogwork.wire.table.handlers import HandlerTable, Metadata
from cogwork.wire.transports.data_channel import DataChannel
from cogwork.wire.transports.ice_servers import IceServer
from cogwork.wire.transports.unread_replies import UnreadReplies

MAX_PEERS = 64
_MAX_PEERS_PER_IDENTITY = 48
_RESERVED_FOR_OWNERS = 8
"""Number of places that only owners can take."""
_MAX_CANDIDATES = 50
"""Maximum candidates of a client. The effort to check them grows with the square of their
number."""
_MAX_CANDIDATE_LENGTH = 512
_SOCKET_BUFFER = 256 * 1024


class InvalidOffer(InvalidRequest):
    """The offer of a client cannot be used."""


class NoConnection(CogworkError):
    """No connection to a peer can be established."""

    status = "UNAVAILABLE"


class TooManyPeers(CogworkError):
    status = "RESOURCE_EXHAUSTED"


class PeerProcess(Protocol):
    """The WebRTC process, which holds the connections."""

    async def open(
        self, peer_id: str, offer: str, ice_servers: Sequence[IceServer], server: socket.socket
    ) -> str:
        """Return the answer to an offer. The process exchanges the client's messages over the
        socket."""

    def add_candidate(self, peer_id: str, text: str, mid: str | None, index: int | None) -> None:
        """Add a candidate of a client. An empty text means that no more candidates follow."""

    on_open: Callable[[str], None]
    """Called with the ID of a peer when its data channel is open."""
    on_key: Callable[[str], None]
    """Called with the ID of a video when a viewer needs a key frame."""
    on_bitrate: Callable[[str, int], None]
    """Called with the ID of a video and the bits per second that its viewers can receive."""

    def open_source(self, source_id: str, frames: socket.socket) -> None:
        """Register a video, whose encoded frames are read from the socket."""

    async def add_track(self, peer_id: str, name: str) -> str:
        """Offer a video to a client, and return the codec that it has chosen."""

    def attach(self, peer_id: str, name: str, source_id: str) -> None:
        """Show a video on a track of a client."""

    def remove_track(self, peer_id: str, name: str) -> None: ...


class WebRtcPeers:
    def __init__(
        self,
        process: PeerProcess,
        list_ice_servers: Callable[[], Sequence[IceServer]] = tuple,
        on_client: OnClient = lambda *_: None,
    ) -> None:
        """`list_ice_servers` returns the ICE servers of the machine, for itself and its clients."""
        self.process = process
        process.on_open = self._on_open
        self.list_ice_servers = list_ice_servers
        self._on_client = on_client
        self._table: HandlerTable | None = None
        self._channels: dict[str, DataChannel] = {}
        self._callers: dict[str, Holder] = {}
        """The holder of each place by peer ID, oldest first."""
        self._unopened: dict[str, Holder] = {}
        """The holders whose data channel is not open yet."""
        self._reactions: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._numbers = itertools.count(1)
        self._candidates: dict[str, int] = {}
        """The number of candidates that each peer has sent."""
        self._replies = UnreadReplies()

    def serve(self, table: HandlerTable) -> None:
        """Set the table that is served to the clients. Call this before the first call arrives."""
        self._table = table

    async def answer(
        self,
        offer: str,
        client: Peer,
        caller: Holder,
        metadata: Metadata,
        ice_servers: Sequence[IceServer] = (),
    ) -> tuple[str, str]:
        """Return the ID of a new peer and the answer to its offer, both encoded for signaling.

        `client` sent the offer, and `caller` has its identity and role. `metadata` contains its
        login and is added to its calls. `ice_servers` are used in addition to the machine's own
        servers.
        """
        try:
            sdp = session_description.decode(offer, "offer")
        except ValueError as error:
            raise InvalidOffer(str(error)) from None
        candidates = sdp.count("a=candidate:")
        if candidates > _MAX_CANDIDATES:
            raise InvalidOffer(f"the offer has more than {_MAX_CANDIDATES} candidates")
        self._make_room(caller)
        peer_id = str(uuid.uuid4())
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await self._open_channel(peer_id, client, caller, metadata, ours)
            self._candidates[peer_id] = candidates
            try:
                servers = (*self.list_ice_servers(), *ice_servers)
                answer = await self.process.open(peer_id, sdp, servers, theirs)
            except BaseException:
                channel.close()
                raise
        if peer_id not in self._callers:
            raise TooManyPeers(
                "this client was disconnected to make room for another client; try again later"
            )
        self._on_client(channel.client.address, True)
        self.on_end(peer_id, lambda: self._on_client(channel.client.address, False))
        return peer_id, session_description.encode("answer", answer)

    def add_candidate(self, peer_id: str, given: ICECandidate) -> None:
        """Add a candidate of a client. A candidate without text means that no more follow.

        Raise InvalidRequest for an unknown client.
        """
        if peer_id not in self._channels:
            raise InvalidRequest(f'no active offer for "{peer_id[:64]}"')
        self._candidates[peer_id] += 1
        is_short = len(given.candidate) + len(given.sdp_mid) <= _MAX_CANDIDATE_LENGTH
        if self._candidates[peer_id] > _MAX_CANDIDATES or not is_short:
            return  # ignored: the client's other candidates must suffice
        self.process.add_candidate(
            peer_id,
            given.candidate,
            given.sdp_mid if given.HasField("sdp_mid") else None,
            given.sdpm_line_index if given.HasField("sdpm_line_index") else None,
        )

    def close(self, peer_id: str) -> None:
        """Disconnect a peer, if it exists."""
        channel = self._channels.get(peer_id)
        if channel is not None:
            channel.close()

    def on_end(self, peer_id: str, react: Callable[[], None]) -> None:
        """Call a function when a peer disconnects, or immediately if the peer has already
        disconnected."""
        if peer_id in self._channels:
            self._reactions[peer_id].append(react)
        else:
            react()

    def find(self, address: str) -> str | None:
        """Return the ID of the peer with this address; None if it is not a WebRTC client."""
        return next(
            (key for key, each in self._channels.items() if each.client.address == address), None
        )

    def close_all(self) -> None:
        for channel in tuple(self._channels.values()):
            channel.close()

    def _make_room(self, caller: Holder) -> None:
        """Make room for a caller. If all places are taken, disconnect a client whose channel is not
        open.

        Raise TooManyPeers if there is no such client.
        """
        callers = self._callers.values()
        own = sum(each.identity == caller.identity for each in callers)
        lower = sum(each.rank < Role.OWNER for each in callers)
        is_full = len(callers) >= MAX_PEERS or (
            caller.rank < Role.OWNER and lower >= MAX_PEERS - _RESERVED_FOR_OWNERS
        )
        displaced = choose_displaced(self._unopened, caller) if is_full else None
        if own >= _MAX_PEERS_PER_IDENTITY or (is_full and displaced is None):
            raise TooManyPeers(
                f"this machine has {len(callers)} WebRTC clients, {own} of them yours; disconnect "
                "some, or connect directly"
            )
        if displaced is not None:
            self._free(displaced)
            self.close(displaced)

    def _on_open(self, peer_id: str) -> None:
        self._unopened.pop(peer_id, None)

    def _free(self, peer_id: str) -> None:
        self._callers.pop(peer_id, None)
        self._unopened.pop(peer_id, None)

    async def _open_channel(
        self,
        peer_id: str,
        client: Peer,
        caller: Holder,
        metadata: Metadata,
        connection: socket.socket,
    ) -> DataChannel:
        assert self._table is not None, "serve() must be called first"
        host = client.host_and_port[0]
        host = f"[{host}]" if ":" in host else host
        peer = client._replace(address=f"webrtc:{host}:{next(self._numbers)}", is_encrypted=True)

        def on_end() -> None:
            self._free(peer_id)
            if self._channels.pop(peer_id, None) is not None:
                self._candidates.pop(peer_id, None)
                for react in self._reactions.pop(peer_id, ()):
                    react()

        channel = DataChannel(self._table, peer, metadata, self._replies, on_end)
        self._channels[peer_id] = channel
        self._callers[peer_id] = self._unopened[peer_id] = caller
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            connection.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().create_connection(lambda: channel, sock=connection)
        except BaseException:
            connection.close()
            on_end()
            raise
        return channel
