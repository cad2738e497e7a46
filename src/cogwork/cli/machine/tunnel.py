"""`cogwork tunnel`: forward a machine's port to this computer."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
from typing import Any

import grpc
import grpc.aio

from cogwork.cli.client.grpc_client import (
    CommandError,
    call_robot,
    format_rpc_error,
    login_metadata,
    with_channel,
)
from cogwork.cli.terminal import EXIT_OK, exit_on_signals, print_error, print_json
from cogwork.core.os_error_text import os_reason
from cogwork.net.address import TLS_PREFIX, is_loopback_address
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.clients.tls_credentials import tls_credentials
from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

from cogwork.robot.services.tunnel import copy_from_socket, copy_to_socket  # noqa: E402

_PATH = "/viam.robot.v1.RobotService/Tunnel"
_HOST = "127.0.0.1"
_CONNECT_TIMEOUT = 1.0
"""Seconds to wait for the machine to confirm the connection. Some servers never confirm."""


def tunnel(arguments: argparse.Namespace) -> int:
    run = _print_tunnels if arguments.port is None else _run_tunnel
    with exit_on_signals():
        return with_channel(arguments.address, lambda channel: run(channel, arguments))


def _print_tunnels(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    tunnels = _list_tunnels(channel)
    if arguments.json:
        print_json([{"port": port, "connection_timeout": s} for port, s in tunnels.items()])
    elif tunnels:
        for port, seconds in tunnels.items():
            print(f"{port}  (connection timeout {seconds:g}s)")
    else:
        print("the machine has no tunnels; add them to network.traffic_tunnel_endpoints")
    return EXIT_OK


def _run_tunnel(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    tunnels = _list_tunnels(channel)
    if arguments.port not in tunnels:
        known = ", ".join(map(str, tunnels)) or "none"
        raise CommandError(
            f"the machine has no tunnel to port {arguments.port}; available: {known} "
            "(network.traffic_tunnel_endpoints)"
        )
    with _open_listener(arguments.address, arguments.port, arguments.local) as listener:
        asyncio.run(_serve(listener, arguments.address, arguments.port))
    return EXIT_OK


def _list_tunnels(channel: grpc.Channel) -> dict[int, float]:
    """Return the connection timeout of each port, in seconds."""
    listed = call_robot(
        channel, "ListTunnels", robot.ListTunnelsRequest(), robot.ListTunnelsResponse
    )
    return {each.port: each.connection_timeout.ToNanoseconds() / 1e9 for each in listed.tunnels}


def _open_listener(address: str, port: int, wanted: int | None) -> socket.socket:
    """Listen on the wanted port. If none is wanted, use the number of the machine's port, or any
    free port if that number is not available here."""
    if is_loopback_address(address):
        if wanted == port:
            raise CommandError(
                f"local port {port} would forward to itself; choose another with --local"
            )
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
    raise CommandError(
        f"cannot listen on port {wanted or port}: {why}; choose another with --local"
    )


async def _serve(listener: socket.socket, address: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    # Do not print "press Ctrl-C" before the loop runs, because only the loop handles Ctrl-C.
    print(
        f"forwarding localhost:{listener.getsockname()[1]} to port {port} of the machine at "
        f"{address}; press Ctrl-C to stop",
        flush=True,
    )
    metadata = await asyncio.to_thread(login_metadata, address)
    async with (
        _open_channel(address) as channel,
        asyncio.TaskGroup() as tasks,
    ):
        while True:
            connection, _ = await loop.sock_accept(listener)
            tasks.create_task(_forward_connection(connection, channel, metadata, address, port))


def _open_channel(address: str) -> grpc.aio.Channel:
    if address.startswith(TLS_PREFIX):
        target = address.removeprefix(TLS_PREFIX)
        return grpc.aio.secure_channel(target, tls_credentials(), GRPC_OPTIONS)
    return grpc.aio.insecure_channel(address, GRPC_OPTIONS)


async def _forward_connection(
    connection: socket.socket,
    channel: grpc.aio.Channel,
    metadata: tuple[tuple[str, str], ...],
    address: str,
    port: int,
) -> None:
    """Forward one connection until it ends. Its errors do not affect other connections."""
    with contextlib.closing(connection):
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start: Any = channel.stream_stream(
            _PATH,
            request_serializer=robot.TunnelRequest.SerializeToString,
            response_deserializer=robot.TunnelResponse.FromString,
        )
        forwarded = _ForwardedConnection(connection, start(metadata=metadata), port)
        try:
            await forwarded.run()
            print(forwarded.summary(), flush=True)
        except grpc.RpcError as error:
            print_error(format_rpc_error(error, address))
        except OSError as error:
            print_error(f"connection failed: {os_reason(error)}")


class _ForwardedConnection:
    def __init__(self, connection: socket.socket, call: Any, port: int) -> None:
        self._connection = connection
        self._call = call
        self._port = port
        self._sent = 0
        self._received = 0

    def summary(self) -> str:
        return f"connection closed: {self._sent} bytes sent, {self._received} received"

    async def run(self) -> None:
        """Forward until the machine ends the call. A half-closed connection still receives."""
        up = asyncio.ensure_future(self._forward_input())
        down = asyncio.ensure_future(copy_to_socket(self._receive, self._connection))
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

    async def _forward_input(self) -> None:
        # The first message names the port, even if there is no data to send yet.
        try:
            await self._send(memoryview(b""))
            await self._wait_until_connected()
            await copy_from_socket(self._connection, self._send)
            await self._call.done_writing()
        except (asyncio.InvalidStateError, grpc.RpcError):
            return  # the call has ended; the reading side reports the reason

    async def _wait_until_connected(self) -> None:
        """Wait until the machine confirms the connection or ends the call.

        A write while the call ends would raise an error of grpc.aio that hides the reason for the
        end.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_TIMEOUT):
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
