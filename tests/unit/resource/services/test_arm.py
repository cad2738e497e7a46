from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from viam.components.arm import Arm
from viam.gen.component.arm.v1 import arm_pb2 as messages

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.services.arm import StreamedMoveService, arm_methods
from cogwork.wire.table import first_message
from cogwork.wire.table.handlers import Stream

API = Api.parse("rdk:component:arm")

Request = messages.MoveThroughJointPositionsStreamedRequest
Point = messages.TrajectoryPoint


class FollowingArm:
    """An arm that acknowledges every batch until its stream ends."""

    def __init__(self) -> None:
        self.batches: list[list[Arm.TrajectoryPoint]] = []
        self.extra: Mapping[str, Any] = {}
        self.is_over = False

    async def move_through_joint_positions_streamed(
        self, batches: AsyncIterator[list[Arm.TrajectoryPoint]], *, extra: Any, **_: Any
    ) -> AsyncIterator[Arm.TrajectoryUpdate]:
        self.extra = extra
        try:
            async for batch in batches:
                self.batches.append(batch)
                yield Arm.TrajectoryUpdate()
        finally:
            self.is_over = True


class IteratorReturningArm(FollowingArm):
    """An arm whose method returns the iterator, as the SDK's annotation allows."""

    async def move_through_joint_positions_streamed(  # type: ignore[override]
        self, batches: AsyncIterator[list[Arm.TrajectoryPoint]], **rest: Any
    ) -> AsyncIterator[Arm.TrajectoryUpdate]:
        return super().move_through_joint_positions_streamed(batches, **rest)


class ArmWithoutStreams:
    async def move_through_joint_positions_streamed(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("it has no streams")


class PresetStream:
    """A call with preset messages."""

    metadata: Mapping[str, str | bytes] = {}
    deadline = None
    peer = ""
    request = None

    def __init__(self, *requests: Any) -> None:
        self._requests = iter(requests)
        self.replies: list[Any] = []

    async def recv_message(self) -> Any:
        return next(self._requests, None)

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.replies.append(message)


class UnreadStream(PresetStream):
    """A call whose client does not read replies."""

    def __init__(self, *requests: Any) -> None:
        super().__init__(*requests)
        self.is_sending = asyncio.Event()

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del message, end
        self.is_sending.set()
        await asyncio.Event().wait()


INIT = Request(name="a", init=Request.Init())


def batch(*points: Any) -> Any:
    return Request(batch=Request.TrajectoryBatch(points=points))


def point(seconds: float) -> Any:
    return Arm.TrajectoryPoint(timedelta(seconds=seconds), [0.0]).to_proto()


async def serve(arm: Any, stream: Any) -> None:
    def find(name: ResourceName) -> object:
        assert name == ResourceName(API, "a")
        return arm

    call: Stream = stream
    await StreamedMoveService(API, find).serve(call)


@pytest.mark.parametrize("kind", [FollowingArm, IteratorReturningArm])
async def test_arm_gets_the_streamed_batches(kind: type[FollowingArm]) -> None:
    arm = kind()
    init = Request(name="a", init=Request.Init())
    init.init.extra.update({"careful": True})
    stream = PresetStream(init, batch(point(0), point(1)), batch(), batch(point(2)))
    await serve(arm, stream)
    assert [[each.time.total_seconds() for each in batch] for batch in arm.batches] == [[0, 1], [2]]
    assert arm.extra == {"careful": True}
    assert stream.replies == [messages.MoveThroughJointPositionsStreamedResponse()] * 2
    assert arm.is_over


async def test_arm_stream_ends_when_the_call_is_cancelled() -> None:
    arm = FollowingArm()
    stream = UnreadStream(INIT, batch(point(0)))
    call = asyncio.ensure_future(serve(arm, stream))
    await stream.is_sending.wait()
    assert not arm.is_over
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert arm.is_over


class SilentStream(PresetStream):
    """A call whose client sends nothing."""

    async def recv_message(self) -> Any:
        await asyncio.Event().wait()


async def test_stream_without_a_first_message_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_message, "FIRST_MESSAGE_TIMEOUT", 0.01)
    with pytest.raises(InvalidRequest, match="received no message within"):
        await asyncio.wait_for(serve(FollowingArm(), SilentStream()), 10)


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([], "ended before its first message"),
        ([batch(point(0))], "the first message of a streamed move must be init"),
        ([INIT, INIT], "accepts only batches"),
        ([INIT, Request()], "accepts only batches"),
        ([INIT, batch(Point(time=Duration(seconds=2**62)))], "has an invalid time"),
        (
            [INIT, batch(point(0), point(2)), batch(point(1))],
            "the times of a trajectory must increase",
        ),
        ([INIT, batch(*(point(each) for each in range(10_001)))], "at most 10000 points"),
    ],
)
async def test_invalid_stream_is_refused(requests: list[Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        await serve(FollowingArm(), PresetStream(*requests))


async def test_arm_without_streams_raises() -> None:
    with pytest.raises(NotImplementedError, match="no streams"):
        await serve(ArmWithoutStreams(), PresetStream(INIT))


def test_every_arm_method_is_served() -> None:
    service = messages.DESCRIPTOR.services_by_name["ArmService"]
    served = {method.path for method in arm_methods(API, lambda _: None)}
    assert served == {f"/{service.full_name}/{method.name}" for method in service.methods}
