"""The last failure of a supervised program: its reason, and the time of the next start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cogwork.core.backoff import Backoff, RetryPolicy

_STABLE_AFTER: Final = 30.0
"""Seconds of running after which earlier failures no longer count."""


class LastFailure:
    def __init__(self, retry: RetryPolicy, redact: Callable[[str], str]) -> None:
        """Create a record without a failure. `redact` removes secrets from a text."""
        self._backoff = Backoff(retry)
        self._redact = redact
        self.reason = ""
        """The reason why the program does not run; empty if it runs."""
        self.last_lines: Sequence[str] = ()
        """The last lines of output before the failure; empty if the reason already quotes them."""
        self.retry_delay: float | None = 0.0
        """Seconds from the failure to the next start; None if the program is not restarted
        automatically."""

    @property
    def count(self) -> int:
        """Number of consecutive failures."""
        return self._backoff.failures

    @property
    def sentence(self) -> str:
        """The reason, and the time of the next start."""
        if self.retry_delay is None:
            return self.reason
        return f"{self.reason}; restarting in {self.retry_delay:.1f}s"

    @property
    def text(self) -> str:
        return "\n".join((self.sentence, *self.last_lines))

    @property
    def details(self) -> Mapping[str, object]:
        """The failure, in the form for the event journal."""
        delay = self.retry_delay
        return {
            "reason": self.reason,
            "failures": self.count,
            "retry_after": round(delay, 3) if delay is not None else None,
        }

    def record(
        self, reason: str, last_lines: Sequence[str] = (), *, can_retry: bool = True
    ) -> None:
        """Count a failure. The reason must already quote the last line of output."""
        self.reason = self._redact(reason)
        self.last_lines = [self._redact(line) for line in last_lines] if len(last_lines) > 1 else ()
        delay = self._backoff.next_delay()
        self.retry_delay = delay if can_retry else None

    def reset_count(self) -> None:
        self._backoff.reset()

    def count_run(self, seconds: float) -> None:
        """Reset the count if the program ran long enough to be considered stable."""
        if seconds >= _STABLE_AFTER:
            self.reset_count()
