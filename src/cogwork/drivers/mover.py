"""Moves the joints of something, for whichever command is the newest."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

from cogwork.core.clock import Clock, Waitable
from cogwork.drivers.course import Course, Joints
from cogwork.drivers.turns import Turn, Turns

T = TypeVar("T")


class Mover:
    """Of the joints of one thing. An older move that a newer one ends fails, and says so."""

    def __init__(self, called: str, start: Joints, clock: Clock) -> None:
        """`called`: what errors call it, such as `gantry "x"`."""
        self.called = called
        self.clock = clock
        self.course = Course.rest(start, clock.monotonic())
        """What it follows; only for whoever holds it to change."""
        self._turns = Turns(called)

    @property
    def joints(self) -> Joints:
        return self.course.at(self.clock.monotonic())

    @property
    def is_moving(self) -> bool:
        return not self.course.is_over(self.clock.monotonic())

    async def go(self, command: str, points: Sequence[Joints], speeds: Joints) -> None:
        """Through the points, until it is at the last of them; all joints arrive together."""
        await self.follow(command, self.course.through(points, speeds, self.clock.monotonic()))

    async def go_apart(self, command: str, end: Joints, speeds: Joints) -> None:
        """Until the last joint has arrived, each of them in its own time."""
        await self.follow(command, self.course.apart(end, speeds, self.clock.monotonic()))

    async def follow(self, command: str, course: Course) -> None:
        with self.hold(command) as held:
            held.course = course
            await held.arrive()

    def halt(self, command: str) -> None:
        """It stays where it is."""
        self._take(command)

    @contextlib.contextmanager
    def hold(self, command: str) -> Iterator[Held]:
        """For as long as a command lasts. It stays where it is until it is given a course.

        A command that does not come to its end stops it: whoever asked is gone, and nobody else is
        watching where it goes.
        """
        turn = self._take(command)
        try:
            yield Held(self, turn)
        except BaseException:
            if not turn.is_over:
                self.halt(command)
            raise

    def _take(self, command: str) -> Turn:
        self.course = Course.rest(self.joints, self.clock.monotonic())
        return self._turns.take(command)


class Held:
    """What a command has of a mover, until a newer one takes it over."""

    def __init__(self, mover: Mover, turn: Turn) -> None:
        self._mover = mover
        self._turn = turn

    @property
    def now(self) -> float:
        return self._mover.clock.monotonic()

    @property
    def course(self) -> Course:
        return self._mover.course

    @course.setter
    def course(self, course: Course) -> None:
        self.check()
        self._mover.course = course

    async def arrive(self) -> None:
        await self.wait(self.course.left(self.now))
        # A timer may ring a hair early.
        self.course = Course.rest(self.course.end, self.now)

    async def wait(self, seconds: float | None, *waitables: Waitable) -> None:
        """Until the time is up or one of them is done; an error when it is overtaken."""
        await self._turn.wait(self._mover.clock, seconds, *waitables)

    async def outcome(self, awaitable: Awaitable[T]) -> T:
        """Of something else, which is given up when the command is overtaken."""
        return await self._turn.outcome(awaitable)

    def check(self) -> None:
        """An error when it is overtaken."""
        self._turn.check()
