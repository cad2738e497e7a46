"""The public port: its listening sockets, from which the front accepts connections."""

from __future__ import annotations

import socket

from cogwork.net.listen_sockets import (
    CannotListen,
    SocketAddress,
    address_of,
    explain_bind_error,
    open_listeners,
    resolve_addresses,
)
from cogwork.serving.front import Front


class PublicPort:
    def __init__(self, front: Front) -> None:
        self._front = front
        self._listeners: list[socket.socket] = []

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [listener.getsockname()[:2] for listener in self._listeners]

    async def listen(self, host: str, port: int) -> None:
        """Listen on this address instead of the current one. Open connections stay open.

        Raise CannotListen if that fails. The server then keeps the current address, unless another
        program has taken it.
        """
        addresses = await resolve_addresses(host, port)
        before = [address_of(listener) for listener in self._listeners]
        if port in {own for _, own in self.addresses}:
            # Close the current sockets first: they would block a bind to all interfaces on the same
            # port.
            await self.stop_listening()
        try:
            fresh = open_listeners(addresses)
        except OSError as error:
            if before and not self._listeners:
                await self._restore(before)
            raise CannotListen(
                f"cannot listen on {host or '*'}:{port}: {explain_bind_error(error)}"
            ) from error
        await self._use(fresh)

    async def stop_listening(self) -> None:
        """Stop accepting connections. Open connections stay open."""
        await self._use([])

    async def aclose(self) -> None:
        """Close all connections."""
        self._close_listeners()
        await self._front.aclose()

    async def _restore(self, addresses: list[SocketAddress]) -> None:
        try:
            await self._use(open_listeners(addresses))
        except OSError as error:
            raise CannotListen(
                f"cannot listen on the previous address again: {explain_bind_error(error)}"
            ) from error

    async def _use(self, listeners: list[socket.socket]) -> None:
        self._close_listeners()
        self._listeners = listeners
        await self._front.serve(listeners)

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners = []
