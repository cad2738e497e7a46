"""Another machine, as a remote sees it: in this process, with the clock of a test."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from cogwork.core.clock import ManualClock
from cogwork.remotes.errors import NO_ANSWER, RemoteUnavailable
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.metadata_channel import Pairs

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_NO_METADATA = grpc.aio.Metadata()


class FarMachine:
    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.names: list[str] = []
        """Of its sensors."""
        self.frames: list[str] = []
        self.window = 2.0
        """Seconds of its sessions. None are offered if it is 0."""
        self.is_cut = False
        """Whether nothing is answered."""
        self.refusal = ""
        """Why it cannot be connected to."""
        self.calls: Counter[str] = Counter()
        self.connections: list[FarConnection] = []
        self.expired_sessions: set[str] = set()
        self._sessions = 0

    async def connect(self, _: object) -> FarConnection:
        if self.refusal or self.is_cut:
            raise RemoteUnavailable(self.refusal or NO_ANSWER)
        self.connections.append(FarConnection(self))
        return self.connections[-1]

    async def answer(self, method: str, request: Any, timeout: float | None) -> bytes:
        self.calls[method] += 1
        if self.is_cut:
            assert timeout is not None, f"{method} has no deadline"
            await self.clock.sleep(timeout)
            raise failure(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        answer = getattr(self, f"_{method}", None)
        if answer is None:
            raise failure(grpc.StatusCode.UNIMPLEMENTED, f"{method} is unknown")
        return bytes(answer(request).SerializeToString())

    def _ResourceNames(self, _: Any) -> Any:  # noqa: N802 - the name of the method
        sensor = {"namespace": "rdk", "type": "component", "subtype": "sensor"}
        listed = [common.ResourceName(name=name, **sensor) for name in self.names]
        return robot.ResourceNamesResponse(resources=listed)

    def _FrameSystemConfig(self, _: Any) -> Any:  # noqa: N802
        parent = common.PoseInFrame(reference_frame="world", pose=common.Pose(o_z=1))
        transforms = [
            common.Transform(reference_frame=name, pose_in_observer_frame=parent)
            for name in self.frames
        ]
        configs = [robot.FrameSystemConfig(frame=each) for each in transforms]
        return robot.FrameSystemConfigResponse(frame_system_configs=configs)

    def _StartSession(self, _: Any) -> Any:  # noqa: N802
        if not self.window:
            raise failure(grpc.StatusCode.UNIMPLEMENTED, "there are no sessions")
        self._sessions += 1
        reply = robot.StartSessionResponse(id=f"session {self._sessions}")
        reply.heartbeat_window.FromMilliseconds(int(self.window * 1000))
        return reply

    def _SendSessionHeartbeat(self, request: Any) -> Any:  # noqa: N802
        if request.id in self.expired_sessions:
            raise failure(grpc.StatusCode.INVALID_ARGUMENT, "the session has expired")
        return robot.SendSessionHeartbeatResponse()


class FarConnection:
    """A connection to it that is open, and logged in."""

    def __init__(self, machine: FarMachine) -> None:
        self._machine = machine
        self._lost = asyncio.Event()
        self.is_open = True
        self.renewals = 0
        self.login: Pairs = (("authorization", "Bearer x"),)

    @property
    def control(self) -> ForwardChannel:
        return _FarChannel(self._machine)

    @property
    def calls(self) -> ForwardChannel:
        return _FarChannel(self._machine)

    def lose(self) -> None:
        self._lost.set()

    async def wait_until_lost(self) -> None:
        await self._lost.wait()

    async def renew(self) -> None:
        self.renewals += 1
        if self._machine.is_cut:
            raise RemoteUnavailable("no other connection can be opened")

    async def aclose(self) -> None:
        self.is_open = False


class _FarChannel:
    def __init__(self, machine: FarMachine) -> None:
        self._machine = machine

    def unary_unary(self, method: str, /, *_: Any, **__: Any) -> Callable[..., Any]:
        name = method.rpartition("/")[2]

        async def start(request: Any, timeout: float | None = None, metadata: Any = ()) -> bytes:
            assert dict(metadata)["authorization"] == "Bearer x"
            return await self._machine.answer(name, request, timeout)

        return start

    def unary_stream(self, method: str, /, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(method)

    stream_stream = unary_stream


def failure(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, _NO_METADATA, _NO_METADATA, details)
