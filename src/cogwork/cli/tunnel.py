"""`cogwork tunnel`: a port of a running machine, as if it were one of this computer."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import os
import socket
from typing import Any

import grpc
import grpc.aio

from cogwork.cli.dial import Misused, ask, dialed, failure
from cogwork.cli.terminal import FINE, complain, orderly_end, print_json
from cogwork.resource import sdk
from cogwork.wire.grpc import OPTIONS

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

from cogwork.robot.tunnel import from_socket, to_socket  # noqa: E402

_PATH = "/viam.robot.v1.RobotService/Tunnel"
_HOST = "127.0.0.1"
_GREETING = 1.0
"""Seconds that a machine gets to say that it has reached the port; not every server does."""


def tunnel(arguments: argparse.Namespace) -> int:
    run = _list if arguments.port is None else _lead
    with contextlib.suppress(KeyboardInterrupt), orderly_end():
        return dialed(arguments.address, lambda channel: run(channel, arguments))
    return FINE


def _list(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    tunnels = _tunnels(channel)
    if arguments.json:
        print_json([{"port": port, "connection_timeout": s} for port, s in tunnels.items()])
    elif tunnels:
        for port, seconds in tunnels.items():
            print(f"{port}  (given {seconds:g} s to answer)")
    else:
        print("the machine has no tunnels; network.traffic_tunnel_endpoints makes some")
    return FINE


def _lead(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    tunnels = _tunnels(channel)
    if arguments.port not in tunnels:
        known = ", ".join(map(str, tunnels)) or "none"
        raise Misused(
            f"the machine has no tunnel to port {arguments.port}; it has {known} "
            "(network.traffic_tunnel_endpoints)"
        )
    with _listening(arguments.address, arguments.port, arguments.local) as listener:
        asyncio.run(_serve(listener, arguments.address, arguments.port))
    return FINE


def _tunnels(channel: grpc.Channel) -> dict[int, float]:
    """The seconds that each port gets to answer."""
    listed = ask(channel, "ListTunnels", robot.ListTunnelsRequest(), robot.ListTunnelsResponse)
    return {each.port: each.connection_timeout.ToNanoseconds() / 1e9 for each in listed.tunnels}


def _listening(address: str, port: int, wanted: int | None) -> socket.socket:
    """On the port that is wanted; else on the machine's own number, or any that is free."""
    if _is_here(address):
        if wanted == port:
            raise Misused(f"port {port} of this computer would lead to itself; choose another")
        usual = [0]
    else:
        usual = [port, 0]
    fault: OSError | None = None
    for candidate in usual if wanted is None else [wanted]:
        try:
            listener = socket.create_server((_HOST, candidate))
        except OSError as error:
            fault = error
            continue
        listener.setblocking(False)
        return listener
    why = os.strerror(fault.errno or 0) if fault is not None else ""
    raise Misused(f"cannot listen on port {wanted or port}: {why}; choose another with --local")


def _is_here(address: str) -> bool:
    """Whether the machine is this computer, as far as its address tells."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve(listener: socket.socket, address: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    # Not ahead of the loop: Ctrl-C, of which this tells, is the loop's to hear.
    print(
        f"localhost:{listener.getsockname()[1]} leads to port {port} of the machine at {address}; "
        "Ctrl-C ends it",
        flush=True,
    )
    async with grpc.aio.insecure_channel(address, OPTIONS) as channel, asyncio.TaskGroup() as all_:
        while True:
            connection, _ = await loop.sock_accept(listener)
            all_.create_task(_carried(connection, channel, address, port))


async def _carried(
    connection: socket.socket, channel: grpc.aio.Channel, address: str, port: int
) -> None:
    """One connection, from its beginning to its end. Its trouble is not that of others."""
    with contextlib.closing(connection):
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start: Any = channel.stream_stream(
            _PATH,
            request_serializer=robot.TunnelRequest.SerializeToString,
            response_deserializer=robot.TunnelResponse.FromString,
        )
        carrying = _Carrying(connection, start(), port)
        try:
            await carrying.run()
            print(carrying.summary(), flush=True)
        except grpc.RpcError as error:
            complain(failure(error, address))
        except OSError as error:
            complain(f"a connection broke: {error.strerror}")


class _Carrying:
    def __init__(self, connection: socket.socket, call: Any, port: int) -> None:
        self._connection = connection
        self._call = call
        self._port = port
        self._sent = 0
        self._received = 0

    def summary(self) -> str:
        return f"a connection ended: {self._sent} bytes sent, {self._received} received"

    async def run(self) -> None:
        """Until the machine ends the call. A connection that sends no more may still receive."""
        up = asyncio.ensure_future(self._up())
        down = asyncio.ensure_future(to_socket(self._receive, self._connection))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            if not down.done():
                up.result()
            await down
        finally:
            self._call.cancel()
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _up(self) -> None:
        # The first message names the port, whether or not there is anything to send.
        try:
            await self._send(memoryview(b""))
            await self._connected()
            await from_socket(self._connection, self._send)
            await self._call.done_writing()
        except (asyncio.InvalidStateError, grpc.RpcError):
            return  # the call is over, and whoever reads is told why

    async def _connected(self) -> None:
        """The machine says so, or ends the call. Whoever writes just when a call ends never hears
        why (grpc.aio tells of an error of its own)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GREETING):
                await self._call.initial_metadata()

    async def _send(self, data: memoryview) -> None:
        await self._call.write(
            robot.TunnelRequest(destination_port=self._port, data=data.tobytes())
        )
        self._sent += len(data)

    async def _receive(self) -> bytes | None:
        message = await self._call.read()
        if message is grpc.aio.EOF:
            return None
        self._received += len(message.data)
        data: bytes = message.data
        return data
