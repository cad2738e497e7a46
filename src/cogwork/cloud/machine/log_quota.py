"""Quotas for the log lines of parts and organizations.

Each has two rates. The sustained rate limits how fast the disk fills; its burst allows a machine to
send all lines that it has collected while it was offline. The peak rate limits the load at any
moment: requests above it are answered later, which slows down the sender.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from cogwork.core.limits.token_bucket import Rate, TokenBucket

LINES_PER_SECOND: Final = 20.0
"""Default sustained rate of a part: 1.7 million lines per day."""

_LINE_BYTES: Final = 512
"""Average bytes of a line, for converting rates in lines to rates in bytes."""
_BURST_SECONDS: Final = 12_500
"""Seconds of the sustained rate in a burst. A full spool (250,000 lines, 128 MB) fits."""
_PART_PEAK_LINES: Final = Rate(250, 2_000)
_PART_PEAK_BYTES: Final = Rate(4 << 20, 16 << 20)
"""Default peak rates of a part, in lines and in bytes. At these rates, a part sends a full spool in
a quarter of an hour."""
_ORGANIZATION_PEAK: Final = 10
_ORGANIZATION_SUSTAINED: Final = 50
"""The sustained rates of an organization, as a multiple of the rates of a part."""
_MAX_PAUSE: Final = 2.0
"""Maximum seconds that a request may wait. Servers of other vendors give up after four seconds."""
_MIN_SHARE: Final = 0.01
_MAX_TRACKED: Final = 4096
"""Number of tracked parts, and of organizations, above which full buckets are dropped."""


@dataclass(frozen=True, slots=True)
class LogRates:
    """The rates of a part, or of an organization."""

    sustained_lines: Rate
    sustained_bytes: Rate
    peak_lines: Rate
    peak_bytes: Rate


class Verdict(NamedTuple):
    is_admitted: bool
    seconds: float
    """Seconds to wait before the lines are stored, or before the sender may try again."""
    holder: str
    """The holder of the deciding quota: `part` or `organization`."""


def part_rates(lines_per_second: float = LINES_PER_SECOND) -> LogRates:
    sustained = Rate(lines_per_second, lines_per_second * _BURST_SECONDS)
    return LogRates(sustained, sustained.scaled(_LINE_BYTES), _PART_PEAK_LINES, _PART_PEAK_BYTES)


def organization_rates(part: LogRates) -> LogRates:
    return LogRates(
        part.sustained_lines.scaled(_ORGANIZATION_SUSTAINED),
        part.sustained_bytes.scaled(_ORGANIZATION_SUSTAINED),
        part.peak_lines.scaled(_ORGANIZATION_PEAK),
        part.peak_bytes.scaled(_ORGANIZATION_PEAK),
    )


class LogQuota:
    def __init__(self, now: Callable[[], float], part: LogRates | None = None) -> None:
        """`now` returns the monotonic time in seconds."""
        part = part or part_rates()
        self._now = now
        self._parts = _Holders("part", part)
        self._organizations = _Holders("organization", organization_rates(part))

    def admit(
        self, part: str, organization: str, lines: int, size: int, share: float = 1.0
    ) -> Verdict:
        """Count lines toward the quotas of a part and its organization, if both allow the lines.

        `share` is the fraction of the sustained rates that the free disk space allows.
        """
        now, share = self._now(), max(share, _MIN_SHARE)
        found = [
            self._parts.find(part, now, share),
            self._organizations.find(organization, now, share),
        ]
        for each in found:
            each.refill(now, share)
        late = max(found, key=lambda each: each.retry_after)
        if late.retry_after > 0:
            return Verdict(False, late.retry_after, late.name)
        busy = max(found, key=lambda each: each.pause)
        if busy.pause > _MAX_PAUSE:
            return Verdict(False, busy.pause, busy.name)
        for each in found:
            each.take(lines, size)
        return Verdict(True, busy.pause, busy.name)


class _Holder:
    """The token buckets of one part or organization."""

    def __init__(self, name: str, rates: LogRates, now: float, share: float) -> None:
        self.name = name
        self.retry_after = 0.0
        self.pause = 0.0
        self._rates = rates
        self._lines = TokenBucket(rates.sustained_lines.scaled(share), now)
        self._bytes = TokenBucket(rates.sustained_bytes.scaled(share), now)
        self._peak_lines = TokenBucket(rates.peak_lines, now)
        self._peak_bytes = TokenBucket(rates.peak_bytes, now)

    def refill(self, now: float, share: float) -> None:
        rates = self._rates
        self.retry_after = max(
            self._lines.wait(rates.sustained_lines.scaled(share), now),
            self._bytes.wait(rates.sustained_bytes.scaled(share), now),
        )
        self.pause = max(
            self._peak_lines.wait(rates.peak_lines, now),
            self._peak_bytes.wait(rates.peak_bytes, now),
        )

    def take(self, lines: int, size: int) -> None:
        for bucket in (self._lines, self._peak_lines):
            bucket.take(lines)
        for bucket in (self._bytes, self._peak_bytes):
            bucket.take(size)

    def is_full(self, now: float, share: float) -> bool:
        return self._lines.is_full(
            self._rates.sustained_lines.scaled(share), now
        ) and self._bytes.is_full(self._rates.sustained_bytes.scaled(share), now)


class _Holders:
    def __init__(self, name: str, rates: LogRates) -> None:
        self._name = name
        self._rates = rates
        self._found: dict[str, _Holder] = {}
        self._max_tracked = _MAX_TRACKED

    def find(self, key: str, now: float, share: float) -> _Holder:
        found = self._found.get(key)
        if found is None:
            self._forget_full(now, share)
            found = self._found[key] = _Holder(self._name, self._rates, now, share)
        return found

    def _forget_full(self, now: float, share: float) -> None:
        """Drop full buckets, because new ones would behave the same."""
        if len(self._found) < self._max_tracked:
            return
        self._found = {
            key: each for key, each in self._found.items() if not each.is_full(now, share)
        }
        self._max_tracked = max(_MAX_TRACKED, 2 * len(self._found))
