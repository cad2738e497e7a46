"""One session with another machine, from the login until the connection is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Any, Final, TypeVar

import grpc
import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.clock import Clock
from cogwork.core.limits.loop_budget import LoopBudget
from cogwork.graph.name import Api
from cogwork.graph.provider import Builder, Dependencies
from cogwork.graph.spec import Spec
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.errors import CALL_TIMEOUT, NO_ANSWER, RemoteUnavailable, describe
from cogwork.remotes.listed_members import UnreadableList, split_members
from cogwork.remotes.names import MAX_RESOURCES, REMOTE_API, RemoteName
from cogwork.resource.sdk.clients import connect_to
from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.fetched_descriptors import (
    DescriptorBudget,
    NotDescribed,
    fetch_descriptors,
)
from cogwork.wire.clients.metadata_channel import MetadataChannel

_SERVICE: Final = "/viam.robot.v1.RobotService/"
_HEARTBEATS_IN_WINDOW: Final = 3
_MIN_HEARTBEAT_INTERVAL: Final = 0.01
_MAX_HEARTBEAT_INTERVAL: Final = 1.0
"""Maximum interval in seconds. Short even if the session's window is long, because heartbeats also
check the connection."""
_MAX_HEARTBEATS: Final = 16
"""Maximum number of heartbeats that wait for a reply."""
_LATE: Final = 2.0
"""Seconds without a reply to a heartbeat after which a new connection is opened."""
_RENEWAL_INTERVAL: Final = 0.5
"""Seconds between attempts to open a new connection."""
_UNANSWERED: Final = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
_MAX_LIST_RATE: Final = 100_000
"""Maximum bytes per second for listing resources. Listing frames has the same limit."""
_MAX_LIST_SIZE: Final = 4 << 20
"""Maximum bytes of a list that are parsed."""
_MEMBERS_AT_ONCE: Final = 100
"""Members of a list that are parsed before other tasks can run."""
_LIST_SHARE: Final = 0.2
"""Maximum share of the event loop's time for parsing lists."""
_MAX_SESSION_ID: Final = 1_000
_NO_SESSIONS: Final = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)
_MAX_DESCRIPTORS: Final = 1 << 20
SESSION_KEY: Final = "viam-sid"

_Reply = TypeVar("_Reply", bound=Message)


class RemoteSession(Builder):
    """A session with another machine, which builds clients of its resources."""

    def __init__(self, number: int, connection: RemoteConnection, clock: Clock) -> None:
        self.number = number
        self._connection = connection
        self._login = connection.login
        self._clock = clock
        self._session_id = ""
        """Session id; empty if the machine has no sessions."""
        self._restarting = asyncio.Lock()
        self._heartbeats: set[asyncio.Task[None]] = set()
        """Heartbeats without a reply."""
        self._heard = clock.monotonic()
        """Time of the last reply to a heartbeat."""
        self._fault = NO_ANSWER
        """The reason why heartbeats get no reply."""
        self._control = MetadataChannel(lambda: connection.control, lambda: self._metadata)
        self._calls = MetadataChannel(self._find_calls_channel, lambda: self._metadata)
        self._end_reason: str | None = None
        self._metadata = self._login
        self._names_reply: bytes | None = None
        self._names_size = 0
        self._frames_size = 0
        self._frames_reply: bytes | None = None
        self._frames: list[common.Transform] = []
        self._reading = LoopBudget(clock, _LIST_SHARE)
        self.fault: str | None = None
        """A problem of the machine that does not prevent its use; None if there is none."""

    async def start(self) -> float | None:
        """Start a session on the other machine. If this machine disconnects, the other machine
        stops the motion that this machine started.

        Return the seconds between heartbeats; None if the machine has no sessions. Raise
        RemoteUnavailable or AioRpcError.
        """
        try:
            reply = await self._call(
                "StartSession", robot.StartSessionRequest(), robot.StartSessionResponse
            )
        except grpc.aio.AioRpcError as error:
            if error.code() in _NO_SESSIONS:
                return None
            raise
        if len(reply.id) > _MAX_SESSION_ID:
            raise RemoteUnavailable(
                f"the session ID has {len(reply.id)} characters, but the limit is "
                f"{_MAX_SESSION_ID}; check that a machine runs at the address"
            )
        self._session_id = reply.id
        self._metadata = (*self._login, (SESSION_KEY, reply.id))
        window: float = reply.heartbeat_window.ToMilliseconds() / 1000
        interval = window / _HEARTBEATS_IN_WINDOW
        return min(max(interval, _MIN_HEARTBEAT_INTERVAL), _MAX_HEARTBEAT_INTERVAL)

    def end(self, reason: str) -> None:
        """Refuse further calls: resources may still be called shortly after the connection has
        ended."""
        self._end_reason = reason

    def _find_calls_channel(self) -> ForwardChannel:
        if self._end_reason is not None:
            raise RemoteUnavailable(self._end_reason)
        return self._connection.calls

    def is_lost_by(self, error: grpc.aio.AioRpcError) -> bool:
        """Return whether an error means that the machine is lost.

        If the session has heartbeats, a single call without a reply does not mean that the machine
        is lost.
        """
        return not self._session_id or error.code() not in _UNANSWERED

    async def list_resources(self, into: Callable[[Api, str], None]) -> bool:
        """Call `into` with the API and the name of each listed resource. Return False if the list
        has not changed.

        Raise RemoteUnavailable or AioRpcError.
        """
        reply = await self._call_raw("ResourceNames", robot.ResourceNamesRequest())
        # Keep and compare only the part that is parsed.
        head = reply[:_MAX_LIST_SIZE]
        self._names_size = len(reply)
        if head == self._names_reply:
            return False
        async for part in self._read_list(reply, robot.ResourceNamesResponse, "list of resources"):
            for each in part.resources:
                into(Api(each.namespace, each.type, each.subtype), each.name)
        self._names_reply = head
        return True

    @property
    def has_truncated_list(self) -> bool:
        """Whether the list was longer than the part that was parsed."""
        return self._names_size > _MAX_LIST_SIZE

    @property
    def min_list_interval(self) -> float:
        """The seconds until the resources may be listed again."""
        return self._names_size / _MAX_LIST_RATE

    async def list_frames(self) -> list[common.Transform]:
        """Return the frames, up to the size limit. Return the same list until they change.

        Raise RemoteUnavailable or AioRpcError.
        """
        reply = await self._call_raw("FrameSystemConfig", robot.FrameSystemConfigRequest())
        head = reply[:_MAX_LIST_SIZE]
        self._frames_size = len(reply)
        if head == self._frames_reply:
            return self._frames
        frames: list[common.Transform] = []
        reading = self._read_list(reply, robot.FrameSystemConfigResponse, "list of frames")
        async with contextlib.aclosing(reading):
            async for part in reading:
                frames += (each.frame for each in part.frame_system_configs)
                if len(frames) >= MAX_RESOURCES:
                    break
        self._frames_reply, self._frames = head, frames[:MAX_RESOURCES]
        return self._frames

    @property
    def min_frames_interval(self) -> float:
        """The seconds until the frames may be listed again."""
        return self._frames_size / _MAX_LIST_RATE

    async def describe_services(
        self, apis: Collection[Api]
    ) -> tuple[dict[Api, str], dict[str, DescriptorPool]]:
        """Return the gRPC services of these APIs, and the descriptors that the machine provides.

        Raise RemoteUnavailable or AioRpcError.
        """
        if not apis:
            return {}, {}
        request = robot.ResourceRPCSubtypesRequest()
        reply = await self._call_raw("ResourceRPCSubtypes", request)
        services: dict[Api, str] = {}
        async for part in self._read_list(reply, robot.ResourceRPCSubtypesResponse, "list of APIs"):
            for each in part.resource_rpc_subtypes:
                api = Api(each.subtype.namespace, each.subtype.type, each.subtype.subtype)
                if api in apis:
                    services[api] = each.proto_service
        pools: dict[str, DescriptorPool] = {}
        budget = DescriptorBudget(_MAX_DESCRIPTORS)
        for service in services.values():
            with contextlib.suppress(NotDescribed):
                pools[service] = await fetch_descriptors(self._control, service, budget)
        return services, pools

    async def send_heartbeats(self, interval: float) -> None:
        """Send heartbeats until the replies stop. Raise RemoteUnavailable.

        Send each heartbeat without waiting for earlier replies: it may use a newer connection.
        """
        self._heard = self._clock.monotonic()
        try:
            while (now := self._clock.monotonic()) < self._heard + CALL_TIMEOUT:
                if len(self._heartbeats) < _MAX_HEARTBEATS:
                    heartbeat = asyncio.ensure_future(self._send_heartbeat())
                    self._heartbeats.add(heartbeat)
                    heartbeat.add_done_callback(self._heartbeats.discard)
                await self._clock.sleep(interval)
                # Ignore the time during which this process was suspended.
                self._heard += max(0.0, self._clock.monotonic() - now - interval)
        finally:
            await self._cancel_heartbeats()
        raise RemoteUnavailable(self._fault)

    async def renew_when_late(self) -> None:
        """Open a new connection whenever heartbeats get no reply in time.

        TCP doubles its retransmission timeout, so an old connection may stay silent for as long as
        an outage lasted.
        """
        renewed = self._heard
        while True:
            late = max(self._heard, renewed) + _LATE - self._clock.monotonic()
            if late > 0:
                await self._clock.sleep(late)
                continue
            try:
                await self._connection.renew()
            except RemoteUnavailable:
                await self._clock.sleep(_RENEWAL_INTERVAL)
            else:
                renewed = self._clock.monotonic()
                await self._cancel_heartbeats()

    async def _cancel_heartbeats(self) -> None:
        heartbeats = list(self._heartbeats)
        for each in heartbeats:
            each.cancel()
        await asyncio.gather(*heartbeats, return_exceptions=True)

    async def _send_heartbeat(self) -> None:
        try:
            await self._extend(self._session_id)
            self._heard = self._clock.monotonic()
        except grpc.aio.AioRpcError as error:
            self._fault = describe(error)
        except RemoteUnavailable as error:
            self._fault = str(error)

    async def _extend(self, session_id: str) -> None:
        """Extend the session, or start a new one if it has expired.

        Raise RemoteUnavailable or AioRpcError.
        """
        request = robot.SendSessionHeartbeatRequest(id=session_id)
        try:
            await self._call("SendSessionHeartbeat", request, robot.SendSessionHeartbeatResponse)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            # The heartbeats were too slow, so the other machine has stopped what this machine moved
            # there. The connection still works.
            async with self._restarting:
                if self._session_id == session_id:
                    await self.start()

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        del dependencies
        where = spec.settings
        assert isinstance(where, RemoteName)
        if spec.name.api == REMOTE_API:
            return self
        return await connect_to(
            spec.name.api, where.name, self._calls, _stop_by_silence, lambda: self._end_reason
        )

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        del resource, spec, dependencies
        raise AssertionError("the graph never reconfigures a resource of a remote")

    async def close(self, resource: object) -> None:
        del resource  # nothing to close: the resource stays on the other machine

    async def _read_list(
        self, reply: bytes, kind: type[_Reply], what: str
    ) -> AsyncGenerator[_Reply, None]:
        """Parse a list in parts, and let other tasks run in between. Raise RemoteUnavailable."""
        parts = split_members(reply, _MAX_LIST_SIZE, _MEMBERS_AT_ONCE)
        while True:
            began = self._clock.monotonic()
            try:
                part = next(parts, None)
            except UnreadableList as error:
                raise _unreadable(what, error) from None
            if part is None:
                return
            yield _parse(part, kind, what)
            took = self._clock.monotonic() - began
            await self._clock.sleep(self._reading.spend(took))

    async def _call(self, method: str, request: Message, kind: type[_Reply]) -> _Reply:
        """Call a method and parse its reply. Raise RemoteUnavailable or AioRpcError."""
        return _parse(await self._call_raw(method, request), kind, f"answer to {method}")

    async def _call_raw(self, method: str, request: Message) -> bytes:
        """Call a method and return its raw reply. Raise AioRpcError."""
        start: Any = self._control.unary_unary(
            _SERVICE + method, request_serializer=type(request).SerializeToString
        )
        reply: bytes = await start(request, timeout=CALL_TIMEOUT)
        return reply


def _parse(reply: bytes, kind: type[_Reply], what: str) -> _Reply:
    try:
        return kind.FromString(reply)
    except DecodeError as error:
        raise _unreadable(what, error) from None


def _unreadable(what: str, error: Exception) -> RemoteUnavailable:
    return RemoteUnavailable(
        f"its {what} cannot be read: {error}; check that a machine runs at the address"
    )


def _stop_by_silence() -> None:
    """Do nothing: without heartbeats, the other machine stops the motion that this machine
    started."""
