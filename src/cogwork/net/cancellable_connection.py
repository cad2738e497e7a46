"""HTTP connections that another thread can close, even before the server has answered."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.request
from typing import Any

from cogwork.core.errors import Interrupted


class CancellableConnection:
    """The current connection of a request. Each redirect replaces it by another connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._socket: socket.socket | None = None
        """A duplicate of the socket, because TLS takes over the original."""

    def connect(
        self, address: tuple[str, int], timeout: float, _source: Any = None
    ) -> socket.socket:
        """Connect like `socket.create_connection`. Raise OSError, and Interrupted if cancelled."""
        host, port = address
        failure: OSError | None = None
        for family, kind, protocol, _, target in socket.getaddrinfo(
            host, port, 0, socket.SOCK_STREAM
        ):
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(timeout)
                self._follow(connection)
                connection.connect(target)
            except BaseException as error:
                connection.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
            else:
                return connection
        raise failure or OSError(f"{host} has no address")

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            # Shut the socket down: closing it would not wake the thread that connects or reads.
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _follow(self, connection: socket.socket) -> None:
        with self._lock:
            if self._is_cancelled:
                raise Interrupted("the request was cancelled")
            self._forget()
            self._socket = connection.dup()

    def _forget(self) -> None:
        found, self._socket = self._socket, None
        if found is not None:
            found.close()


def make_opener(
    connection: CancellableConnection, *handlers: type[urllib.request.BaseHandler]
) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Http(connection), _Https(connection), *handlers)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connection: CancellableConnection) -> None:
        super().__init__()
        self._connection = connection

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def make(host: str, **settings: Any) -> http.client.HTTPConnection:
            return _watch(http.client.HTTPConnection(host, **settings), self._connection)

        return self.do_open(make, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connection: CancellableConnection) -> None:
        super().__init__()
        self._connection = connection

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        def make(host: str, **settings: Any) -> http.client.HTTPConnection:
            return _watch(http.client.HTTPSConnection(host, **settings), self._connection)

        return self.do_open(make, req)


def _watch(
    made: http.client.HTTPConnection, connection: CancellableConnection
) -> http.client.HTTPConnection:
    # Set a private attribute: the standard library has no public way to replace the function that
    # connects.
    made._create_connection = connection.connect  # type: ignore[attr-defined]  # noqa: SLF001
    return made
