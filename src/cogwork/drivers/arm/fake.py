"""A fake arm that simulates motion over time."""

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
from cogwork.drivers.arm.arm_model import ArmModel
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.arm.motion_limits import MotionLimits
from cogwork.drivers.arm.streamed_trajectory import StreamedTrajectory, seconds_until_room
from cogwork.drivers.joint_trajectory import Joints, TrajectorySegment
from cogwork.drivers.mover import Mover, MoverLease
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.messages.pose_proto import pose_from_proto, pose_to_proto
from cogwork.resource.model import logger_of
from cogwork.spatial.inverse_kinematics import solve_inverse_kinematics
from cogwork.spatial.pose import Pose as SpatialPose

_MAX_POSITIONS = 10_000


class InManualMode(CogworkError):
    """The arm is in manual mode and rejects commands."""

    status = "FAILED_PRECONDITION"


class FakeArm(Arm):
    """A fake arm. A newer command preempts a running move, which then fails with Interrupted."""

    def __init__(
        self,
        name: ResourceName,
        attributes: FakeArmAttributes,
        model: ArmModel,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._speed = attributes.speed_degs_per_sec
        self._model = model
        self._clock = clock
        start = model.start_joints(attributes.joints)
        self._mover = Mover(f'arm "{name.name}"', start, clock)
        self._workers = Workers(self._mover.display_name)
        self._manual_mode_until = -math.inf

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
        model = await asyncio.to_thread(ArmModel.load, path) if path else ArmModel.desk_arm()
        return cls(name, attributes, model, clock or SystemClock())

    async def move_to_position(self, pose: Pose, **_: Any) -> None:
        command = "move_to_position"
        self._check_not_manual(command)
        target = pose_from_proto(pose)
        with self._mover.acquire(command) as lease:
            start = lease.trajectory.end
            end = await lease.run(self._workers.run(self._solve_joints, target, start))
            await _follow_segments(
                lease,
                self._motion_limits(None).plan_segments(start, [end], self._model.tool_position),
            )

    async def move_to_joint_positions(self, positions: JointPositions, **_: Any) -> None:
        await self._move("move_to_joint_positions", [positions], None)

    async def move_through_joint_positions(
        self, positions: Sequence[JointPositions], options: MoveOptions | None = None, **_: Any
    ) -> None:
        await self._move("move_through_joint_positions", positions, options)

    async def move_through_joint_positions_streamed(  # type: ignore[override] # like the SDK's own arms
        self, batches: AsyncIterator[list[Arm.TrajectoryPoint]], **_: Any
    ) -> AsyncIterator[Arm.TrajectoryUpdate]:
        """Follow the streamed points; yield an update for each accepted batch.

        When a batch is late, the arm waits at the last point, and all later points are delayed by
        the same time.
        """
        command = "move_through_joint_positions_streamed"
        self._check_not_manual(command)
        trajectory = StreamedTrajectory(self._check_joints, self._speed)
        acknowledged = False
        with self._mover.acquire(command) as lease:
            while (points := await lease.run(anext(batches, None))) is not None:
                lease.trajectory = trajectory.extend(lease.trajectory, points, lease.now)
                acknowledged = True
                yield Arm.TrajectoryUpdate()
                await lease.wait(seconds_until_room(lease.trajectory, lease.now))
            await lease.wait_for_arrival()
        if not acknowledged:
            yield Arm.TrajectoryUpdate()

    async def get_end_position(self, **_: Any) -> Pose:
        return pose_to_proto(self._model.pose(self._mover.joints))

    async def get_joint_positions(self, **_: Any) -> JointPositions:
        return JointPositions(values=self._mover.joints)

    async def stop(self, **_: Any) -> None:
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")
        self._workers.close()

    def emergency_stop(self) -> None:
        self._mover.emergency_stop()

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def set_manual_mode(self, manual_mode: bool, enabled_for: int = 0, **_: Any) -> None:
        """Stop the arm, and turn manual mode on or off. In manual mode, the arm rejects commands,
        so that people can move it by hand."""
        if enabled_for < 0:
            raise InvalidRequest(f"manual mode cannot last for {enabled_for} seconds")
        self._mover.halt("set_manual_mode")
        seconds = (enabled_for or math.inf) if manual_mode else -math.inf
        self._manual_mode_until = self._clock.monotonic() + seconds

    async def get_manual_mode(self, **_: Any) -> bool:
        return self._clock.monotonic() < self._manual_mode_until

    async def get_properties(self, **_: Any) -> Arm.Properties:
        return Arm.Properties(support_manual_mode=True, support_cartesian_commands=True)

    async def get_kinematics(self, **_: Any) -> tuple[KinematicsFileFormat.ValueType, bytes]:
        return KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA, self._model.sva

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        return self._model.geometries(self._mover.joints)

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
        self._check_not_manual(command)
        if len(positions) > _MAX_POSITIONS:
            raise InvalidRequest(
                f"{self._mover.display_name} takes at most {_MAX_POSITIONS} positions in one call, "
                f"not {len(positions)}: stream them"
            )
        points = [self._check_joints(each.values) for each in positions]
        limits = self._motion_limits(options)
        with self._mover.acquire(command) as lease:
            plan = partial(
                limits.plan_segments, lease.trajectory.end, points, self._model.tool_position
            )
            segments = (
                await lease.run(self._workers.run(plan)) if limits.limits_tool_speed else plan()
            )
            await _follow_segments(lease, segments)

    def _solve_joints(self, target: SpatialPose, start: Joints) -> Joints:
        """Solve the inverse kinematics. Slow: call it in a thread."""
        inputs = self._model.to_inputs(start)
        solution = solve_inverse_kinematics(self._model.chain, target, inputs)
        if solution is None:
            reason = self._explain_unreachable(target, inputs)
            raise InvalidRequest(f"{self._mover.display_name} cannot move there: {reason}")
        return self._model.to_joints(solution)

    def _explain_unreachable(self, target: SpatialPose, inputs: Sequence[float]) -> str:
        distance, reach = math.hypot(*target.point), self._model.max_reach()
        if distance > reach:
            return (
                f"that point is {distance:.0f} mm from its base, "
                f"but its maximum reach is {reach:.0f} mm"
            )
        free_chain = self._model.with_free_orientation()
        if solve_inverse_kinematics(free_chain, target, [*inputs, 0.0, 0.0, 0.0]) is not None:
            return "it reaches that point, but not with that orientation"
        return "no joint positions reach that point"

    def _motion_limits(self, options: MoveOptions | None) -> MotionLimits:
        return MotionLimits.from_options(options, self._speed, len(self._model.chain.joints))

    def _check_joints(self, joints: Sequence[float]) -> Joints:
        try:
            return self._model.check_joints(joints)
        except ValueError as error:
            raise InvalidRequest(f"{self._mover.display_name} cannot move there: {error}") from None

    def _check_not_manual(self, command: str) -> None:
        if self._clock.monotonic() < self._manual_mode_until:
            raise InManualMode(
                f"{self._mover.display_name} is in manual mode and rejects {command}: "
                "end manual mode with set_manual_mode"
            )


async def _follow_segments(lease: MoverLease, segments: Sequence[TrajectorySegment]) -> None:
    lease.trajectory = lease.trajectory.follow_segments(segments, lease.now)
    await lease.wait_for_arrival()
