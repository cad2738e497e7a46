"""Stops everything that ended sessions moved, and retries until it has stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Container, Iterable
from typing import Final

from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.graph.name import ResourceName
from cogwork.robot.motion.claims import MotionClaims, MotionPlan
from cogwork.robot.motion.open_sessions import Session

_RETRY: Final = RetryPolicy(first=0.2, maximum=5.0)

_log = logging.getLogger("rdk.networking.session_manager")

StopMotion = Callable[
    [Collection[ResourceName], Collection[MotionPlan], str], Awaitable[Collection[ResourceName]]
]
"""A function that stops plans and moving resources, and ends their calls with the given reason. It
returns the stopped resources and releases their claims. It raises an error if some did not stop."""


class SessionStopper:
    """Stops the motion of ended sessions.

    A session keeps its claims until everything that it moved has stopped. A resource that another
    client has moved or stopped meanwhile is left alone.
    """

    def __init__(
        self,
        clock: Clock,
        claims: MotionClaims,
        known: Container[ResourceName],
        is_live: Callable[[ResourceName], bool],
        stop_motion: StopMotion,
    ) -> None:
        """Create a stopper. `is_live` returns whether a resource is built, so that it can be
        stopped."""
        self._clock = clock
        self._claims = claims
        self._known = known
        self._is_live = is_live
        self._stop_motion = stop_motion
        self._tasks: dict[Session, asyncio.Task[None]] = {}

    def stop(self, session: Session, why: str) -> None:
        """Stop everything that an ended session moved. End its calls with `why`.

        The caller does not wait: a resource that does not stop must not delay the end of other
        sessions.
        """
        running = self._tasks.get(session)
        if running is None or running.done():
            task = asyncio.get_running_loop().create_task(self._stop(session, why))
            self._tasks[session] = task
            task.add_done_callback(lambda done: self._forget_task(session, done))

    async def aclose(self) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_task(self, session: Session, done: asyncio.Task[None]) -> None:
        if self._tasks.get(session) is done:
            del self._tasks[session]

    async def _stop(self, session: Session, why: str) -> None:
        names, failures = sorted(session.moved), 0
        while True:
            error = await self._try_stop(session, names, why) if names else None
            if error is not None:
                failures += 1
            if failures == 1 and error is not None:
                _log_failure(session, error)
            if not session.moved:
                return
            await self._clock.sleep(_RETRY.delay(max(failures, 1)))
            self._forget_removed(session)
            # Try all built resources: a restarted module may have built its resources again
            # meanwhile.
            names = sorted(filter(self._is_live, session.moved))

    async def _try_stop(
        self, session: Session, names: Collection[ResourceName], why: str
    ) -> Exception | None:
        try:
            stopped = await self._stop_motion(names, self._claims.plans_of(session), why)
        except Exception as error:
            return error
        self._release(session, names)
        if stopped:
            listed = ", ".join(name.short for name in sorted(stopped))
            _log.warning(
                "stopped %s: last moved by session %s, which has ended", listed, session.id
            )
        return None

    def _forget_removed(self, session: Session) -> None:
        self._release(session, [name for name in session.moved if name not in self._known])

    def _release(self, session: Session, names: Iterable[ResourceName]) -> None:
        for name in names:
            if name in session.moved:
                self._claims.take(name, None)


def _log_failure(session: Session, error: Exception) -> None:
    _log.error(
        "could not stop the resources that session %s moved: %s; retrying until they stop; "
        "if anything still moves, switch off its power",
        session.id,
        error_text(error),
    )
