"""The last failure of a supervised program: why it does not run, and when it is started again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cogwork.core.backoff import Backoff, RetryPolicy

_STABLE_AFTER: Final = 30.0
"""Seconds of running after which earlier failures no longer count."""


class LastFailure:
    def __init__(self, retry: RetryPolicy, redact: Callable[[str], str]) -> None:
        """`redact` removes the secrets of the configuration from a text."""
        self._backoff = Backoff(retry)
        self._redact = redact
        self.reason = ""
        """Why the program does not run; empty if nothing is wrong."""
        self.last_lines: Sequence[str] = ()
        """Last lines of output before the failure, if the reason does not quote all of them."""
        self.retry_delay: float | None = 0.0
        """Seconds from the failure to the next start; None if the program is not started again by
        itself."""

    @property
    def count(self) -> int:
        """How often in a row it has failed."""
        return self._backoff.failures

    @property
    def sentence(self) -> str:
        """The reason, and when the program is started again."""
        if self.retry_delay is None:
            return self.reason
        return f"{self.reason}; restarting in {self.retry_delay:.1f}s"

    @property
    def text(self) -> str:
        return "\n".join((self.sentence, *self.last_lines))

    @property
    def details(self) -> Mapping[str, object]:
        """The failure as it is recorded in the journal of the machine."""
        delay = self.retry_delay
        return {
            "reason": self.reason,
            "failures": self.count,
            "retry_after": round(delay, 3) if delay is not None else None,
        }

    def record(
        self, reason: str, last_lines: Sequence[str] = (), *, can_retry: bool = True
    ) -> None:
        """Count a failure. The reason quotes the last line of output already."""
        self.reason = self._redact(reason)
        self.last_lines = [self._redact(line) for line in last_lines] if len(last_lines) > 1 else ()
        delay = self._backoff.next_delay()
        self.retry_delay = delay if can_retry else None

    def reset_count(self) -> None:
        self._backoff.reset()

    def count_run(self, seconds: float) -> None:
        """Reset the count if the program has run for so long that it is stable."""
        if seconds >= _STABLE_AFTER:
            self.reset_count()
