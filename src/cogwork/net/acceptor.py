"""Accepts the connections of a listening socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

ACCEPT_PAUSE = 0.5
"""Seconds to pause after the process has run out of file descriptors."""

OnConnection = Callable[[socket.socket, Any], None]
"""Takes a non-blocking connection, and the address of its client."""


class Acceptor:
    """Owns a listening socket, and accepts from it until it is closed.

    When the process runs out of file descriptors, clients wait in the kernel's backlog until some
    descriptors are free.
    """

    def __init__(
        self,
        listener: socket.socket,
        on_connection: OnConnection,
        on_error: Callable[[OSError], None],
        *,
        batch: int = 1,
        pause: float = ACCEPT_PAUSE,
    ) -> None:
        """Start to accept. `on_error` is called before each pause. `batch` is the number of
        connections that are accepted in one iteration of the event loop."""
        self._listener = listener
        self._on_connection = on_connection
        self._on_error = on_error
        self._batch = batch
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._resume_timer: asyncio.TimerHandle | None = None
        listener.setblocking(False)
        self._resume()

    def close(self) -> None:
        """Stop accepting, and close the socket. Accepted connections stay open."""
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()

    def _resume(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(self._batch):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._on_error(error)
                self._loop.remove_reader(self._listener.fileno())
                self._resume_timer = self._loop.call_later(self._pause, self._resume)
                return
            connection.setblocking(False)
            self._on_connection(connection, address)
