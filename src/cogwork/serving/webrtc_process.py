"""Runs the WebRTC process. It starts with the first peer, and runs until the server stops."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import time
from collections.abc import Callable, Sequence

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.helpers.control_channel import Message
from cogwork.helpers.process import ChildProcess
from cogwork.wire.transports.ice_servers import IceServer
from cogwork.wire.transports.webrtc_peers import InvalidOffer, NoConnection

_ANSWER_TIMEOUT = 10.0
"""Timeout in seconds to start the process and answer an offer."""
_OPEN_TIMEOUT = 20.0
"""Timeout in seconds from an answer until its data channel is open."""
_MIN_START_INTERVAL = 2.0
"""Minimum seconds between two starts, so that a client that crashes the process cannot overload the
computer."""
_TRACK_TIMEOUT = 15.0
"""Timeout in seconds for a client to accept a video."""

_log = logging.getLogger("rdk.networking")


class CannotAnswer(CogworkError):
    """The WebRTC process cannot answer."""

    status = "UNAVAILABLE"


class NoVideo(CogworkError):
    """A client does not accept a video."""

    status = "FAILED_PRECONDITION"


class WebRtcProcess:
    def __init__(self) -> None:
        self._process = ChildProcess("WebRTC", "cogwork.webrtc.main", self._on_message)
        self._running: asyncio.Task[None] | None = None
        self._started_at = -_MIN_START_INTERVAL
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._requests: dict[int, asyncio.Future[str]] = {}
        self._numbers = itertools.count(1)
        self.on_open: Callable[[str], None] = lambda _: None
        self.on_key: Callable[[str], None] = lambda _: None
        self.on_bitrate: Callable[[str, int], None] = lambda *_: None

    async def open(
        self, peer_id: str, offer: str, ice_servers: Sequence[IceServer], server: socket.socket
    ) -> str:
        """Return the answer to an offer. The WebRTC process takes `server`, its end of a socket to
        the server.

        Raise InvalidOffer or CannotAnswer.
        """
        servers = [each._asdict() for each in ice_servers]
        message: Message = {"open": peer_id, "offer": offer, "ice_servers": servers}
        try:
            return await self._request(peer_id, message, _ANSWER_TIMEOUT, [server])
        except NoConnection as error:
            raise InvalidOffer(f"the offer cannot be used: {error}") from None

    async def dial(
        self, peer_id: str, ice_servers: Sequence[IceServer], server: socket.socket
    ) -> str:
        """Return an offer for another machine. Call `accept` with its answer. `server` is used as
        in `open`.

        Raise NoConnection or CannotAnswer.
        """
        message: Message = {
            "dial": peer_id,
            "ice_servers": [each._asdict() for each in ice_servers],
        }
        return await self._request(peer_id, message, _ANSWER_TIMEOUT, [server])

    async def accept(self, peer_id: str, answer: str) -> None:
        """Apply the answer to an offer, and wait until the data channel is open.

        Raise NoConnection or CannotAnswer.
        """
        await self._request(peer_id, {"accept": peer_id, "answer": answer}, _OPEN_TIMEOUT)

    async def _request(
        self,
        peer_id: str,
        message: Message,
        timeout: float,
        sockets: Sequence[socket.socket] = (),
    ) -> str:
        """Send a request about a peer to the process, and return its reply."""
        if sockets:
            self._ensure_running()
        elif not self._process.is_running:
            raise CannotAnswer("the WebRTC process ended; try again")
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[peer_id] = reply
        try:
            self._process.send(message, sockets)
            async with asyncio.timeout(timeout):
                return await reply
        except OSError as error:
            if not isinstance(error, TimeoutError):
                raise CannotAnswer(f"cannot reach the WebRTC process: {os_reason(error)}") from None
            raise CannotAnswer(
                f"the WebRTC process did not answer in {timeout:g}s; try again"
            ) from None
        finally:
            del self._answers[peer_id]

    def add_candidate(self, peer_id: str, text: str, mid: str | None, index: int | None) -> None:
        self._process.send({"candidate": text, "peer": peer_id, "mid": mid, "index": index})

    def open_source(self, source_id: str, frames: socket.socket) -> None:
        self._process.send({"source": source_id}, [frames])

    async def add_track(self, peer_id: str, name: str) -> str:
        """Add a video and return its codec. Raise NoVideo if the client does not accept the
        video."""
        request = next(self._numbers)
        codec: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._requests[request] = codec
        self._process.send({"add_track": name, "peer": peer_id, "request": request})
        try:
            async with asyncio.timeout(_TRACK_TIMEOUT):
                return await codec
        except TimeoutError:
            raise NoVideo("the WebRTC process did not add the stream in time; try again") from None
        finally:
            del self._requests[request]

    def attach(self, peer_id: str, name: str, source_id: str) -> None:
        self._process.send({"attach": name, "peer": peer_id, "to": source_id})

    def remove_track(self, peer_id: str, name: str) -> None:
        self._process.send({"remove_track": name, "peer": peer_id})

    async def aclose(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _ensure_running(self) -> None:
        if self._process.is_running:
            return
        now = time.monotonic()
        if now - self._started_at < _MIN_START_INTERVAL:
            raise CannotAnswer("the WebRTC process has just ended; try again in a few seconds")
        self._started_at = now
        ended = asyncio.Event()
        try:
            self._process.start(ended)
        except OSError as error:
            raise CannotAnswer(f"cannot start the WebRTC process: {os_reason(error)}") from None
        self._running = asyncio.create_task(self._run(ended))

    async def _run(self, ended: asyncio.Event) -> None:
        waiting = asyncio.ensure_future(self._process.wait(ended))
        try:
            await ended.wait()
            # Fail the pending requests before the process is reaped, because a new one may start
            # meanwhile.
            self._fail_pending()
        finally:
            if not ended.is_set():
                waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def _fail_pending(self) -> None:
        _log.error("the WebRTC process ended; its clients are disconnected")
        for pending in (*self._answers.values(), *self._requests.values()):
            if not pending.done():
                pending.set_exception(CannotAnswer("the WebRTC process ended; try again"))

    def _on_message(self, message: Message, _: list[socket.socket]) -> None:
        match message:
            case (
                {"answer": peer_id, "sdp": sdp}
                | {"offer": peer_id, "sdp": sdp}
                | {"opened": peer_id, "sdp": sdp}
            ):
                answer = self._answers.get(peer_id)
                if answer is not None and not answer.done():
                    answer.set_result(sdp)
            case {"failed": peer_id, "error": error}:
                answer = self._answers.get(peer_id)
                if answer is not None and not answer.done():
                    answer.set_exception(NoConnection(error))
            case {"connected": peer_id}:
                self.on_open(peer_id)
            case {"request": request, "codec": codec}:
                pending = self._requests.get(request)
                if pending is not None and not pending.done():
                    pending.set_result(codec)
            case {"request": request, "error": error}:
                pending = self._requests.get(request)
                if pending is not None and not pending.done():
                    pending.set_exception(NoVideo(f"the stream cannot be added: {error}"))
            case {"key": source_id}:
                self.on_key(source_id)
            case {"bitrate": bitrate, "of": source_id}:
                self.on_bitrate(source_id, bitrate)
