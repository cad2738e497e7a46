"""A budget of event loop time, for work that would otherwise use all of it."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

from cogwork.core.clock import Clock

DEFAULT_SHARE = 0.25
"""Share of the loop's time that all measured steps may use. The loop's own work around each step is
not measured and takes about as long again."""

T = TypeVar("T")


class LoopBudget:
    """A token bucket without burst: the time that a run took delays the next run."""

    def __init__(self, clock: Clock, share: float = DEFAULT_SHARE) -> None:
        self._clock = clock
        self._share = share
        self._paid_until = 0.0

    def spend(self, seconds: float) -> float:
        """Count the time that was used, and return the seconds to pause. Concurrent users pause one
        after the other."""
        now = self._clock.monotonic()
        self._paid_until = max(self._paid_until, now - seconds) + seconds / self._share
        return max(0.0, self._paid_until - now)


class LoopMeter:
    """Measures how long a coroutine occupies the event loop, excluding the time that it waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds = 0.0

    async def measure(self, work: Coroutine[Any, Any, T]) -> T:
        return await _MeasuredAwaitable(work, self)

    def step(self, steps: Generator[Any, Any, T], error: BaseException | None) -> Any:
        started = self._clock.monotonic()
        try:
            return steps.send(None) if error is None else steps.throw(error)
        finally:
            self.seconds += self._clock.monotonic() - started


class _MeasuredAwaitable(Awaitable[T]):
    def __init__(self, work: Coroutine[Any, Any, T], meter: LoopMeter) -> None:
        self._work = work
        self._meter = meter

    def __await__(self) -> Generator[Any, Any, T]:
        steps, error = self._work.__await__(), None
        while True:
            try:
                waiting = self._meter.step(steps, error)
            except StopIteration as end:
                result: T = end.value
                return result
            error = None
            try:
                yield waiting
            except BaseException as thrown:
                error = thrown
