"""The arm API. Of the SDK's own service all but one method serves: that of streamed trajectories
leaves an arm that its client has given up to the garbage collector, which stops it some day; and a
time that is none is an unknown error."""

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
from cogwork.resource.answers import CommonAnswers, Find, closing, time_left
from cogwork.resource.mended import mended
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.first import first_message
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["ArmService"]
_SDK_CLASS = "viam.components.arm.service:ArmRPCService"
_STREAMED = "MoveThroughJointPositionsStreamed"
_MOST_POINTS = 10_000
_AT_ONCE = 500
"""Points that are read in one go; between them others have their turn."""


def arm_methods(api: Api, find: Find) -> Iterable[Method]:
    streamed = StreamedMoves(api, find).serve
    return mended(api, find, _DESCRIPTOR, _SDK_CLASS, {_STREAMED: streamed})


class StreamedMoves(CommonAnswers):
    async def serve(self, stream: Stream) -> None:
        """When the call ends, however it ends, the arm is told."""
        first = await first_message(stream, f"/{_DESCRIPTOR.full_name}/{_STREAMED}")
        if not first.HasField("init"):
            raise InvalidRequest("the first message of a streamed move is init: send it first")
        async with contextlib.aclosing(_batches(stream)) as batches:
            updates = self.resource(first.name).move_through_joint_positions_streamed(
                batches,
                extra=extra_to_dict(first.init.extra),
                timeout=time_left(stream),
                metadata=stream.metadata,
            )
            # By its annotation it is awaited, by its description it is not.
            if inspect.isawaitable(updates):
                updates = await updates
            async with closing(aiter(updates)) as coming:
                async for update in coming:
                    await stream.send_message(update.to_proto())


async def _batches(stream: Stream) -> AsyncGenerator[list[Arm.TrajectoryPoint]]:
    """What every arm may rely on has been checked. A batch without points is none."""
    order = _Order()
    while (request := await stream.recv_message()) is not None:
        if not request.HasField("batch"):
            raise InvalidRequest("after init, a streamed move takes nothing but batches of points")
        if points := await _points(request.batch.points, order):
            yield points


async def _points(
    received: Iterable[messages.TrajectoryPoint], order: _Order
) -> list[Arm.TrajectoryPoint]:
    points: list[Arm.TrajectoryPoint] = []
    for message in received:
        points.append(_point(message))
        order.check(points[-1])
        if len(points) > _MOST_POINTS:
            raise InvalidRequest(f"a batch holds {_MOST_POINTS} points at most: send more batches")
        if len(points) % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return points


def _point(message: messages.TrajectoryPoint) -> Arm.TrajectoryPoint:
    try:
        return Arm.TrajectoryPoint.from_proto(message)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"a point of the trajectory has no sound time: {error}") from None


@dataclass(slots=True)
class _Order:
    """Of the points of one stream."""

    _last: Arm.TrajectoryPoint | None = None

    def check(self, point: Arm.TrajectoryPoint) -> None:
        last, self._last = self._last, point
        seconds = point.time.total_seconds()
        if last is None and seconds != 0:
            raise InvalidRequest(f"the first point of a trajectory is at 0 s, not at {seconds:g} s")
        if last is not None and point.time <= last.time:
            raise InvalidRequest(
                f"the point at {seconds:g} s follows one at {last.time.total_seconds():g} s: "
                "the times of a trajectory ascend"
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
            f"the point at {point.time.total_seconds():g} s has {joints} joint positions: "
            "its constraints need as many velocities, and as many accelerations if any"
        )
    if is_first and any(constraints.velocities):
        raise InvalidRequest("a trajectory begins at rest: the velocities of its first point are 0")
