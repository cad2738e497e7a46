"""When a job is due: every so often, by a cron line, or all the time. Pure: it knows no clock.

Around a change of daylight saving time a cron line does as Debian's cron: what is due at a time of
day that is left out is due right after the gap, and at one that comes twice it is due the first
time. A line whose minute or hour begins with `*`, and one of six fields, is due by real time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim, CronSimError

from cogwork.core import duration

SHORTEST = 0.01
"""Seconds between two runs. Whoever wants more means all the time."""

_LONGEST_TEXT = 200
_FORMS = 'write a duration such as "10m", a cron line such as "*/15 * * * *", or "continuous"'
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Every:
    """Due at start + n * period. Moments are counted on a clock that never jumps."""

    seconds: float

    def next(self, after: float, start: float) -> float:
        return start + (self._due_until(after, start) + 1) * self.seconds

    def latest(self, until: float, start: float) -> float:
        """The last moment at which it was due, or the start."""
        return start + self._due_until(until, start) * self.seconds

    def _due_until(self, moment: float, start: float) -> int:
        # A quotient may lie a hair beside the whole number; the product is what runs are due at.
        nearest = round((moment - start) / self.seconds)
        count = nearest if start + nearest * self.seconds <= moment else nearest - 1
        return max(count, 0)


@dataclass(frozen=True, slots=True)
class Cron:
    """Due by the wall clock. Moments are seconds since 1970."""

    line: str

    def next(self, after: float, zone: tzinfo) -> float:
        # In an hour that comes twice, the first ones found may be those of its first time.
        moments = CronSim(self.line, datetime.fromtimestamp(after, zone))
        return next(due for moment in moments if (due := moment.timestamp()) > after)


@dataclass(frozen=True, slots=True)
class Continuous:
    """Due again as soon as it is done."""


Schedule = Every | Cron | Continuous


def read_schedule(text: str) -> Schedule:
    """A ValueError says what to write instead."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a schedule has at most {_LONGEST_TEXT} characters; {_FORMS}")
    words = text.split()
    if len(words) in (5, 6):
        return _cron(" ".join(words))
    if len(words) == 1 and words[0].lower() == "continuous":
        return Continuous()
    if len(words) == 1 and words[0][0] in "+-.0123456789":
        return _every(words[0])
    raise ValueError(f'"{text}" is no schedule; {_FORMS}')


def _every(text: str) -> Every:
    seconds = duration.parse(text)
    if seconds < SHORTEST:
        raise ValueError(
            f'"{text}" is too short: a job is due every {duration.render(SHORTEST)} at most; for '
            'one that runs all the time write "continuous"'
        )
    return Every(seconds)


def _cron(line: str) -> Cron:
    try:
        first = next(CronSim(line, _ANY_DAY), None)
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        raise ValueError(f'"{line}" is no cron line: look at its {field}; {_ORDER}') from None
    if first is None:
        raise ValueError(f'"{line}" is a day that never comes; {_ORDER}')
    return Cron(line)


_ORDER = "the fields are minute, hour, day of month, month, day of week; with six, second is first"


class LocalZone(tzinfo):
    """The time zone of this computer, with its rules: also of a summer that is not yet here."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return moment.replace(tzinfo=None).astimezone().utcoffset() if moment is not None else None

    def fromutc(self, moment: datetime) -> datetime:
        # Only a naive one says of which of two equal hours it is.
        naive = datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp())  # noqa: DTZ006
        return naive.replace(tzinfo=self)

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return moment.replace(tzinfo=None).astimezone().tzname() if moment is not None else None
