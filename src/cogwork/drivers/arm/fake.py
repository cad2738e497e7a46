"""An arm that moves in time, and nowhere else."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from viam.components.arm import Arm, JointPositions, Mesh, MoveOptions, Pose
from viam.proto.common import Geometry, KinematicsFileFormat

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.workers import Workers
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.described import Described
from cogwork.drivers.arm.pace import Pace
from cogwork.drivers.arm.trajectory import Trajectory, room
from cogwork.drivers.course import Joints, Leg
from cogwork.drivers.mover import Held, Mover
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of
from cogwork.resource.poses import from_message, to_message
from cogwork.spatial.inverse import solve
from cogwork.spatial.pose import Pose as SpatialPose

_MOST_POSITIONS = 10_000


class InManualMode(CogworkError):
    """An arm that is moved by hand, and by nothing else."""

    status = "FAILED_PRECONDITION"


class FakeArm(Arm):
    """The newest command has the arm; an older move that it ends fails and says so."""

    def __init__(
        self,
        name: ResourceName,
        attributes: FakeArmAttributes,
        described: Described,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._speed = attributes.speed_degs_per_sec
        self._described = described
        self._clock = clock
        start = described.start(attributes.joints)
        self._mover = Mover(f'arm "{name.name}"', start, clock)
        self._workers = Workers(self._mover.called)
        self._by_hand_until = -math.inf

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeArmAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeArm:
        del dependencies
        path = attributes.kinematics_file
        described = await asyncio.to_thread(Described.read, path) if path else Described.desk_arm()
        return cls(name, attributes, described, clock or SystemClock())

    async def move_to_position(self, pose: Pose, **_: Any) -> None:
        command = "move_to_position"
        self._check_mode(command)
        target = from_message(pose)
        with self._mover.hold(command) as held:
            start = held.course.end
            end = await held.outcome(self._workers.run(self._solved, target, start))
            await _go(held, self._pace(None).legs(start, [end], self._described.tool))

    async def move_to_joint_positions(self, positions: JointPositions, **_: Any) -> None:
        await self._move("move_to_joint_positions", [positions], None)

    async def move_through_joint_positions(
        self, positions: Sequence[JointPositions], options: MoveOptions | None = None, **_: Any
    ) -> None:
        await self._move("move_through_joint_positions", positions, options)

    async def move_through_joint_positions_streamed(  # type: ignore[override] # as the SDK's own do
        self, batches: AsyncIterator[list[Arm.TrajectoryPoint]], **_: Any
    ) -> AsyncIterator[Arm.TrajectoryUpdate]:
        """An update for each batch whose points it goes on to. When a batch comes late, the arm
        stands at the last point, and the times of all later ones wait with it."""
        command = "move_through_joint_positions_streamed"
        self._check_mode(command)
        trajectory = Trajectory(self._checked, self._speed)
        acknowledged = False
        with self._mover.hold(command) as held:
            while (points := await held.outcome(anext(batches, None))) is not None:
                held.course = trajectory.extend(held.course, points, held.now)
                acknowledged = True
                yield Arm.TrajectoryUpdate()
                await held.wait(room(held.course, held.now))
            await held.arrive()
        if not acknowledged:
            yield Arm.TrajectoryUpdate()

    async def get_end_position(self, **_: Any) -> Pose:
        return to_message(self._described.pose(self._mover.joints))

    async def get_joint_positions(self, **_: Any) -> JointPositions:
        return JointPositions(values=self._mover.joints)

    async def stop(self, **_: Any) -> None:
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")
        self._workers.close()

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def set_manual_mode(self, manual_mode: bool, enabled_for: int = 0, **_: Any) -> None:
        """No motor of it moves while somebody's hands do."""
        if enabled_for < 0:
            raise InvalidRequest(f"manual mode cannot last for {enabled_for} seconds")
        self._mover.halt("set_manual_mode")
        seconds = (enabled_for or math.inf) if manual_mode else -math.inf
        self._by_hand_until = self._clock.monotonic() + seconds

    async def get_manual_mode(self, **_: Any) -> bool:
        return self._clock.monotonic() < self._by_hand_until

    async def get_properties(self, **_: Any) -> Arm.Properties:
        return Arm.Properties(support_manual_mode=True, support_cartesian_commands=True)

    async def get_kinematics(self, **_: Any) -> tuple[KinematicsFileFormat.ValueType, bytes]:
        return KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA, self._described.sva

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        return self._described.geometries(self._mover.joints)

    async def get_3d_models(self, **_: Any) -> Mapping[str, Mesh]:
        return {}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        end = await self.get_end_position()
        return {
            "end_position": {
                field.name: getattr(end, field.name) for field in end.DESCRIPTOR.fields
            },
            "joint_positions": {"values": self._mover.joints},
            "is_moving": self._mover.is_moving,
            "manual_mode": await self.get_manual_mode(),
        }

    async def _move(
        self, command: str, positions: Sequence[JointPositions], options: MoveOptions | None
    ) -> None:
        self._check_mode(command)
        if len(positions) > _MOST_POSITIONS:
            raise InvalidRequest(
                f"{self._mover.called} takes {_MOST_POSITIONS} positions in one call, "
                f"not {len(positions)}: stream them"
            )
        points = [self._checked(each.values) for each in positions]
        pace = self._pace(options)
        with self._mover.hold(command) as held:
            plan = partial(pace.legs, held.course.end, points, self._described.tool)
            legs = await held.outcome(self._workers.run(plan)) if pace.takes_a_while else plan()
            await _go(held, legs)

    def _solved(self, target: SpatialPose, start: Joints) -> Joints:
        """Takes a while: for a thread."""
        inputs = self._described.inputs(start)
        found = solve(self._described.chain, target, inputs)
        if found is None:
            why = self._why_not(target, inputs)
            raise InvalidRequest(f"{self._mover.called} cannot move there: {why}")
        return self._described.joints(found)

    def _why_not(self, target: SpatialPose, inputs: Sequence[float]) -> str:
        away, reach = math.hypot(*target.point), self._described.reach()
        if away > reach:
            return (
                f"that point is {away:.0f} mm from its base, "
                f"and no part of it gets further than {reach:.0f} mm"
            )
        loose = self._described.with_loose_end()
        if solve(loose, target, [*inputs, 0.0, 0.0, 0.0]) is not None:
            return "it reaches that point, but not turned that way"
        return "it finds no way to that point"

    def _pace(self, options: MoveOptions | None) -> Pace:
        return Pace.asked(options, self._speed, len(self._described.chain.joints))

    def _checked(self, joints: Sequence[float]) -> Joints:
        try:
            return self._described.checked(joints)
        except ValueError as error:
            raise InvalidRequest(f"{self._mover.called} cannot move there: {error}") from None

    def _check_mode(self, command: str) -> None:
        if self._clock.monotonic() < self._by_hand_until:
            raise InManualMode(
                f"{self._mover.called} is in manual mode, which has no {command}: "
                "end it with set_manual_mode"
            )


async def _go(held: Held, legs: Sequence[Leg]) -> None:
    held.course = held.course.along(legs, held.now)
    await held.arrive()
