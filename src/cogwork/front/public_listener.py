"""Listens on the one public port, and distinguishes gRPC from HTTP/1.1 by the first bytes.

grpc core cannot share a port, so both kinds of connections are relayed to the private Unix sockets
of their servers. TLS terminates here, too; with a certificate, plaintext is refused.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cogwork.core.loop_throttle import LoopThrottle
from cogwork.front.client_mistakes import ClientMistakes
from cogwork.front.connections import ConnectionLimits, Connections, ConnectionState
from cogwork.front.peer_name import Peer
from cogwork.front.proxy_protocol import MAX_SIZE as MAX_PROXY_HEADER_SIZE
from cogwork.front.proxy_protocol import InvalidProxyHeader, may_be_header, parse_header
from cogwork.front.relay import Relay, RelayedConnection
from cogwork.front.tls_socket import TlsSettings, TlsSocket, make_context, wait_readable
from cogwork.front.trusted_proxies import TrustedProxies

_HTTP2_PREFIX = b"PRI"
"""The first bytes of an HTTP/2 connection. No HTTP/1.1 method begins with them."""
_TLS_PREFIX = b"\x16\x03"
"""The first bytes of a TLS connection: a handshake record, and the major version."""

_TLS_REQUIRED = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"this port requires TLS; use https:// instead of http://\n"
)

_MAX_HEAD_SIZE = 16 * 1024
"""Bytes after which a head is relayed although it is incomplete; the server rejects it."""

_ACCEPT_BATCH = 8
"""Connections accepted per iteration of the event loop. The others wait in the kernel's backlog."""
_MAX_PARKED = 1024
_PARK_TIMEOUT = 1.0
"""Seconds that a connection waits for a free slot before it is refused."""
_URGENT_AFTER = 0.4
"""Seconds of waiting after which recently used, idle connections are evicted for it."""
_PARK_RETRY_INTERVAL = 0.02
"""Seconds between two attempts to admit waiting connections."""

_log = logging.getLogger("rdk.networking")


OnClient = Callable[[str, bool], None]
"""Takes the peer and whether it connected or disconnected. Must not block."""


class _Protocol(enum.Enum):
    HTTP1 = enum.auto()
    HTTP2 = enum.auto()
    TLS = enum.auto()


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    peek_timeout: float = 5.0
    """Maximum seconds until a connection has sent enough to detect its protocol."""
    head_timeout: float = 10.0
    """Maximum seconds until an HTTP/1.1 client has sent the head of its first request. The server
    sees the connection only then, so thousands of slow clients do not reach it."""
    accept_retry_delay: float = 0.5
    """Seconds without accepting after the process ran out of file descriptors."""
    unread_timeout: float = 80.0
    """Maximum seconds for which a client may leave received data unread."""


class PublicListener:
    def __init__(self, grpc: Relay, http: Relay, limits: ListenerLimits | None = None) -> None:
        """`grpc` relays HTTP/2 connections, `http` all others."""
        self._grpc = grpc
        self._http = http
        self._limits = limits or ListenerLimits()
        self._listeners: list[socket.socket] = []
        self._connections = Connections(time.monotonic, self._limits.connections)
        self._dispatch_tasks: set[asyncio.Task[None]] = set()
        self._throttle = LoopThrottle()
        self._parked: list[_AcceptedConnection] = []
        """Connections that wait for a free slot."""
        self._refused_count = 0
        self._mistakes = ClientMistakes(time.monotonic)
        self._tls_settings: TlsSettings | None = None
        self._tls: ssl.SSLContext | None = None
        self._requires_tls = False
        self._proxies = TrustedProxies()
        self.on_client: OnClient = lambda *_: None
        """Called when a gRPC client connects or disconnects."""

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def serve(self, listeners: list[socket.socket]) -> None:
        """Take ownership of these sockets, and accept from them instead of the current ones.

        Open connections stay open.
        """
        self.stop_listening()
        self._listeners = listeners
        for listener in listeners:
            listener.setblocking(False)
            asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener)

    def limit_connections(self, limits: ConnectionLimits) -> None:
        """Apply these limits to new connections."""
        self._connections.limits = limits

    def use_tls(self, settings: TlsSettings | None) -> None:
        """Use these settings for new connections; None for plaintext. Others stay open."""
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
        """Let connections from these networks begin with a header of the PROXY protocol."""
        self._proxies.replace(networks)

    async def aclose(self) -> None:
        self.stop_listening()
        while self._parked:
            self._parked.pop().close()
        for connection in tuple(self._connections):
            if connection.state is ConnectionState.UNDETECTED:
                connection.close()
        for task in self._dispatch_tasks:
            task.cancel()
        await asyncio.gather(*self._dispatch_tasks, return_exceptions=True)
        self._grpc.close()
        self._http.close()

    def stop_listening(self) -> None:
        """Accept no new connections; open connections stay open."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener.fileno())
            listener.close()
        self._listeners = []

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPT_BATCH):
            try:
                accepted, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause_accepting(listener, error)
                return
            accepted.setblocking(False)
            connection = _AcceptedConnection(accepted, address, self._connections.remove)
            if not self._admit(connection):
                self._park(connection)

    def _park(self, connection: _AcceptedConnection) -> None:
        """Let a connection wait: one of the busy connections may become idle soon."""
        if len(self._parked) >= _MAX_PARKED:
            self._refuse(connection)
            return
        self._parked.append(connection)
        if len(self._parked) == 1:
            asyncio.get_running_loop().call_later(_PARK_RETRY_INTERVAL, self._retry_parked)

    def _retry_parked(self) -> None:
        parked, self._parked = self._parked, []
        now = time.monotonic()
        full = set[str]()
        for connection in parked:
            waited = now - connection.last_active
            if connection.host not in full and self._admit(
                connection, urgent=waited >= _URGENT_AFTER
            ):
                continue
            full.add(connection.host)
            if waited >= _PARK_TIMEOUT:
                self._refuse(connection)
            else:
                self._parked.append(connection)
        if self._parked:
            asyncio.get_running_loop().call_later(_PARK_RETRY_INTERVAL, self._retry_parked)

    def _admit(self, connection: _AcceptedConnection, *, urgent: bool = False) -> bool:
        if not self._connections.admit(connection, urgent=urgent):
            return False
        task = asyncio.get_running_loop().create_task(self._dispatch(connection))
        connection.dispatch_task = task
        self._dispatch_tasks.add(task)
        task.add_done_callback(self._dispatch_tasks.discard)
        return True

    def _pause_accepting(self, listener: socket.socket, error: OSError) -> None:
        """Stop accepting for a moment after running out of file descriptors.

        Clients wait in the backlog until some are free.
        """
        _log.error(
            "cannot accept connections: %s; retrying in %gs",
            error.strerror,
            self._limits.accept_retry_delay,
        )
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener.fileno())

        def resume() -> None:
            if listener in self._listeners:
                loop.add_reader(listener.fileno(), self._accept, listener)

        loop.call_later(self._limits.accept_retry_delay, resume)

    def _refuse(self, connection: _AcceptedConnection) -> None:
        connection.close()
        self._refused_count += 1
        if self._refused_count.bit_count() == 1:
            _log.warning(
                "refused a connection from %s: %d connections are in use (%d refused so far)",
                connection.host,
                len(self._connections),
                self._refused_count,
            )

    async def _dispatch(self, connection: _AcceptedConnection) -> None:
        try:
            assert isinstance(connection.socket, socket.socket)
            _set_socket_options(connection.socket, self._limits.unread_timeout)
            async with asyncio.timeout(self._limits.peek_timeout):
                if connection.host in self._proxies:
                    await self._read_proxy_header(connection, connection.socket)
                protocol = await _detect_protocol(connection.socket)
            if protocol is None:
                connection.close()
                return
            if self._tls is not None:
                assert self._tls_settings is not None
                await self._dispatch_encrypted(
                    connection, protocol, self._tls, self._tls_settings.client_names
                )
            elif self._requires_tls:
                connection.close()
            else:
                await self._dispatch_plaintext(connection, protocol)
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
        self, connection: _AcceptedConnection, plain: socket.socket
    ) -> None:
        """Take the address of the client from a trusted proxy, if it begins with it."""
        header = parse_header(await _peek(plain, MAX_PROXY_HEADER_SIZE, _is_complete_proxy_header))
        if header is None:
            return
        plain.recv(header.size)
        if header.source is None:
            return
        host, port = header.source
        if not self._connections.move(connection, host):
            raise ConnectionRefusedError(f"{host} has too many connections")
        proxy = Peer.from_addresses(connection.address, plain.getsockname())
        # A client without a port gets that of the proxy's connection, to tell it from others.
        connection.set_client(
            (host, port or connection.address[1]),
            is_encrypted=proxy.is_confidential and header.is_encrypted,
        )

    async def _dispatch_plaintext(
        self, connection: _AcceptedConnection, protocol: _Protocol
    ) -> None:
        assert isinstance(connection.socket, socket.socket)
        if protocol is _Protocol.HTTP1:
            async with asyncio.timeout(self._limits.head_timeout):
                await _peek(connection.socket, _MAX_HEAD_SIZE, _is_complete_head)
        if protocol is _Protocol.TLS:
            # The reply of the HTTP server lets clients detect that the port is plaintext.
            self._mistakes.report_tls(connection.host, connection.socket.getsockname()[1])
        # Starting to serve a connection takes time. Throttling keeps thousands of new connections
        # from delaying connected clients; one that is evicted meanwhile is free.
        await self._throttle.acquire()
        self._relay(connection, is_http2=protocol is _Protocol.HTTP2)

    async def _dispatch_encrypted(
        self,
        connection: _AcceptedConnection,
        protocol: _Protocol,
        context: ssl.SSLContext,
        client_names: Sequence[str],
    ) -> None:
        assert isinstance(connection.socket, socket.socket)
        if protocol is not _Protocol.TLS:
            self._mistakes.report_plaintext(connection.host, connection.socket.getsockname()[1])
            if protocol is _Protocol.HTTP1:
                # A connection with unread bytes would be reset, and the reply lost.
                connection.socket.recv(_MAX_HEAD_SIZE)
                connection.socket.send(_TLS_REQUIRED)
            connection.close()
            return
        await self._throttle.acquire()
        connection.socket = tls = TlsSocket(connection.socket, context)
        try:
            async with asyncio.timeout(self._limits.head_timeout):
                await tls.handshake()
                first = await tls.read_first(_MAX_HEAD_SIZE, _is_complete_start)
        except ssl.SSLCertVerificationError as error:
            self._mistakes.report_certificate(connection.host, error.verify_message)
            raise
        except ssl.SSLError as error:
            self._mistakes.report_handshake(connection.host, error.reason or str(error))
            raise
        if not first:
            connection.close()
            return
        self._relay(
            connection,
            is_http2=first.startswith(_HTTP2_PREFIX),
            is_encrypted=True,
            certificate=tls.find_client(client_names) if client_names else "",
            first=first,
        )

    def _relay(
        self,
        connection: _AcceptedConnection,
        *,
        is_http2: bool,
        is_encrypted: bool = False,
        certificate: str = "",
        first: bytes = b"",
    ) -> None:
        peer = Peer.from_addresses(
            connection.address,
            connection.socket.getsockname(),
            is_encrypted=is_encrypted or connection.is_encrypted_by_proxy,
            certificate=certificate,
        )
        if connection.is_forwarded:
            # A client behind a proxy is not on this computer, even if the proxy is.
            peer = peer._replace(is_local=False)
        if not is_http2:
            connection.served = self._http.start(
                connection.socket, peer, connection.notify_closed, first
            )
            return

        def on_close() -> None:
            connection.notify_closed()
            self.on_client(peer.address, False)

        # Before it starts, because its first bytes may already end it.
        self.on_client(peer.address, True)
        try:
            connection.served = self._grpc.start(connection.socket, peer, on_close, first)
        except OSError:
            self.on_client(peer.address, False)
            raise


class _AcceptedConnection:
    """A connection from accept to close, before and after it is relayed."""

    def __init__(
        self,
        accepted: socket.socket,
        address: tuple[str, int],
        on_close: Callable[[_AcceptedConnection], None],
    ) -> None:
        self.socket: socket.socket | TlsSocket = accepted
        self.address = address
        self.host = address[0]
        self.is_forwarded = False
        """Whether the address is that of a client behind a proxy."""
        self.is_encrypted_by_proxy = False
        """Whether the client uses TLS to the proxy, and no one can read what the proxy sends."""
        self.served: RelayedConnection | None = None
        """The relayed connection, once the protocol is known."""
        self.dispatch_task: asyncio.Task[None] | None = None
        self._accepted_at = time.monotonic()
        self._on_close = on_close

    @property
    def state(self) -> ConnectionState:
        return self.served.state if self.served is not None else ConnectionState.UNDETECTED

    @property
    def last_active(self) -> float:
        return self.served.last_active if self.served is not None else self._accepted_at

    def close(self) -> None:
        if self.served is not None:
            self.served.close()
        else:
            if self.dispatch_task is not None:
                self.dispatch_task.cancel()
            if self.socket.fileno() >= 0:
                # Do not leave this to the waiting task: when it runs, the descriptor may be reused.
                asyncio.get_running_loop().remove_reader(self.socket.fileno())
                asyncio.get_running_loop().remove_writer(self.socket.fileno())
            self.socket.close()
        self.notify_closed()

    def set_client(self, address: tuple[str, int], *, is_encrypted: bool) -> None:
        """Set the client behind the proxy that has connected."""
        self.address = address
        self.host = address[0]
        self.is_forwarded = True
        self.is_encrypted_by_proxy = is_encrypted

    def notify_closed(self) -> None:
        """Report that the connection is closed."""
        self._on_close(self)


def _set_socket_options(connection: socket.socket, unread_timeout: float) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        # Otherwise a client that stops reading would stay forever: its kernel still answers probes.
        milliseconds = round(unread_timeout * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


async def _detect_protocol(connection: socket.socket) -> _Protocol | None:
    """Return the protocol of the client; None if it closed without sending anything."""
    prefix = await _peek(connection, len(_HTTP2_PREFIX), _is_conclusive)
    if not prefix:
        return None
    if prefix.startswith(_TLS_PREFIX):
        return _Protocol.TLS
    return _Protocol.HTTP2 if prefix == _HTTP2_PREFIX else _Protocol.HTTP1


def _is_conclusive(prefix: bytes) -> bool:
    return prefix.startswith(_TLS_PREFIX) or not any(
        each.startswith(prefix) for each in (_HTTP2_PREFIX, _TLS_PREFIX)
    )


def _is_complete_proxy_header(data: bytes) -> bool:
    """Return whether a header of the PROXY protocol is complete, or there is none."""
    return not may_be_header(data) or parse_header(data) is not None


def _is_complete_head(data: bytes) -> bool:
    return b"\r\n\r\n" in data or b"\n\n" in data


def _is_complete_start(data: bytes) -> bool:
    """Return whether the first bytes show HTTP/2, or are a whole head of HTTP/1.1."""
    return data.startswith(_HTTP2_PREFIX) or _is_complete_head(data)


async def _peek(
    connection: socket.socket, max_size: int, is_enough: Callable[[bytes], bool]
) -> bytes:
    """Return the first bytes that arrive, without consuming them.

    Return when they are enough, when there are `max_size`, or when no more will come.
    """
    seen = b""
    try:
        while True:
            # Peeked bytes stay in the socket, so it must count as readable only with more of them.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(seen) + 1)
            await wait_readable(connection)
            try:
                peeked = connection.recv(max_size, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            if len(peeked) in (len(seen), max_size) or is_enough(peeked):
                return peeked
            seen = peeked
    finally:
        if connection.fileno() >= 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
