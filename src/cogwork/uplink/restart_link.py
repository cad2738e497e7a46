"""Asks the cloud whether a user has requested a restart of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from viam.gen.app.v1.robot_pb2 import NeedsRestartRequest, NeedsRestartResponse

from cogwork.core.clock import Clock
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import CloudUnavailable

_NEEDS_RESTART: Final = "/viam.app.v1.RobotService/NeedsRestart"
_TIMEOUT: Final = 15.0
_FIRST_INTERVAL: Final = 5.0
_MIN_INTERVAL: Final = 1.0
_MAX_INTERVAL: Final = 3600.0


class RestartLink:
    def __init__(
        self, client: CloudClient, part: str, clock: Clock, restart: Callable[[str], None]
    ) -> None:
        self._client = client
        self._part = part
        self._clock = clock
        self._restart = restart
        self._hint = asyncio.Event()

    def ask_soon(self) -> None:
        self._hint.set()

    async def run(self) -> None:
        """Ask repeatedly until cancelled."""
        interval = _FIRST_INTERVAL
        while True:
            hint = asyncio.ensure_future(self._hint.wait())
            try:
                await self._clock.wait([hint], interval)
            finally:
                hint.cancel()
            self._hint.clear()
            interval = await self._ask(interval)

    async def _ask(self, interval: float) -> float:
        """Ask once. Return the seconds until the next request."""
        request = NeedsRestartRequest(id=self._part)
        try:
            reply = await self._client.call(_NEEDS_RESTART, request, NeedsRestartResponse, _TIMEOUT)
        except CloudUnavailable:
            # Do not log this: `JoinedSource` already reports that the cloud cannot be reached.
            return max(interval, _FIRST_INTERVAL)
        if reply.must_restart:
            self._restart("someone asked for a restart in the cloud")
        wanted = reply.restart_check_interval.ToMilliseconds() / 1000
        return min(max(wanted, _MIN_INTERVAL), _MAX_INTERVAL)
