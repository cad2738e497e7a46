"""The WebRTC process, which holds the connections to WebRTC peers and relays their messages.

A peer is a client of this machine, or another machine that this machine is a client of. The process
is separate because a bulk transfer over WebRTC takes most of a core, which would delay all other
clients of the server. It does not interpret calls: for each peer, the server passes a socket, on
which both processes exchange the messages of the data channel.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import aioice.ice
from aiortc import RTCIceServer

from cogwork.helpers.control_channel import Message
from cogwork.helpers.run import run
from cogwork.webrtc.aiortc_internals import accept_any_order, allow_slow_networks
from cogwork.webrtc.host_addresses import host_addresses
from cogwork.webrtc.peer import NotConnected, WebRtcPeer
from cogwork.webrtc.viewers import Viewers

_CHECK_INTERVAL = 1.0
_NICENESS = 5
"""A lower priority than the server's. If the processors are busy, bulk transfers wait for the calls
of other clients. Work that needs little time, such as a short call, is not delayed."""
_CLEANING_DELAY = 2.0
"""Seconds until the memory of ended peers is freed. The memory of several peers is freed
together."""

_log = logging.getLogger("rdk.networking")


class WebRtcWorker:
    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._peers: dict[str, WebRtcPeer] = {}
        self._viewers = Viewers(send)
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleaning: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_handle_error)
        self._checking = loop.create_task(self._check_peers())
        # Include the loopback address, which aioice omits: clients on this computer use it.
        aioice.ice.get_host_addresses = host_addresses
        allow_slow_networks()
        accept_any_order()
        for library in ("aiortc", "aioice"):
            logging.getLogger(library).setLevel(logging.WARNING)

    def on_message(self, message: Message, sockets: list[socket.socket]) -> None:
        match message:
            case {"open": peer_id, "offer": offer, "ice_servers": servers}:
                self._start(self._open(peer_id, offer, servers, sockets[0]))
            case {"dial": peer_id, "ice_servers": servers}:
                self._start(self._dial(peer_id, servers, sockets[0]))
            case {"accept": peer_id, "answer": answer}:
                self._start(self._accept(peer_id, answer))
            case {"candidate": text, "peer": peer_id, "mid": mid, "index": index}:
                peer = self._peers.get(peer_id)
                if peer is not None:
                    self._start(self._add_candidate(peer, text, mid, index))
            case {"source": source_id}:
                self._start(self._viewers.open_source(source_id, sockets[0]))
            case {"add_track": name, "peer": peer_id, "request": request}:
                self._start(self._add_track(request, peer_id, name))
            case {"attach": name, "peer": peer_id, "to": source_id}:
                self._viewers.attach(peer_id, name, source_id)
            case {"remove_track": name, "peer": peer_id}:
                self._start(self._remove_track(peer_id, name))

    async def aclose(self) -> None:
        self._checking.cancel()
        for peer in tuple(self._peers.values()):
            peer.end()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _open(
        self, peer_id: str, offer: str, servers: list[Message], connection: socket.socket
    ) -> None:
        peer = self._create_peer(peer_id, servers, connection)
        if peer is not None:
            await self._report(peer_id, peer, "answer", peer.answer(offer, connection))

    async def _dial(self, peer_id: str, servers: list[Message], connection: socket.socket) -> None:
        peer = self._create_peer(peer_id, servers, connection)
        if peer is not None:
            await self._report(peer_id, peer, "offer", peer.offer(connection))

    async def _accept(self, peer_id: str, answer: str) -> None:
        peer = self._peers.get(peer_id)
        if peer is None:
            self._send({"failed": peer_id, "error": "the connection was closed"})
        else:
            await self._report(peer_id, peer, "opened", peer.accept(answer))

    def _create_peer(
        self, peer_id: str, servers: list[Message], connection: socket.socket
    ) -> WebRtcPeer | None:
        try:
            ice_servers = [RTCIceServer(**server) for server in servers]
            on_open = partial(self._send, {"connected": peer_id})
            peer = WebRtcPeer(ice_servers, on_open, partial(self._on_end, peer_id))
        except Exception as error:
            connection.close()
            self._send({"failed": peer_id, "error": f"an ICE server is not valid: {error}"})
            return None
        self._peers[peer_id] = peer
        return peer

    async def _report(
        self, peer_id: str, peer: WebRtcPeer, event: str, work: Coroutine[Any, Any, str | None]
    ) -> None:
        """Send the result of a connection step, or the reason for its failure."""
        try:
            result = await work
        except NotConnected as error:
            self._send({"failed": peer_id, "error": str(error)})
        except Exception as error:
            # Libraries raise many types of errors for an invalid description.
            self._send({"failed": peer_id, "error": f"{type(error).__name__}: {error}"})
            peer.end()
        else:
            self._send({event: peer_id, "sdp": result})

    async def _add_track(self, request: int, peer_id: str, name: str) -> None:
        peer = self._peers.get(peer_id)
        if peer is None:
            self._send({"request": request, "error": "the client has disconnected"})
            return
        try:
            sent = await peer.videos.add_track(name)
        except Exception as error:
            self._send({"request": request, "error": str(error) or type(error).__name__})
            return
        self._viewers.add(peer_id, name, sent)
        self._send({"request": request, "codec": sent.codec})

    async def _remove_track(self, peer_id: str, name: str) -> None:
        self._viewers.remove(peer_id, name)
        peer = self._peers.get(peer_id)
        if peer is not None:
            try:
                await peer.videos.remove_track(name)
            except Exception as error:
                _log.debug("cannot notify a WebRTC client that a video ended: %s", error)

    async def _check_peers(self) -> None:
        """Disconnect peers that send too much, and report the bitrates of viewers' networks.

        Run until cancelled.
        """
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            for peer in [each for each in self._peers.values() if each.is_overloaded]:
                _log.warning("disconnecting a WebRTC peer: it sends more than flow control allows")
                peer.end()
            self._viewers.report_bitrates()

    async def _add_candidate(
        self, peer: WebRtcPeer, text: str, mid: str | None, index: int | None
    ) -> None:
        try:
            await peer.add_candidate(text, mid, index)
        except Exception as error:
            _log.debug("ignored an invalid ICE candidate of a WebRTC peer: %s", error)

    def _on_end(self, peer_id: str) -> None:
        peer = self._peers.pop(peer_id, None)
        if peer is not None:
            self._viewers.remove_all(peer_id)
            self._start(self._close(peer))

    async def _close(self, peer: WebRtcPeer) -> None:
        await peer.close()
        if self._cleaning is None:
            loop = asyncio.get_running_loop()
            self._cleaning = loop.call_later(_CLEANING_DELAY, self._clean_up)

    def _clean_up(self) -> None:
        """Free closed connections, which aiortc leaves in reference cycles.

        Each is large but consists of few objects, so the garbage collector would not run by itself.
        """
        self._cleaning = None
        gc.collect()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _handle_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error in a task or callback of a library."""
    error = context.get("exception")
    if isinstance(error, ConnectionError):
        # This is normal: aiortc continues to send after a peer has closed its connection.
        _log.debug("a WebRTC peer has disconnected: %s", error)
    else:
        loop.default_exception_handler(context)


if __name__ == "__main__":
    os.nice(_NICENESS)
    run(WebRtcWorker)
