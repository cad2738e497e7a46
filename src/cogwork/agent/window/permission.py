"""Permission to interrupt the machine for an update, by the calendar and by the sensor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cogwork.agent.errors import ServerSilent
from cogwork.agent.supervision.probe import ServerProbe
from cogwork.agent.supervision.server_process import ServerProcess
from cogwork.agent.window.calendar import CalendarWindow, find_closed_reason
from cogwork.core.clock import Clock


class UpdatePermission:
    def __init__(
        self,
        server: ServerProcess,
        probe: ServerProbe,
        windows: Sequence[CalendarWindow],
        clock: Clock,
    ) -> None:
        self._server = server
        self._probe = probe
        self._windows = windows
        self._clock = clock

    async def find_denial(self) -> str | None:
        """Return the reason why an update must wait; None if it may begin now."""
        now = datetime.fromtimestamp(self._clock.time())  # noqa: DTZ006 - cron lines are local
        if (closed := find_closed_reason(self._windows, now)) is not None:
            return closed
        process_id = self._server.process_id
        if process_id is None:
            return None  # no server is running, so the update interrupts nothing
        try:
            answer = await self._probe.ask(process_id)
        except ServerSilent as error:
            return str(error)
        return None if answer.restart_allowed else answer.reason
