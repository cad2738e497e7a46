"""Job schedules: an interval, a cron expression or continuous. Pure: callers pass in the time.

When daylight saving time starts or ends, cron expressions behave as in Debian's cron: a job whose
time is skipped is due right after the gap, and a job whose time occurs twice is due the first time.
An expression with six fields, or with `*` at the start of minute or hour, follows real time.

`cronsim` is imported when it is first used: most machines have no jobs, and all would start later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from cogwork.core import duration

MIN_INTERVAL = 0.01
"""Minimum seconds between two runs. Use `continuous` to run more often."""

_MAX_LENGTH = 200
_FORMAT_HINT = (
    'write a duration such as "10m", a cron expression such as "*/15 * * * *", or "continuous"'
)
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed interval: due at start + n * seconds. Times are from a monotonic clock."""

    seconds: float

    def next(self, after: float, start: float) -> float:
        return start + (self._count_until(after, start) + 1) * self.seconds

    def latest(self, until: float, start: float) -> float:
        """Return the last time at which the job was due, or the start."""
        return start + self._count_until(until, start) * self.seconds

    def _count_until(self, moment: float, start: float) -> int:
        # The division is inexact, so compute the due time of the nearest run like `next` does, and
        # check whether it has passed.
        nearest = round((moment - start) / self.seconds)
        count = nearest if start + nearest * self.seconds <= moment else nearest - 1
        return max(count, 0)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression, due by the wall clock. Times are seconds since 1970."""

    line: str

    def next(self, after: float, zone: tzinfo) -> float:
        from cronsim import CronSim

        # In an hour that occurs twice, CronSim may first return times that are already past. Skip
        # them.
        moments = CronSim(self.line, datetime.fromtimestamp(after, zone))
        return next(due for moment in moments if (due := moment.timestamp()) > after)


@dataclass(frozen=True, slots=True)
class Continuous:
    """A schedule that is due again as soon as the previous run ends."""


Schedule = Every | Cron | Continuous


def parse_schedule(text: str) -> Schedule:
    """Parse a schedule. The message of a ValueError explains what to write instead."""
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"the schedule exceeds {_MAX_LENGTH} characters; {_FORMAT_HINT}")
    words = text.split()
    if len(words) in (5, 6):
        return _parse_cron(" ".join(words))
    if len(words) == 1 and words[0].lower() == "continuous":
        return Continuous()
    if len(words) == 1 and words[0][0] in "+-.0123456789":
        return _parse_interval(words[0])
    raise ValueError(f'"{text}" is not a schedule; {_FORMAT_HINT}')


def _parse_interval(text: str) -> Every:
    seconds = duration.parse(text)
    if seconds < MIN_INTERVAL:
        raise ValueError(
            f'"{text}" is too short; the minimum is {duration.render(MIN_INTERVAL)}; '
            'write "continuous" to run without a pause'
        )
    return Every(seconds)


def _parse_cron(line: str) -> Cron:
    from cronsim import CronSim, CronSimError

    try:
        first = next(CronSim(line, _ANY_DAY), None)
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        raise ValueError(
            f'"{line}" is not a cron expression: invalid {field}; {_FIELD_ORDER_HINT}'
        ) from None
    if first is None:
        raise ValueError(f'"{line}" never matches a date; {_FIELD_ORDER_HINT}')
    return Cron(line)


_FIELD_ORDER_HINT = (
    "the fields are minute, hour, day of month, month, day of week; "
    "if there are six, the first is seconds"
)


class LocalZone(tzinfo):
    """The local time zone with its daylight saving rules, also for future dates."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return moment.replace(tzinfo=None).astimezone().utcoffset() if moment is not None else None

    def fromutc(self, moment: datetime) -> datetime:
        # Create a naive datetime first, because this sets `fold`, which distinguishes the two
        # occurrences of an hour at the end of daylight saving time.
        naive = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())  # noqa: DTZ006
        return naive.replace(tzinfo=self)

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return moment.replace(tzinfo=None).astimezone().tzname() if moment is not None else None
