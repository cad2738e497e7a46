"""The current problems of the cloud, for operators and their monitoring."""

from __future__ import annotations

import asyncio
import enum
import logging
from typing import Any, NamedTuple

from cogwork.core import duration
from cogwork.core.clock import Clock

_log = logging.getLogger("cloud.health")


class StoreState(enum.IntEnum):
    OK = 0
    DEGRADED = 1
    """A function of the cloud does not work, but calls are answered."""
    FAILING = 2
    """Changes are lost or refused."""


class Problem(NamedTuple):
    state: StoreState
    reason: str
    since: float
    """The monotonic time when the problem began, in seconds."""
    until: float | None
    """The monotonic time when the problem ends if it is not reported again; None for never."""


class CloudHealth:
    """The problems of the cloud. Only the event loop may use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._problems: dict[str, Problem] = {}
        self._change: asyncio.Future[None] | None = None

    @property
    def state(self) -> StoreState:
        self._end_old_problems()
        return max((each.state for each in self._problems.values()), default=StoreState.OK)

    @property
    def is_serving(self) -> bool:
        return self.state is not StoreState.FAILING

    def has_problem(self, component: str) -> bool:
        return component in self._problems

    def report(
        self, component: str, state: StoreState, reason: str, lasts: float | None = None
    ) -> None:
        """Show a problem until `recover` is called, at most for `lasts` seconds.

        Log the problem when it begins, and when its state changes.
        """
        now, known = self._clock.monotonic(), self._problems.get(component)
        since = known.since if known is not None else now
        until = now + lasts if lasts is not None else None
        self._problems[component] = Problem(state, reason, since, until)
        if known is None or known.state is not state:
            level = logging.ERROR if state is StoreState.FAILING else logging.WARNING
            _log.log(level, 'the health of "%s" is %s: %s', component, state.name.lower(), reason)
            self._notify()

    def recover(self, component: str) -> None:
        if (problem := self._problems.pop(component, None)) is not None:
            lasted = duration.render(self._clock.monotonic() - problem.since)
            _log.info('the health of "%s" is ok again after %s', component, lasted)
            self._notify()

    def change(self) -> asyncio.Future[None]:
        """Return a future that is done when a problem begins or ends."""
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def as_json(self) -> dict[str, Any]:
        state, now = self.state, self._clock.monotonic()
        return {
            "status": state.name.lower(),
            "problems": [
                {
                    "component": component,
                    "status": problem.state.name.lower(),
                    "reason": problem.reason,
                    "seconds": round(now - problem.since),
                }
                for component, problem in sorted(self._problems.items())
            ],
        }

    def _end_old_problems(self) -> None:
        now = self._clock.monotonic()
        for component, problem in [*self._problems.items()]:
            if problem.until is not None and problem.until <= now:
                self.recover(component)

    def _notify(self) -> None:
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)
