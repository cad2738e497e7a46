"""Stores the log lines of machines, within their quotas and the free disk space."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from viam.gen.app.v1.robot_pb2 import LogRequest
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.fleet.log_losses import LogLosses
from cogwork.cloud.machine.log_lines import limit_entry, to_line
from cogwork.cloud.machine.log_quota import LogQuota, Verdict
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.bus import log_topic
from cogwork.cloud.storage.disk_space import DiskSpace
from cogwork.cloud.storage.log_store import LogLine
from cogwork.cloud.storage.tables import PartRow
from cogwork.core.errors import CogworkError, InvalidRequest

_MAX_LINES: Final = 1000
_SLICE: Final = 20
"""Number of lines to prepare before other calls get a turn. It takes half a millisecond."""


class LogQuotaSpent(CogworkError):
    """A part or its organization has sent more log lines than its quota allows."""

    status = "RESOURCE_EXHAUSTED"

    def __init__(self, retry_after: float, holder: str) -> None:
        self.retry_after = retry_after
        super().__init__(
            f"the quota of this {holder} for log lines is spent; send fewer lines, and try again "
            f"in {max(1.0, retry_after):.0f}s"
        )


class LogIntake:
    def __init__(
        self, context: CloudContext, disk: DiskSpace, quota: LogQuota, losses: LogLosses
    ) -> None:
        self._context = context
        self._disk = disk
        self._quota = quota
        self.losses = losses

    async def store(
        self, part: PartRow, request: LogRequest, check_again: Callable[[], Awaitable[object]]
    ) -> None:
        """Store the lines of a part, and send them to readers that follow its log.

        If the lines must wait for the quota, `check_again` is called afterwards, and raises if the
        access of the part has ended. Raise LogQuotaSpent, DiskLow or LogsUnavailable.
        """
        if len(request.logs) > _MAX_LINES:
            raise InvalidRequest(f"more than {_MAX_LINES} lines at once; send fewer at a time")
        if not request.logs:
            return
        pause = self._admit(part, request)
        if pause > 0:
            await self._context.clock.sleep(pause)
            await check_again()
        await self._context.logs.append(
            await _prepare_lines(part.id, request.logs), self._context.now()
        )
        self.losses.note_dropped(part.id, request.logs)
        self._context.bus.publish(log_topic(part.id), request.SerializeToString())

    def _admit(self, part: PartRow, request: LogRequest) -> float:
        """Return the seconds that the request should wait. Raise LogQuotaSpent or DiskLow."""
        count = len(request.logs)
        self._disk.require_any()
        verdict: Verdict = self._quota.admit(
            part.id, part.organization_id, count, request.ByteSize(), self._disk.last.share
        )
        if not verdict.is_admitted:
            self.losses.note_refused(part.id, count)
            raise LogQuotaSpent(verdict.seconds, verdict.holder)
        return verdict.seconds


async def _prepare_lines(part: str, entries: Sequence[LogEntry]) -> list[LogLine]:
    """Convert the entries to lines, and limit their size."""
    lines: list[LogLine] = []
    for start in range(0, len(entries), _SLICE):
        for entry in entries[start : start + _SLICE]:
            limit_entry(entry)
            lines.append(to_line(part, entry))
        await asyncio.sleep(0)
    return lines
