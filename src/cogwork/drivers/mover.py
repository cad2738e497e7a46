"""Motion of a component's joints, controlled by the newest command."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

from cogwork.core.clock import Clock, Waitable
from cogwork.drivers.command_lock import CommandLease, CommandLock
from cogwork.drivers.joint_trajectory import Joints, JointTrajectory

T = TypeVar("T")


class Mover:
    """The joints of one component. A newer command preempts a running move, which fails with
    Interrupted."""

    def __init__(self, display_name: str, start: Joints, clock: Clock) -> None:
        """`display_name` names the component in errors, such as `gantry "x"`."""
        self.display_name = display_name
        self.clock = clock
        self.trajectory = JointTrajectory.at_rest(start, clock.monotonic())
        """The current trajectory; only the holder of the lease may change it."""
        self._command_lock = CommandLock(display_name)

    @property
    def joints(self) -> Joints:
        return self.trajectory.position_at(self.clock.monotonic())

    @property
    def is_moving(self) -> bool:
        return not self.trajectory.has_ended(self.clock.monotonic())

    async def move_through(self, command: str, points: Sequence[Joints], speeds: Joints) -> None:
        """Move through the points and return at the last one; all joints arrive together."""
        await self.follow(
            command, self.trajectory.move_through(points, speeds, self.clock.monotonic())
        )

    async def move_independently(self, command: str, end: Joints, speeds: Joints) -> None:
        """Move each joint at its own speed and return when the last one has arrived."""
        await self.follow(
            command, self.trajectory.move_independently(end, speeds, self.clock.monotonic())
        )

    async def follow(self, command: str, trajectory: JointTrajectory) -> None:
        with self.acquire(command) as lease:
            lease.trajectory = trajectory
            await lease.wait_for_arrival()

    def emergency_stop(self) -> None:
        """Stop in place without the event loop. The running command is not notified."""
        self.trajectory = JointTrajectory.at_rest(self.joints, self.clock.monotonic())

    def halt(self, command: str) -> None:
        """Stop in place and preempt the running command."""
        self._preempt(command)

    @contextlib.contextmanager
    def acquire(self, command: str) -> Iterator[MoverLease]:
        """Give a command control of the joints, which rest until the command sets a trajectory.

        If the command fails or is cancelled, stop the joints: nothing else would end the motion.
        """
        lease = self._preempt(command)
        try:
            yield MoverLease(self, lease)
        except BaseException:
            if not lease.is_revoked:
                self.halt(command)
            raise

    def _preempt(self, command: str) -> CommandLease:
        self.trajectory = JointTrajectory.at_rest(self.joints, self.clock.monotonic())
        return self._command_lock.acquire(command)


class MoverLease:
    """The right of one command to move the joints, until a newer command revokes it."""

    def __init__(self, mover: Mover, lease: CommandLease) -> None:
        self._mover = mover
        self._lease = lease

    @property
    def now(self) -> float:
        return self._mover.clock.monotonic()

    @property
    def trajectory(self) -> JointTrajectory:
        return self._mover.trajectory

    @trajectory.setter
    def trajectory(self, trajectory: JointTrajectory) -> None:
        self.raise_if_revoked()
        self._mover.trajectory = trajectory

    async def wait_for_arrival(self) -> None:
        await self.wait(self.trajectory.remaining_seconds(self.now))
        # Set the exact end position: a timer may fire slightly early.
        self.trajectory = JointTrajectory.at_rest(self.trajectory.end, self.now)

    async def wait(self, seconds: float | None, *waitables: Waitable) -> None:
        """Wait until the timeout expires or a waitable is done; raise Interrupted if preempted."""
        await self._lease.wait(self._mover.clock, seconds, *waitables)

    async def run(self, awaitable: Awaitable[T]) -> T:
        """Return the result of the awaitable. If a newer command preempts this one, cancel the
        awaitable and raise Interrupted."""
        return await self._lease.run(awaitable)

    def raise_if_revoked(self) -> None:
        """Raise Interrupted if a newer command has preempted this one."""
        self._lease.raise_if_revoked()
