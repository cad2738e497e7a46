"""One session with another machine, from the login until the connection is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.clock import Clock
from cogwork.graph.name import Api
from cogwork.graph.provider import Builder, Dependencies
from cogwork.graph.spec import Spec
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.errors import CALL_TIMEOUT, RemoteUnavailable, describe
from cogwork.remotes.names import REMOTE_API, RemoteName
from cogwork.resource.clients import connect_to
from cogwork.wire.fetched_descriptors import DescriptorBudget, NotDescribed, fetch_descriptors
from cogwork.wire.metadata_channel import MetadataChannel

_SERVICE: Final = "/viam.robot.v1.RobotService/"
_HEARTBEATS_IN_WINDOW: Final = 3
_MAX_HEARTBEAT_INTERVAL: Final = 1.0
"""Seconds. They also show that the connection still works, however long the window is."""
_LATE: Final = 1.5
"""Seconds after which the answer to a heartbeat is late."""
_MAX_LIST_RATE: Final = 100_000
"""Bytes per second that the names of resources may take."""
_NO_SESSIONS: Final = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)
_MAX_DESCRIPTORS: Final = 4 << 20
SESSION_KEY: Final = "viam-sid"


class RemoteSession(Builder):
    """Builds the clients of the resources of another machine."""

    def __init__(self, number: int, connection: RemoteConnection, clock: Clock) -> None:
        self.number = number
        self._login = connection.login
        self._clock = clock
        self._session_id = ""
        self._control = MetadataChannel(lambda: connection.control, lambda: self._metadata)
        self._calls = MetadataChannel(lambda: connection.calls, lambda: self._metadata)
        self._metadata = self._login
        self._was_late = asyncio.Event()
        self._names_reply = b""
        self._names: list[tuple[Api, str]] = []

    async def start(self) -> float | None:
        """Start a session, which stops what this machine moves there if this machine disappears.

        Return the seconds between heartbeats; None if the machine has no sessions. Raise
        AioRpcError.
        """
        try:
            reply = await self._call("StartSession", robot.StartSessionRequest(), _START_REPLY)
        except grpc.aio.AioRpcError as error:
            if error.code() in _NO_SESSIONS:
                return None
            raise
        self._session_id = reply.id
        self._metadata = (*self._login, (SESSION_KEY, reply.id))
        window: float = reply.heartbeat_window.ToMilliseconds() / 1000
        return min(window / _HEARTBEATS_IN_WINDOW, _MAX_HEARTBEAT_INTERVAL)

    async def list_resources(self) -> list[tuple[Api, str]]:
        """Raise AioRpcError."""
        reply = await self._call("ResourceNames", robot.ResourceNamesRequest(), bytes)
        if reply != self._names_reply:
            self._names_reply = reply
            self._names = [
                (Api(each.namespace, each.type, each.subtype), each.name)
                for each in robot.ResourceNamesResponse.FromString(reply).resources
            ]
        return self._names

    @property
    def min_list_interval(self) -> float:
        """Return the seconds until the resources may be listed again."""
        return len(self._names_reply) / _MAX_LIST_RATE

    async def list_frames(self) -> list[common.Transform]:
        """Raise AioRpcError."""
        request = robot.FrameSystemConfigRequest()
        reply = await self._call("FrameSystemConfig", request, _FRAMES_REPLY)
        return [each.frame for each in reply.frame_system_configs]

    async def describe_services(
        self, apis: Collection[Api]
    ) -> tuple[dict[Api, str], dict[str, DescriptorPool]]:
        """Return the gRPC services of these APIs, and the descriptors of those that have some.

        Raise AioRpcError.
        """
        if not apis:
            return {}, {}
        request = robot.ResourceRPCSubtypesRequest()
        reply = await self._call("ResourceRPCSubtypes", request, _SUBTYPES_REPLY)
        services = {
            api: each.proto_service
            for each in reply.resource_rpc_subtypes
            if (api := Api(each.subtype.namespace, each.subtype.type, each.subtype.subtype)) in apis
        }
        pools: dict[str, DescriptorPool] = {}
        budget = DescriptorBudget(_MAX_DESCRIPTORS)
        for service in services.values():
            with contextlib.suppress(NotDescribed):
                pools[service] = await fetch_descriptors(self._control, service, budget)
        return services, pools

    async def send_heartbeats(self, interval: float) -> None:
        """Send heartbeats until the connection is lost. Raise RemoteUnavailable."""
        heard = self._clock.monotonic()
        while True:
            sent = self._clock.monotonic()
            try:
                await self._send_heartbeat()
            except grpc.aio.AioRpcError as error:
                if self._clock.monotonic() - heard > CALL_TIMEOUT - interval:
                    raise RemoteUnavailable(describe(error)) from None
            else:
                heard = self._clock.monotonic()
                if heard - sent > _LATE:
                    self._was_late.set()
            await self._clock.sleep(max(0.0, sent + interval - self._clock.monotonic()))

    async def wait_until_late(self) -> None:
        """Wait until a heartbeat is answered late: after an outage, or in a slow network."""
        await self._was_late.wait()
        self._was_late.clear()

    async def _send_heartbeat(self) -> None:
        request = robot.SendSessionHeartbeatRequest(id=self._session_id)
        try:
            await self._call("SendSessionHeartbeat", request, _HEARTBEAT_REPLY)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            # The session has expired because the network was slow: the other machine has stopped
            # what this one had moved. The connection itself still works.
            await self.start()

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        del dependencies
        where = spec.settings
        assert isinstance(where, RemoteName)
        if spec.name.api == REMOTE_API:
            return self
        return await connect_to(
            spec.name.api, where.name, self._calls, _stop_by_silence, lambda: None
        )

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        del resource, spec, dependencies
        raise AssertionError("an offer of a remote is never in place")

    async def close(self, resource: object) -> None:
        del resource  # the other machine keeps it

    async def _call(self, method: str, request: Message, parse: Callable[[bytes], Any]) -> Any:
        start: Any = self._control.unary_unary(
            _SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=parse,
        )
        return await start(request, timeout=CALL_TIMEOUT)


_SUBTYPES_REPLY: Final = robot.ResourceRPCSubtypesResponse.FromString
_START_REPLY: Final = robot.StartSessionResponse.FromString
_FRAMES_REPLY: Final = robot.FrameSystemConfigResponse.FromString
_HEARTBEAT_REPLY: Final = robot.SendSessionHeartbeatResponse.FromString


def _stop_by_silence() -> None:
    """Do nothing: without heartbeats, the other machine stops what this one has moved."""
