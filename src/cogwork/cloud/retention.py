"""Removes logs that are over their time."""

from __future__ import annotations

import logging
from typing import Final

from cogwork.cloud.storage.log_store import LogStore, LogsUnavailable
from cogwork.core.clock import Clock

INTERVAL: Final = 3600.0
"""Seconds between two removals."""

_log = logging.getLogger("cloud.retention")


async def expire_periodically(logs: LogStore, clock: Clock) -> None:
    """Remove the logs that are older than 30 days, now and every hour."""
    while True:
        try:
            await logs.expire(int(clock.time() * 1e6))
        except LogsUnavailable as error:
            _log.error("logs that are over their time are still stored: %s; retrying later", error)
        await clock.sleep(INTERVAL)
