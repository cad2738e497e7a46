"""Calendar windows: a cron line for the beginning, and a duration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    start: str
    """A cron line, such as "0 2 * * SAT"."""
    duration: timedelta

    def __post_init__(self) -> None:
        """Validate the window. Raise ValueError."""
        if self.duration <= timedelta():
            raise ValueError(f"the window {self.start} has no duration")
        try:
            CronSim(self.start, datetime(2000, 1, 1))  # noqa: DTZ001 - only to check the line
        except CronSimError as error:
            raise ValueError(f'"{self.start}" is not a cron line: {error}') from None

    def is_open(self, now: datetime) -> bool:
        """Return whether the window is open at a local time. The end is exclusive."""
        # The window is open if it began less than its duration ago.
        before = now - self.duration
        beginning = next(CronSim(self.start, before), None)
        return beginning is not None and before < beginning <= now

    def next_opening(self, now: datetime) -> datetime | None:
        return next(CronSim(self.start, now), None)


def find_closed_reason(windows: Sequence[CalendarWindow], now: datetime) -> str | None:
    """Return the reason why no update may begin now; None if a window is open or there are no
    windows."""
    if not windows or any(each.is_open(now) for each in windows):
        return None
    openings = [opening for each in windows if (opening := each.next_opening(now)) is not None]
    if not openings:
        return "the maintenance window never opens; change it in the settings of the agent"
    return f"the maintenance window opens at {min(openings):%Y-%m-%d %H:%M}"
