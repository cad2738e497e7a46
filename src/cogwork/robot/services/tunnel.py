"""Tunnels: forwards a connection to a port of this computer over a streaming call.

Backpressure applies end to end: only the chunk in transit is buffered, so a slow reader slows down
the sender.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence

from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.config.schema.network import TunnelEndpoint
from cogwork.core.errors import CogworkError, NotFound
from cogwork.core.os_error_text import os_reason
from cogwork.resource.messages.timestamps import to_duration
from cogwork.wire.messages.protobuf_encoding import encode_field_header
from cogwork.wire.table.duplex import run_duplex
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Stream

MAX_CHUNK_SIZE = 1 << 18
"""Maximum bytes per message."""
_LOOPBACK_HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_PATH = "/viam.robot.v1.RobotService/Tunnel"
_DATA_FIELD = 1
"""Number of the `data` field in a reply."""
_DRAIN_START_TIMEOUT = 1.0
"""Seconds that a client has to send more data after the port has closed its side."""
_DRAIN_IDLE_TIMEOUT = 5.0
"""Maximum seconds between two messages of a client that still sends after the port has closed."""


class BrokenTunnel(CogworkError):
    """The port cannot be reached, or its connection broke."""

    status = "UNAVAILABLE"


def list_tunnels(endpoints: Sequence[TunnelEndpoint]) -> robot.ListTunnelsResponse:
    return robot.ListTunnelsResponse(
        tunnels=[
            robot.Tunnel(port=each.port, connection_timeout=to_duration(each.connection_timeout))
            for each in endpoints
        ]
    )


async def serve_tunnel(stream: Stream, endpoints: Sequence[TunnelEndpoint]) -> None:
    """Serve a Tunnel call. The first message names the port and may already contain data."""
    first: robot.TunnelRequest = await recv_first_message(stream, _PATH)
    endpoint = _find_endpoint(first.destination_port, endpoints)
    with contextlib.closing(await _connect(endpoint)) as connection:
        try:
            # Send this now, to show the client that the port is connected. Otherwise, grpc never
            # ends a call whose first reply was cancelled.
            await stream.send_initial_metadata()
            delivered = await _forward(first.data, stream, connection)
        except OSError as error:
            raise BrokenTunnel(
                f"the connection to port {endpoint.port} broke: {os_reason(error)}"
            ) from error
    if not delivered:
        raise BrokenTunnel(f"port {endpoint.port} closed before it received all data")


def _find_endpoint(port: int, endpoints: Sequence[TunnelEndpoint]) -> TunnelEndpoint:
    for endpoint in endpoints:
        if endpoint.port == port:
            return endpoint
    listed = ", ".join(str(endpoint.port) for endpoint in endpoints)
    raise NotFound(
        f"tunnel not available at port {port}: network.traffic_tunnel_endpoints "
        + (f"has {listed}" if listed else "has none")
    )


async def _connect(endpoint: TunnelEndpoint) -> socket.socket:
    try:
        async with asyncio.timeout(endpoint.connection_timeout):
            return await _connect_loopback(endpoint.port)
    except TimeoutError:
        raise BrokenTunnel(
            f"port {endpoint.port} of the machine did not answer within "
            f"{endpoint.connection_timeout:g} s"
        ) from None
    except OSError as error:
        raise BrokenTunnel(
            f"port {endpoint.port} of the machine cannot be reached: {os_reason(error)}; "
            "start the program that listens there"
        ) from error


async def _connect_loopback(port: int) -> socket.socket:
    """Connect over IPv4 or, if nothing listens there, over IPv6."""
    errors: list[OSError] = []
    for family, host in _LOOPBACK_HOSTS:
        try:
            return await _connect_to(family, host, port)
        except OSError as error:
            errors.append(error)
    raise errors[0]


async def _connect_to(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, (host, port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _forward(first: bytes, stream: Stream, connection: socket.socket) -> bool:
    """Forward both directions. Return whether the port received all data from the client."""
    up = _ClientToPort(first, stream, connection)
    await run_duplex(up.run(), _forward_to_client(stream, connection, up))
    return not up.has_undelivered


async def _forward_to_client(stream: Stream, connection: socket.socket, up: _ClientToPort) -> None:
    """Forward until the port closes its side.

    Returning ends the call, so first wait until the client has stopped sending.
    """
    await copy_from_socket(connection, lambda data: _send_data(stream, data))
    await up.wait_until_idle()


class _ClientToPort:
    """Forwards data from the client to the port."""

    def __init__(self, first: bytes, stream: Stream, connection: socket.socket) -> None:
        self._first = first
        self._stream = stream
        self._connection = connection
        self._received_count = 0
        self.has_undelivered = bool(first)
        """Whether some received data has not reached the port yet."""
        self._ended = asyncio.Event()

    async def run(self) -> None:
        try:
            # Ignore a closed connection here: a port that no longer reads may still send data.
            with contextlib.suppress(ConnectionError):
                await asyncio.get_running_loop().sock_sendall(self._connection, self._first)
                await copy_to_socket(self._recv_data, self._connection)
                self._connection.shutdown(socket.SHUT_WR)
        finally:
            self._ended.set()

    async def wait_until_idle(self) -> None:
        """Wait until all data is delivered and the client has stopped sending."""
        timeout = _DRAIN_START_TIMEOUT
        while not self._ended.is_set():
            before = self._received_count
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), timeout)
            if self._received_count != before:
                timeout = _DRAIN_IDLE_TIMEOUT
            elif not self.has_undelivered:
                return

    async def _recv_data(self) -> bytes | None:
        self.has_undelivered = False
        message: robot.TunnelRequest | None = await self._stream.recv_message()
        if message is None:
            return None
        self._received_count += 1
        self.has_undelivered = bool(message.data)
        return message.data


async def _send_data(stream: Stream, data: memoryview) -> None:
    # Encode by hand: the message class would copy the data once more.
    await stream.send_message(b"".join((encode_field_header(_DATA_FIELD, len(data)), data)))


async def copy_to_socket(
    receive: Callable[[], Awaitable[bytes | None]], connection: socket.socket
) -> None:
    """Copy until `receive` returns None."""
    loop = asyncio.get_running_loop()
    while (data := await receive()) is not None:
        await loop.sock_sendall(connection, data)


async def copy_from_socket(
    connection: socket.socket, send: Callable[[memoryview], Awaitable[None]]
) -> None:
    """Copy until the other side closes. The view passed to `send` is valid only until `send`
    returns."""
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(MAX_CHUNK_SIZE))
    while count := await loop.sock_recv_into(connection, buffer):
        await send(buffer[:count])
