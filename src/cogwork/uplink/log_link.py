"""Sends the log of a machine to its cloud."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from viam.gen.app.v1.robot_pb2 import LogRequest, LogResponse

from cogwork.core.clock import Clock
from cogwork.logs.entry import Entry
from cogwork.logs.spool import Spool
from cogwork.logs.upload import QuotaSpent, Uploader
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import RetryLater
from cogwork.uplink.log_message import to_log_message

_LOG: Final = "/viam.app.v1.RobotService/Log"
_TIMEOUT: Final = 15.0
_FINISH_TIMEOUT: Final = 2.0
"""Timeout in seconds for the last lines when the machine stops."""


class LogLink:
    def __init__(self, spool: Spool, client: CloudClient, part: str, clock: Clock) -> None:
        self._spool = spool
        self._client = client
        self._part = part
        self._uploader = Uploader(spool, self._send, clock)

    async def run(self) -> None:
        """Send log lines until cancelled."""
        await self._uploader.run()

    def put(self, entry: Entry) -> None:
        self._spool.put(entry)

    def retry_now(self) -> None:
        """Try to send the waiting lines at once, because the cloud answers again."""
        self._uploader.retry_now()

    async def aclose(self) -> None:
        """Send the last lines within a short timeout. Keep unsent lines on disk."""
        await self._uploader.finish(_FINISH_TIMEOUT)
        await asyncio.to_thread(self._spool.close)

    async def _send(self, entries: Sequence[Entry]) -> None:
        request = LogRequest(id=self._part, logs=map(to_log_message, entries))
        try:
            await self._client.call(_LOG, request, LogResponse, _TIMEOUT)
        except RetryLater as refusal:
            raise QuotaSpent(refusal.retry_after) from refusal


async def open_log_link(directory: Path, client: CloudClient, part: str, clock: Clock) -> LogLink:
    """Open the log link of a part. Raise SpoolInUse if another server uses the directory."""
    spool = await asyncio.to_thread(Spool, directory)
    return LogLink(spool, client, part, clock)
