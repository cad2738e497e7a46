"""Detects the protocol of each connection, and relays it to the server of that protocol.

TLS terminates here; with a certificate, plaintext is refused.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
import time
from collections.abc import Sequence

from cogwork.core.limits.loop_throttle import LoopThrottle
from cogwork.front.accepted_connection import AcceptedConnection
from cogwork.front.client_mistakes import ClientMistakes
from cogwork.front.connections import Connections
from cogwork.front.first_bytes import (
    MAX_HEAD_SIZE,
    FirstProtocol,
    detect_protocol,
    is_complete_head,
    is_complete_proxy_header,
    is_complete_start,
    is_http2,
    peek,
)
from cogwork.front.listener_limits import ListenerLimits
from cogwork.front.proxy_protocol import MAX_SIZE as MAX_PROXY_HEADER_SIZE
from cogwork.front.proxy_protocol import InvalidProxyHeader, parse_header
from cogwork.front.relay import Relay
from cogwork.front.tls_socket import TlsSettings, TlsSocket, make_context
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.net.peer import OnClient, Peer

_TLS_REQUIRED = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"this port requires TLS; use https:// instead of http://\n"
)

_log = logging.getLogger("rdk.networking")


class Dispatcher:
    def __init__(
        self,
        grpc: Relay,
        http: Relay,
        connections: Connections,
        limits: ListenerLimits,
        on_client: OnClient,
    ) -> None:
        """`grpc` relays HTTP/2 connections, and `http` relays all others.

        `on_client` is called when a gRPC client connects or disconnects.
        """
        self._grpc = grpc
        self._http = http
        self._connections = connections
        self._limits = limits
        self._on_client = on_client
        self._tasks: set[asyncio.Task[None]] = set()
        self._throttle = LoopThrottle()
        self._mistakes = ClientMistakes(time.monotonic)
        self._proxies = TrustedProxies()
        self._tls_settings: TlsSettings | None = None
        self._tls: ssl.SSLContext | None = None
        self._requires_tls = False

    def use_tls(self, settings: TlsSettings | None) -> None:
        """Use these settings for new connections; None means plaintext. Open connections stay
        open."""
        if settings == self._tls_settings:
            return
        self._requires_tls = settings is not None
        try:
            self._tls = make_context(settings) if settings is not None else None
        except OSError as error:
            outcome = "keeping the current one" if self._tls else "refusing all connections"
            _log.error("cannot use the certificate: %s; %s", error, outcome)
        else:
            self._tls_settings = settings

    def trust_proxies(self, networks: Sequence[str]) -> None:
        """Accept headers of the PROXY protocol from these networks."""
        self._proxies.replace(networks)

    def start(self, connection: AcceptedConnection) -> None:
        """Detect the protocol of a connection and relay it, or close it."""
        plain = connection.socket
        assert isinstance(plain, socket.socket)
        task = asyncio.get_running_loop().create_task(self._dispatch(connection, plain))
        connection.dispatch_task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _dispatch(self, connection: AcceptedConnection, plain: socket.socket) -> None:
        try:
            _set_socket_options(plain, self._limits.unread_timeout)
            async with asyncio.timeout(self._limits.peek_timeout):
                if connection.host in self._proxies:
                    await self._read_proxy_header(connection, plain)
                protocol = await detect_protocol(plain)
            if protocol is None:
                connection.close()
            elif self._tls is not None:
                assert self._tls_settings is not None
                names = self._tls_settings.client_names
                await self._dispatch_encrypted(connection, plain, protocol, self._tls, names)
            elif self._requires_tls:
                connection.close()
            else:
                await self._dispatch_plaintext(connection, plain, protocol)
        except TimeoutError:
            _log.debug("closed a connection from %s: it sent no request in time", connection.host)
            connection.close()
        except InvalidProxyHeader as error:
            self._mistakes.report_proxy(connection.host, str(error))
            connection.close()
        except OSError as error:
            _log.debug("lost a connection from %s: %s", connection.host, error)
            connection.close()
        except BaseException:
            connection.close()
            raise

    async def _read_proxy_header(
        self, connection: AcceptedConnection, plain: socket.socket
    ) -> None:
        """Set the address of the client from the PROXY header of a trusted proxy, if there is a
        header."""
        header = parse_header(await peek(plain, MAX_PROXY_HEADER_SIZE, is_complete_proxy_header))
        if header is None:
            return
        plain.recv(header.size)
        if header.source is None:
            return
        host, port = header.source
        if not self._connections.move(connection, host):
            raise ConnectionRefusedError(f"{host} has too many connections")
        proxy = Peer.from_addresses(connection.address, plain.getsockname())
        # If the header has no client port, use the port of the proxy's connection, to distinguish
        # the client from other clients with the same address.
        connection.set_client(
            (host, port or connection.address[1]),
            is_encrypted=proxy.is_confidential and header.is_encrypted,
        )

    async def _dispatch_plaintext(
        self, connection: AcceptedConnection, plain: socket.socket, protocol: FirstProtocol
    ) -> None:
        if protocol is FirstProtocol.HTTP1:
            async with asyncio.timeout(self._limits.head_timeout):
                await peek(plain, MAX_HEAD_SIZE, is_complete_head)
        if protocol is FirstProtocol.TLS:
            # Relay TLS clients to the HTTP server, too: its plaintext reply shows them that the
            # port does not use TLS.
            self._mistakes.report_tls(connection.host, plain.getsockname()[1])
        # Throttle new connections: serving thousands at once would delay the connected clients. A
        # connection that is evicted while it waits here costs nothing.
        await self._throttle.acquire()
        self._relay(connection, is_grpc=protocol is FirstProtocol.HTTP2)

    async def _dispatch_encrypted(
        self,
        connection: AcceptedConnection,
        plain: socket.socket,
        protocol: FirstProtocol,
        context: ssl.SSLContext,
        client_names: Sequence[str],
    ) -> None:
        if protocol is not FirstProtocol.TLS:
            self._refuse_plaintext(connection, plain, protocol)
            return
        await self._throttle.acquire()
        connection.socket = tls = TlsSocket(plain, context)
        first = await self._read_encrypted(connection, tls)
        if not first:
            connection.close()
            return
        self._relay(
            connection,
            is_grpc=is_http2(first),
            is_encrypted=True,
            certificate=tls.find_client(client_names) if client_names else "",
            first=first,
        )

    def _refuse_plaintext(
        self, connection: AcceptedConnection, plain: socket.socket, protocol: FirstProtocol
    ) -> None:
        self._mistakes.report_plaintext(connection.host, plain.getsockname()[1])
        if protocol is FirstProtocol.HTTP1:
            # Read the request first: closing a connection with unread bytes resets it and loses the
            # reply.
            plain.recv(MAX_HEAD_SIZE)
            plain.send(_TLS_REQUIRED)
        connection.close()

    async def _read_encrypted(self, connection: AcceptedConnection, tls: TlsSocket) -> bytes:
        """Return the first bytes that a client sends over TLS; empty if the client sends
        nothing."""
        try:
            async with asyncio.timeout(self._limits.head_timeout):
                await tls.handshake()
                return await tls.read_first(MAX_HEAD_SIZE, is_complete_start)
        except ssl.SSLCertVerificationError as error:
            self._mistakes.report_certificate(connection.host, error.verify_message)
            raise
        except ssl.SSLError as error:
            self._mistakes.report_handshake(connection.host, error.reason or str(error))
            raise

    def _relay(
        self,
        connection: AcceptedConnection,
        *,
        is_grpc: bool,
        is_encrypted: bool = False,
        certificate: str = "",
        first: bytes = b"",
    ) -> None:
        peer = connection.make_peer(is_encrypted=is_encrypted, certificate=certificate)
        if not is_grpc:
            connection.served = self._http.start(
                connection.socket, peer, connection.notify_closed, first
            )
            return

        def on_close() -> None:
            connection.notify_closed()
            self._on_client(peer.address, False)

        # Report the client before the relay starts, because the first bytes may end the connection.
        self._on_client(peer.address, True)
        try:
            connection.served = self._grpc.start(connection.socket, peer, on_close, first)
        except OSError:
            self._on_client(peer.address, False)
            raise


def _set_socket_options(connection: socket.socket, unread_timeout: float) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        # Limit the time for unacknowledged bytes. Keepalive probes do not detect a client that
        # stops reading, because its kernel still answers them.
        milliseconds = round(unread_timeout * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
