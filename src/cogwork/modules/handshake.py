"""The handshake with a module: wait until its process is ready to serve."""

from __future__ import annotations

import asyncio
import contextlib
import os

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.modules.client import ModuleCallError, ModuleCapabilities, ModuleClient, ReplyTooLarge
from cogwork.subprocesses.process import Child

_SOCKET_POLL = 0.02
"""Seconds between two checks for the module's socket."""
_READY_POLL = 0.2
"""Seconds between two Ready calls."""
_EXIT_HINT = (
    "a module must serve until it is stopped: with the SDK, call Module.run_from_registry()"
)


class NotRunning(CogworkError):
    """A module is not running, for the reason in the message."""

    status = "UNAVAILABLE"

    def __init__(self, message: str, last_lines: tuple[str, ...] = ()) -> None:
        """Create the error. `last_lines`: the output of the module before it exited."""
        super().__init__(message)
        self.last_lines = last_lines


class Handshake:
    def __init__(self, address: str, parent: str, timeout: float, clock: Clock) -> None:
        """Set up the handshake.

        `address`: the socket of the module. `parent`: the socket on which the module calls the
        machine. `timeout`: seconds until the module must be ready.
        """
        self._address = address
        self._parent = parent
        self._timeout = timeout
        self._clock = clock

    async def perform(self, child: Child, client: ModuleClient) -> ModuleCapabilities:
        """Wait until the module is ready. Raise NotRunning if its process exits first or the
        timeout expires."""
        handshake = asyncio.ensure_future(self._wait_ready(client))
        try:
            await self._clock.wait({handshake, child.exited}, self._timeout)
            if handshake.done():
                return handshake.result()
        finally:
            handshake.cancel()
            await asyncio.gather(handshake, return_exceptions=True)
        if child.exited.done():
            status = child.exited.result()
            message = f"{status.description} before it was ready"
            if status.code == 0:
                message += f"; {_EXIT_HINT}"
            raise NotRunning(message, status.last_lines)
        raise NotRunning(
            f"was not ready within {self._timeout:g}s; see its log, or raise "
            "VIAM_MODULE_STARTUP_TIMEOUT"
        )

    async def _wait_ready(self, client: ModuleClient) -> ModuleCapabilities:
        is_path = self._address.startswith("/")
        while is_path and not os.path.exists(self._address):  # noqa: PTH110, ASYNC240
            await self._clock.sleep(_SOCKET_POLL)
        while True:
            with contextlib.suppress(_NotListening):
                capabilities = await self._call_ready(client)
                if capabilities is not None:
                    return capabilities
            await self._clock.sleep(_READY_POLL)

    async def _call_ready(self, client: ModuleClient) -> ModuleCapabilities | None:
        try:
            return await client.ready(self._parent, self._timeout)
        except ReplyTooLarge as error:
            raise NotRunning(f"cannot be used: {error}") from None
        except ModuleCallError as error:
            if error.status == "UNAVAILABLE":
                raise _NotListening from None
            raise NotRunning(f"rejected the Ready call: {error}") from None


class _NotListening(Exception):
    """The socket of the module does not accept connections yet."""
