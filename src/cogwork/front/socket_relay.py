"""Relays bytes between two sockets, in both directions.

Every byte of every call passes through here, so the relay reads into one reused buffer and writes
immediately. It copies only the bytes that the other side does not accept yet, and stops reading
until they are sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from cogwork.front.http2_frames import ProtocolViolation

CHUNK_SIZE = 256 * 1024
_INITIAL_CHUNK_SIZE = 16 * 1024
"""Bytes per read at first, and after a read whose bytes the target did not accept at once. Such
bytes are copied, so the reads are small."""
_LARGE_BACKLOG = 8 * 1024 * 1024
"""If more bytes than this are held for slow clients, every read is small."""
_LINGER_TIMEOUT = 1.0
"""Seconds that the client gets to close its side after the server has closed."""
_RETRY_DELAY = 0.05
"""Seconds until the relay tries again to forward held-back bytes, unless a reply triggers it
earlier."""
_MAX_HELD_BACK = 256 * 1024
"""Number of held-back bytes above which the relay stops reading."""


class Backlog:
    """Counts the bytes that all relays hold for clients that do not read."""

    def __init__(self) -> None:
        self.size = 0

    @property
    def is_large(self) -> bool:
        return self.size > _LARGE_BACKLOG


class StreamSocket(Protocol):
    """The methods of a non-blocking socket that the relay uses."""

    def fileno(self) -> int: ...

    def recv_into(self, buffer: memoryview) -> int: ...

    def send(self, data: memoryview) -> int: ...

    def shutdown(self, how: int) -> None: ...

    def close(self) -> None: ...


class ByteMonitor(Protocol):
    """Observes the bytes in both directions, and decides which bytes are forwarded."""

    @property
    def held_size(self) -> int:
        """Bytes of the client that are held back."""

    def feed_client(self, data: memoryview) -> memoryview:
        """Return the bytes to forward. Raise ProtocolViolation if the connection must be closed."""

    def feed_server(self, data: memoryview) -> memoryview: ...


class SocketRelay:
    """Relays one client's connection.

    Relays may share the buffer: it holds nothing between iterations of the event loop.
    """

    def __init__(
        self,
        public: StreamSocket,
        private: StreamSocket,
        buffer: memoryview,
        monitor: ByteMonitor,
        on_close: Callable[[], object],
        backlog: Backlog | None = None,
    ) -> None:
        """`backlog` is shared with other relays."""
        backlog = backlog or Backlog()
        self.violation: str | None = None
        """The protocol violation for which the connection was closed; None without a violation."""
        self._sockets = (public, private)
        self._on_close = on_close
        self._closed = False
        self._linger_timer: asyncio.TimerHandle | None = None
        inward = _Direction(
            public, private, buffer, backlog, monitor.feed_client, self._on_direction_end
        )
        inward.held_size = lambda: monitor.held_size
        # A server may reply and close while the client still sends. Discard what the client still
        # sends, so that the client gets the reply.
        inward.discards_if_closed = True

        def from_server(data: memoryview) -> memoryview:
            replaced = monitor.feed_server(data)
            self.retry()
            return replaced

        outward = _Direction(private, public, buffer, backlog, from_server, self._on_direction_end)
        self._directions = (inward, outward)

    def start(self, first: bytes = b"") -> None:
        """Start to relay. `first` has the bytes that were already received from the client."""
        inward, outward = self._directions
        outward.start()
        inward.start()
        if first:
            inward.forward(first)

    def retry(self) -> None:
        """Try again to forward the client's bytes that were held back."""
        inward = self._directions[0]
        if inward.held_size():
            inward.forward()

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait because the client does not read."""
        return self._directions[1].has_unsent

    def ask_monitor(self) -> None:
        """Send the client the bytes that the monitor adds, such as granted window updates."""
        self._directions[1].forward()

    def check(self) -> None:
        """Close the relay if a socket has failed without a notification."""
        for direction in self._directions:
            direction.check()

    def close(self, violation: str | None = None) -> None:
        """Close both sockets. `violation` describes the client's protocol violation, if there was
        one."""
        if self._closed:
            return
        self._closed = True
        self.violation = violation
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        for direction in self._directions:
            direction.stop()
        for end in self._sockets:
            end.close()
        self._on_close()

    def _on_direction_end(self, *, broken: bool, violation: str | None = None) -> None:
        from_public, from_private = self._directions
        if broken or (from_public.has_ended and from_private.has_ended):
            self.close(violation)
        elif from_private.has_ended:
            # The server reads no more, so close the relay soon, even if the client does not notice
            # that the server has closed its side.
            self._linger_timer = asyncio.get_running_loop().call_later(_LINGER_TIMEOUT, self.close)


class _Direction:
    """Forwards bytes from one socket to the other."""

    def __init__(
        self,
        source: StreamSocket,
        target: StreamSocket,
        buffer: memoryview,
        backlog: Backlog,
        inspect: Callable[[memoryview], memoryview],
        on_end: Callable[..., None],
    ) -> None:
        """`inspect` returns the bytes to forward, or raises ProtocolViolation."""
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._target = target
        self._inspect = inspect
        self._on_end = on_end
        self._buffer = buffer
        self._backlog = backlog
        # Ask a TLS connection for pending bytes: it may hold decrypted bytes while its socket is
        # not readable.
        self._has_pending: Callable[[], bool] = getattr(source, "has_pending", _has_none)
        self._is_reading = False
        self._is_stopped = False
        self._read_size = _INITIAL_CHUNK_SIZE
        """Bytes per read."""
        self._unsent = memoryview(b"")
        """Bytes that may be forwarded but that the target does not accept yet."""
        self._retry_timer: asyncio.TimerHandle | None = None
        self._is_at_end = False
        """Whether the source has ended. Bytes may still be held back."""
        self.held_size: Callable[[], int] = lambda: 0
        """Returns the number of bytes that are held back."""
        self.has_ended = False
        self.discards_if_closed = False
        """Whether to continue reading after the target was closed, and discard the bytes."""

    def start(self) -> None:
        try:
            self._loop.add_reader(self._source.fileno(), self._read)
        except RuntimeError:
            # The socket has failed. This may have gone unnoticed: after an error, uvloop calls the
            # reader only once, and that call may have read only the bytes before the error.
            self._on_end(broken=True)
            return
        self._is_reading = True
        self._schedule_pending()

    def check(self) -> None:
        """Detect an error of the source that uvloop has not reported."""
        if self._is_reading:
            self.start()

    def stop(self) -> None:
        self._is_stopped = True
        self._cancel_retry()
        self._pause()
        self._backlog.size -= len(self._unsent)
        self._unsent = memoryview(b"")
        self._loop.remove_writer(self._target.fileno())

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def forward(self, data: bytes = b"") -> None:
        """Forward bytes that were already read from the source, and bytes that were held back."""
        if self._unsent or self.has_ended or self._is_stopped:
            return  # called again when the unsent bytes are sent
        if self._forward(memoryview(data)) and not self._is_stopped:
            self._resume()

    def _read(self) -> None:
        if self._backlog.is_large:
            self._read_size = _INITIAL_CHUNK_SIZE
        try:
            size = self._source.recv_into(self._buffer[: self._read_size])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._on_end(broken=True)
            return
        if size == 0:
            self._is_at_end = True
            self._pause()
            self._resume()
            return
        if self._forward(self._buffer[:size]):
            if size == self._read_size:
                self._read_size = min(4 * size, CHUNK_SIZE)
        else:
            self._read_size = _INITIAL_CHUNK_SIZE
        self._schedule_pending()

    def _schedule_pending(self) -> None:
        if self._is_reading and self._has_pending():
            self._loop.call_soon(self._read_pending)

    def _read_pending(self) -> None:
        if self._is_reading:
            self._read()

    def _pause(self) -> None:
        self._is_reading = False
        self._loop.remove_reader(self._source.fileno())

    def _forward(self, data: memoryview) -> bool:
        """Forward bytes, and return whether more may be read."""
        self._cancel_retry()
        try:
            allowed = self._inspect(data)
        except ProtocolViolation as error:
            self._on_end(broken=True, violation=str(error))
            return False
        sent = self._send(allowed) if allowed else 0
        if sent is None:
            return False
        if sent < len(allowed):
            self._unsent = memoryview(bytes(allowed[sent:]))
            self._backlog.size += len(self._unsent)
            self._loop.add_writer(self._target.fileno(), self._write_unsent)
        held_back = self.held_size()
        if held_back:
            self._retry_timer = self._loop.call_later(_RETRY_DELAY, self.forward)
        if self._unsent or held_back > _MAX_HELD_BACK:
            self._pause()
            return False
        return True

    def _resume(self) -> None:
        if not self._is_at_end:
            self.start()
        elif not self.held_size() and not self.has_ended:
            self._half_close()

    def _write_unsent(self) -> None:
        sent = self._send(self._unsent)
        if sent is None:
            return
        self._unsent = self._unsent[sent:]
        self._backlog.size -= sent
        if not self._unsent:
            self._loop.remove_writer(self._target.fileno())
            self.forward()

    def _send(self, data: memoryview) -> int | None:
        """Send bytes, and return how many the target accepted; None if its connection is lost."""
        try:
            return self._target.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            if self.discards_if_closed:
                return len(data)
            self._on_end(broken=True)
            return None

    def _cancel_retry(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None

    def _half_close(self) -> None:
        """Half-close the target after the source has ended. The other direction continues."""
        self.has_ended = True
        try:
            self._target.shutdown(socket.SHUT_WR)
        except OSError:
            self._on_end(broken=True)
        else:
            self._on_end(broken=False)


def _has_none() -> bool:
    return False
