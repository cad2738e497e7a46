"""Two sockets joined: what comes in on one goes out on the other.

It moves every byte of every gRPC call, so it reads into one buffer that is used again and again,
and writes at once; only what the other side does not take yet is kept, and then it reads no more.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

CHUNK = 256 * 1024
_LINGER = 1.0
"""Seconds that a client gets to close, when the other side is gone."""


class Splice:
    """The buffer may be shared: nothing stays in it from one turn of the loop to the next."""

    def __init__(
        self,
        public: socket.socket,
        private: socket.socket,
        buffer: memoryview,
        on_close: Callable[[], object],
    ) -> None:
        self._sockets = (public, private)
        self._on_close = on_close
        self._closed = False
        self._lingering: asyncio.TimerHandle | None = None
        self._directions = (
            _Direction(public, private, buffer, self._ended),
            _Direction(private, public, buffer, self._ended),
        )

    def start(self) -> None:
        for direction in self._directions:
            direction.start()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._lingering is not None:
            self._lingering.cancel()
        for direction in self._directions:
            direction.stop()
        for end in self._sockets:
            end.close()
        self._on_close()

    def _ended(self, *, broken: bool) -> None:
        from_public, from_private = self._directions
        if broken or (from_public.ended and from_private.ended):
            self.close()
        elif from_private.ended:
            # A server that says no more hears no more either; its client need not notice.
            self._lingering = asyncio.get_running_loop().call_later(_LINGER, self.close)


class _Direction:
    """From one socket to the other."""

    def __init__(
        self,
        source: socket.socket,
        target: socket.socket,
        buffer: memoryview,
        on_end: Callable[..., None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._target = target
        self._on_end = on_end
        self._buffer = buffer
        self._kept = memoryview(b"")
        self.ended = False

    def start(self) -> None:
        self._loop.add_reader(self._source.fileno(), self._read)

    def stop(self) -> None:
        self._loop.remove_reader(self._source.fileno())
        self._loop.remove_writer(self._target.fileno())

    def _read(self) -> None:
        try:
            size = self._source.recv_into(self._buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._on_end(broken=True)
            return
        if size == 0:
            self._end()
            return
        sent = self._send(self._buffer[:size])
        if sent is not None and sent < size:
            self._kept = memoryview(bytes(self._buffer[sent:size]))
            self._loop.remove_reader(self._source.fileno())
            self._loop.add_writer(self._target.fileno(), self._write_kept)

    def _write_kept(self) -> None:
        sent = self._send(self._kept)
        if sent is None:
            return
        self._kept = self._kept[sent:]
        if not self._kept:
            self._loop.remove_writer(self._target.fileno())
            self._loop.add_reader(self._source.fileno(), self._read)

    def _send(self, data: memoryview) -> int | None:
        """How much the other side took; None if it is gone."""
        try:
            return self._target.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self._on_end(broken=True)
            return None

    def _end(self) -> None:
        """The source says no more; what the target still says goes on."""
        self.ended = True
        self._loop.remove_reader(self._source.fileno())
        try:
            self._target.shutdown(socket.SHUT_WR)
        except OSError:
            self._on_end(broken=True)
        else:
            self._on_end(broken=False)
