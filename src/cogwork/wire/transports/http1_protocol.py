"""HTTP/1.1 on one connection, with deadlines for the client."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cogwork.front.peer_name import parse_socket_name
from cogwork.wire.transports.asgi import ABORT_KEY, CLIENT_KEY, SECURITY_HEADERS

_HEADERS_TIMEOUT = 10.0
"""Timeout in seconds for a client to send the head of a request."""
_WRITE_TIMEOUT = 10.0
"""Timeout in seconds for a client to read when the write buffer is full."""
_CHUNK_SIZE = 16 * 1024
"""Bytes that are parsed at once."""
_WRITE_BUFFER_LIMIT = 16 * 1024
"""Bytes that are buffered for a client before writing pauses."""


class Http1Protocol(H11Protocol):
    """A protocol that closes slow connections.

    A client must finish the head of its request in time, and read the response in time.
    """

    _headers_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_LIMIT)
        peer = parse_socket_name(transport.get_extra_info("peername"))
        self.app_state |= {ABORT_KEY: transport.abort, CLIENT_KEY: peer}
        super().connection_made(transport)
        self.client = peer.host_and_port
        self.server = ("localhost", 0)

    def data_received(self, data: bytes) -> None:
        # Parse the data in chunks, because h11 limits the size of a request's head only if the head
        # arrives in several chunks.
        for start in range(0, len(data), _CHUNK_SIZE):
            super().data_received(data[start : start + _CHUNK_SIZE])
            if self.transport.is_closing():
                return
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._cancel_headers_timer()
        elif self._headers_timer is None and not self.transport.is_closing():
            self._headers_timer = self.loop.call_later(_HEADERS_TIMEOUT, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_headers_timer()
        self._cancel_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._cancel_write_timer()
        self._write_timer = self.loop.call_later(_WRITE_TIMEOUT, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._cancel_write_timer()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Reject a malformed request, unless its response has already begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            if self.cycle is not None:
                self.cycle.disconnected = True  # prevents a second response from the application
            for event in _bad_request_events(msg):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def finish(self) -> None:
        """Close the connection after the response in progress."""
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
        else:
            cycle.keep_alive = False

    def _cancel_headers_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def _bad_request_events(text: str) -> list[Any]:
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Connection": "close",
        **SECURITY_HEADERS,
    }
    return [
        h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request"),
        h11.Data(data=text.encode()),
        h11.EndOfMessage(),
    ]
