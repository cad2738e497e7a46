"""A TLS connection that behaves like a plain non-blocking socket, so that the relay can use it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from cogwork.front.peer_name import digest_of

_MAX_SEND_SIZE = 64 * 1024
"""Maximum bytes that are encrypted at once, to keep the event loop responsive."""


class TlsSettings(NamedTuple):
    certificate: Path
    """A PEM file with the certificate chain and its key."""
    client_authority: Path | None = None
    """A PEM file with the authorities that sign client certificates; None to request no client
    certificate."""
    client_names: tuple[str, ...] = ()
    """The names in client certificates that are accepted as a login."""


def make_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context. Raise OSError if a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # The first match wins, so HTTP/1.1 comes first: browsers offer both protocols, but can use
    # gRPC-web only over HTTP/1.1 here. gRPC clients offer only h2.
    context.set_alpn_protocols(["http/1.1", "h2"])
    context.load_cert_chain(settings.certificate)
    if settings.client_authority is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(settings.client_authority)
    return context


class TlsSocket:
    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        """Take ownership of the socket."""
        self._socket = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        self._has_ended = False
        """Whether the client has closed its side."""
        self._discards = False
        """Whether to discard further bytes of the client, because they cannot be decrypted."""

    async def handshake(self) -> None:
        while True:
            try:
                self._socket.do_handshake()
            except ssl.SSLWantReadError:
                await wait_readable(self)
            except ssl.SSLWantWriteError:
                await wait_writable(self)
            else:
                return

    async def read_first(self, max_size: int, is_enough: Callable[[bytes], bool]) -> bytes:
        """Read until `is_enough` returns true, until `max_size` bytes have arrived, or until the
        client sends no more."""
        received = b""
        while len(received) < max_size and not is_enough(received):
            try:
                data = self._socket.recv(max_size - len(received))
            except ssl.SSLWantReadError:
                await wait_readable(self)
                continue
            except ssl.SSLWantWriteError:
                await wait_writable(self)
                continue
            if not data:
                break
            received += data
        return received

    def find_client(self, names: Iterable[str]) -> str:
        """Return the digest of the first of these names that the client's certificate contains.

        The handshake has verified the certificate. Return an empty text if no name matches.
        """
        certificate: dict[str, Any] = self._socket.getpeercert() or {}
        proven = {
            value.lower() for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"
        }
        return next((digest_of(name) for name in names if name.lower() in proven), "")

    def has_pending(self) -> bool:
        """Return whether decrypted bytes, or the end of the data, can be read although the socket
        is not readable."""
        if self._discards or self._socket.fileno() < 0:
            return False
        return self._has_ended or self._socket.pending() > 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def getsockname(self) -> tuple[str, int]:
        name: tuple[str, int] = self._socket.getsockname()
        return name

    def recv_into(self, buffer: memoryview) -> int:
        """Fill the buffer with as many TLS records as are available. A record holds at most 16
        KiB."""
        if self._discards:
            return self._discard(buffer)
        size = 0
        try:
            while size < len(buffer) and not self._has_ended:
                count = self._socket.recv_into(buffer[size:])
                self._has_ended = not count
                size += count
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not size:
                raise BlockingIOError from None
        except OSError:
            if not size:
                raise
        return size

    def _discard(self, buffer: memoryview) -> int:
        """Read and discard encrypted bytes, and return 0 when the client sends no more."""
        while socket.socket.recv_into(self._socket, buffer):
            pass
        return 0

    def send(self, data: memoryview) -> int:
        try:
            return self._socket.send(data[:_MAX_SEND_SIZE])
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            raise BlockingIOError from None

    def shutdown(self, how: int) -> None:
        """Tell the client that no more bytes follow. The client may still send."""
        try:
            self._socket.unwrap()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass  # the client has not closed its side yet
        except ssl.SSLError:
            # The client still sends. OpenSSL cannot decrypt these bytes any more.
            self._discards = True
        else:
            return
        # Bypass `SSLSocket.shutdown`, because it would end the decryption.
        socket.socket.shutdown(self._socket, how)

    def close(self) -> None:
        self._socket.close()


async def wait_readable(connection: socket.socket | TlsSocket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        if connection.fileno() >= 0:
            loop.remove_reader(connection.fileno())


async def wait_writable(connection: socket.socket | TlsSocket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        if connection.fileno() >= 0:
            loop.remove_writer(connection.fileno())
