"""Tunnels: a connection to a port of this computer, carried by a call.

Whoever reads slowly, at either end, slows the other end: nothing is kept but the piece under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence

from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.config.network import TunnelEndpoint
from cogwork.core.errors import CogworkError, NotFound
from cogwork.resource.moments import duration
from cogwork.wire.both_ways import both_ways
from cogwork.wire.delimited import delimited
from cogwork.wire.first import first_message
from cogwork.wire.handlers import Stream

PIECE = 1 << 18
"""Bytes that a message carries at most."""
_HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_PATH = "/viam.robot.v1.RobotService/Tunnel"
_DATA = 1
"""The number of the field that replies have."""
_SILENCE = 1.0
"""Seconds that a client gets to send something more, when the port has said its last."""
_PATIENCE = 5.0
"""Seconds between what a client sends, once it has sent something more."""


class BrokenTunnel(CogworkError):
    """A port that cannot be reached, or not any more."""

    status = "UNAVAILABLE"


def list_tunnels(endpoints: Sequence[TunnelEndpoint]) -> robot.ListTunnelsResponse:
    return robot.ListTunnelsResponse(
        tunnels=[
            robot.Tunnel(port=each.port, connection_timeout=duration(each.connection_timeout))
            for each in endpoints
        ]
    )


async def tunnel(stream: Stream, endpoints: Sequence[TunnelEndpoint]) -> None:
    """The whole call: the first message names the port, and may carry data like all others."""
    first: robot.TunnelRequest = await first_message(stream, _PATH)
    endpoint = _endpoint(first.destination_port, endpoints)
    with contextlib.closing(await _connected(endpoint)) as connection:
        try:
            # A client hears that it is connected. Also, grpc never ends a call whose first reply
            # was cancelled, unless this came before.
            await stream.send_initial_metadata()
            delivered = await _carry(first.data, stream, connection)
        except OSError as error:
            raise BrokenTunnel(
                f"the connection to port {endpoint.port} broke: {error.strerror or error}"
            ) from error
    if not delivered:
        raise BrokenTunnel(f"port {endpoint.port} closed before it had taken all that was sent")


def _endpoint(port: int, endpoints: Sequence[TunnelEndpoint]) -> TunnelEndpoint:
    for endpoint in endpoints:
        if endpoint.port == port:
            return endpoint
    listed = ", ".join(str(endpoint.port) for endpoint in endpoints)
    raise NotFound(
        f"tunnel not available at port {port}: network.traffic_tunnel_endpoints "
        + (f"has {listed}" if listed else "has none")
    )


async def _connected(endpoint: TunnelEndpoint) -> socket.socket:
    try:
        async with asyncio.timeout(endpoint.connection_timeout):
            return await _dialed(endpoint.port)
    except TimeoutError:
        raise BrokenTunnel(
            f"port {endpoint.port} of the machine did not answer within "
            f"{endpoint.connection_timeout:g} s"
        ) from None
    except OSError as error:
        raise BrokenTunnel(
            f"port {endpoint.port} of the machine cannot be reached: {error.strerror or error}; "
            "start what listens there"
        ) from error


async def _dialed(port: int) -> socket.socket:
    """The older protocol first; where nothing listens on it, the newer."""
    faults: list[OSError] = []
    for family, host in _HOSTS:
        try:
            return await _dialed_at(family, host, port)
        except OSError as error:
            faults.append(error)
    raise faults[0]


async def _dialed_at(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, (host, port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _carry(first: bytes, stream: Stream, connection: socket.socket) -> bool:
    """Whether the port took all that came from the client."""
    up = _Upward(first, stream, connection)
    await both_ways(up.run(), _downward(stream, connection, up))
    return not up.undelivered


async def _downward(stream: Stream, connection: socket.socket, up: _Upward) -> None:
    """Until the port has said its last. A call has no way to say so but to end, so a client that
    is still sending is heard out first."""
    await from_socket(connection, lambda data: _reply(stream, data))
    await up.silence()


class _Upward:
    """What a client sends, on its way to the port."""

    def __init__(self, first: bytes, stream: Stream, connection: socket.socket) -> None:
        self._first = first
        self._stream = stream
        self._connection = connection
        self._received = 0
        self.undelivered = bool(first)
        """Whether something that was received has not got to the port."""
        self._ended = asyncio.Event()

    async def run(self) -> None:
        try:
            # A port that hears no more may still have something to say.
            with contextlib.suppress(ConnectionError):
                await asyncio.get_running_loop().sock_sendall(self._connection, self._first)
                await to_socket(self._data, self._connection)
                self._connection.shutdown(socket.SHUT_WR)
        finally:
            self._ended.set()

    async def silence(self) -> None:
        """Returns when nothing is under way, and nothing more seems to come."""
        patience = _SILENCE
        while not self._ended.is_set():
            before = self._received
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), patience)
            if self._received != before:
                patience = _PATIENCE
            elif not self.undelivered:
                return

    async def _data(self) -> bytes | None:
        self.undelivered = False
        message: robot.TunnelRequest | None = await self._stream.recv_message()
        if message is None:
            return None
        self._received += 1
        self.undelivered = bool(message.data)
        return message.data


async def _reply(stream: Stream, data: memoryview) -> None:
    # Written as the message that it is: made by its class, the data would be copied once more.
    await stream.send_message(b"".join((delimited(_DATA, len(data)), data)))


async def to_socket(
    receive: Callable[[], Awaitable[bytes | None]], connection: socket.socket
) -> None:
    """Until None is received."""
    loop = asyncio.get_running_loop()
    while (data := await receive()) is not None:
        await loop.sock_sendall(connection, data)


async def from_socket(
    connection: socket.socket, send: Callable[[memoryview], Awaitable[None]]
) -> None:
    """Until the other side ends. What is sent is only good until `send` returns."""
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(PIECE))
    while count := await loop.sock_recv_into(connection, buffer):
        await send(buffer[:count])
