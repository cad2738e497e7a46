"""Messages between the server and a child process: JSON lines, with open sockets attached."""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

Message = dict[str, Any]
OnMessage = Callable[[Message, list[socket.socket]], None]
"""Takes a message and the sockets attached to it, and takes ownership of the sockets."""

HEARTBEAT_INTERVAL = 2.0
"""Seconds between two heartbeats of the child process."""
_MAX_QUEUED = 1000
"""Maximum number of messages queued for a peer that does not read. Further messages are dropped."""
_MAX_SOCKETS = 16
_CHUNK_SIZE = 1 << 16


class ControlChannel:
    def __init__(
        self, connection: socket.socket, on_message: OnMessage, on_end: Callable[[], None]
    ) -> None:
        """Take ownership of the connection. `on_end` is called when the other side has
        disconnected."""
        self._connection = connection
        self._on_message = on_message
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._sockets: list[socket.socket] = []
        """Received sockets that no message has claimed yet."""
        self._unsent: deque[tuple[bytes, list[socket.socket]]] = deque()
        connection.setblocking(False)
        self._loop.add_reader(connection.fileno(), self._read)

    def send(self, message: Message, sockets: Sequence[socket.socket] = ()) -> None:
        """Send a message without waiting. The sockets are duplicated.

        Raise OSError if a socket cannot be duplicated.
        """
        if len(self._unsent) >= _MAX_QUEUED or self._connection.fileno() < 0:
            return
        line = json.dumps({**message, "sockets": len(sockets)}).encode() + b"\n"
        self._unsent.append((line, _duplicate(sockets)))
        self._write()

    def close(self) -> None:
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection.fileno())
            self._loop.remove_writer(self._connection.fileno())
            self._connection.close()
        for each in [*self._sockets, *(each for _, sockets in self._unsent for each in sockets)]:
            each.close()
        self._sockets.clear()
        self._unsent.clear()

    def _write(self) -> None:
        while self._unsent:
            line, sockets = self._unsent[0]
            try:
                sent = _send(self._connection, line, sockets)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._connection.fileno(), self._write)
                return
            except OSError:
                self._end()
                return
            for each in sockets:
                each.close()
            if sent < len(line):
                self._unsent[0] = (line[sent:], [])
            else:
                self._unsent.popleft()
        self._loop.remove_writer(self._connection.fileno())

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._connection, _CHUNK_SIZE, _MAX_SOCKETS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, descriptors = b"", []
        self._sockets += [socket.socket(fileno=each) for each in descriptors]
        if not data:
            self._end()
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            count = message.pop("sockets")
            # If sockets are missing, the system has dropped them, because this process has too many
            # open files.
            if len(self._sockets) < count:
                self._end()
                return
            claimed, self._sockets = self._sockets[:count], self._sockets[count:]
            self._on_message(message, claimed)

    def _end(self) -> None:
        self.close()
        self._on_end()


def _duplicate(sockets: Sequence[socket.socket]) -> list[socket.socket]:
    with contextlib.ExitStack() as stack:
        copies = [stack.enter_context(each.dup()) for each in sockets]
        stack.pop_all()  # all were duplicated, so keep them open
    return copies


def _send(connection: socket.socket, data: bytes, sockets: Sequence[socket.socket]) -> int:
    if not sockets:
        return connection.send(data)
    descriptors = array.array("i", [each.fileno() for each in sockets])
    return connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])


def control_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
