"""The arm API: the SDK's service, with the method for streamed trajectories replaced.

When a client cancels a stream, the SDK leaves the arm's generator to the garbage collector, so the
arm stops at an unpredictable time. It also reports an invalid time as an unknown error.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

from viam.components.arm import Arm
from viam.gen.component.arm.v1 import arm_pb2 as messages

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.patched_service import patch_methods
from cogwork.resource.services.resource_service import (
    FindResource,
    ResourceService,
    closing,
    time_left,
)
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["ArmService"]
_STREAMED_METHOD = "MoveThroughJointPositionsStreamed"
_MAX_POINTS = 10_000
_POINTS_PER_TURN = 500
"""Number of points to parse before other tasks of the event loop get a turn."""


def arm_methods(api: Api, find: FindResource) -> Iterable[Method]:
    streamed = StreamedMoveService(api, find).serve
    return patch_methods(api, find, {_STREAMED_METHOD: streamed})


class StreamedMoveService(ResourceService):
    async def serve(self, stream: Stream) -> None:
        """Forward the trajectory to the arm. The arm's generator is closed when the call ends."""
        first = await recv_first_message(stream, f"/{_DESCRIPTOR.full_name}/{_STREAMED_METHOD}")
        if not first.HasField("init"):
            raise InvalidRequest("the first message of a streamed move must be init")
        async with contextlib.aclosing(_read_batches(stream)) as batches:
            updates = self.find_resource(first.name).move_through_joint_positions_streamed(
                batches,
                extra=extra_to_dict(first.init.extra),
                timeout=time_left(stream),
                metadata=stream.metadata,
            )
            # The SDK annotates the method as a coroutine, but documents it as a generator.
            if inspect.isawaitable(updates):
                updates = await updates
            async with closing(aiter(updates)) as replies:
                async for update in replies:
                    await stream.send_message(update.to_proto())


async def _read_batches(stream: Stream) -> AsyncGenerator[list[Arm.TrajectoryPoint]]:
    """Yield validated batches of points, without empty ones."""
    validator = _PointValidator()
    while (request := await stream.recv_message()) is not None:
        if not request.HasField("batch"):
            raise InvalidRequest("after init, a streamed move accepts only batches of points")
        if points := await _read_points(request.batch.points, validator):
            yield points


async def _read_points(
    received: Iterable[messages.TrajectoryPoint], validator: _PointValidator
) -> list[Arm.TrajectoryPoint]:
    points: list[Arm.TrajectoryPoint] = []
    for message in received:
        points.append(_parse_point(message))
        validator.check(points[-1])
        if len(points) > _MAX_POINTS:
            raise InvalidRequest(f"a batch holds at most {_MAX_POINTS} points; send more batches")
        if len(points) % _POINTS_PER_TURN == 0:
            await asyncio.sleep(0)
    return points


def _parse_point(message: messages.TrajectoryPoint) -> Arm.TrajectoryPoint:
    try:
        return Arm.TrajectoryPoint.from_proto(message)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"a point of the trajectory has an invalid time: {error}") from None


@dataclass(slots=True)
class _PointValidator:
    """Validates the points of one stream in order."""

    _last: Arm.TrajectoryPoint | None = None

    def check(self, point: Arm.TrajectoryPoint) -> None:
        last, self._last = self._last, point
        seconds = point.time.total_seconds()
        if last is None and seconds != 0:
            raise InvalidRequest(
                f"the first point of a trajectory must be at 0 s, not at {seconds:g} s"
            )
        if last is not None and point.time <= last.time:
            raise InvalidRequest(
                f"the point at {seconds:g} s follows one at {last.time.total_seconds():g} s; "
                "the times of a trajectory must increase"
            )
        if not point.positions:
            raise InvalidRequest(f"the point at {seconds:g} s has no joint positions")
        _check_constraints(point, is_first=last is None)


def _check_constraints(point: Arm.TrajectoryPoint, *, is_first: bool) -> None:
    constraints, joints = point.constraints, len(point.positions)
    if constraints is None:
        return
    accelerations = constraints.accelerations
    if len(constraints.velocities) != joints or (
        accelerations is not None and len(accelerations) != joints
    ):
        raise InvalidRequest(
            f"the point at {point.time.total_seconds():g} s has {joints} joint positions, "
            f"so its constraints must have {joints} velocities, and {joints} accelerations or none"
        )
    if is_first and any(constraints.velocities):
        raise InvalidRequest("a trajectory must begin at rest, with velocities of 0")
