"""One session with another machine, from the login until the connection is lost."""

from __future__ import annotations

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
from cogwork.remotes.connection import CALL_TIMEOUT, RemoteConnection, describe
from cogwork.remotes.errors import RemoteUnavailable
from cogwork.remotes.names import REMOTE_API, RemoteName
from cogwork.resource.clients import connect_to
from cogwork.wire.fetched_descriptors import DescriptorBudget, NotDescribed, fetch_descriptors
from cogwork.wire.metadata_channel import MetadataChannel

_SERVICE: Final = "/viam.robot.v1.RobotService/"
_MAX_SILENCE: Final = 5.0
"""Seconds without an answer to heartbeats after which a connection is lost."""
_HEARTBEATS_IN_WINDOW: Final = 3
_NO_SESSIONS: Final = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)
_MAX_DESCRIPTORS: Final = 4 << 20
SESSION_KEY: Final = "viam-sid"


class RemoteSession(Builder):
    """Builds the clients of the resources of another machine."""

    def __init__(self, number: int, connection: RemoteConnection, clock: Clock) -> None:
        self.number = number
        self.wait_until_lost = connection.wait_until_lost
        self._login = connection.login
        self._clock = clock
        self._session_id = ""
        self._calls = MetadataChannel(connection.calls, lambda: self._metadata)
        self._metadata = self._login

    async def start(self) -> float | None:
        """Start a session, which stops what this machine moves there if this machine disappears.

        Return the seconds between heartbeats; None if the machine has no sessions.
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
        return window / _HEARTBEATS_IN_WINDOW

    async def list_resources(self) -> list[tuple[Api, str]]:
        """Raise AioRpcError."""
        reply = await self._call("ResourceNames", robot.ResourceNamesRequest(), _NAMES_REPLY)
        return [
            (Api(each.namespace, each.type, each.subtype), each.name) for each in reply.resources
        ]

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
                pools[service] = await fetch_descriptors(self._calls, service, budget)
        return services, pools

    async def send_heartbeats(self, interval: float) -> None:
        """Send heartbeats until the connection is lost. Raise RemoteUnavailable."""
        request = robot.SendSessionHeartbeatRequest(id=self._session_id)
        heard = self._clock.monotonic()
        while True:
            try:
                await self._call("SendSessionHeartbeat", request, _HEARTBEAT_REPLY)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                    raise RemoteUnavailable("its session has expired; connecting again") from None
                if self._clock.monotonic() - heard > _MAX_SILENCE:
                    raise RemoteUnavailable(describe(error)) from None
            else:
                heard = self._clock.monotonic()
            await self._clock.sleep(interval)

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
        start: Any = self._calls.unary_unary(
            _SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=parse,
        )
        return await start(request, timeout=CALL_TIMEOUT)


_SUBTYPES_REPLY: Final = robot.ResourceRPCSubtypesResponse.FromString
_START_REPLY: Final = robot.StartSessionResponse.FromString
_NAMES_REPLY: Final = robot.ResourceNamesResponse.FromString
_FRAMES_REPLY: Final = robot.FrameSystemConfigResponse.FromString
_HEARTBEAT_REPLY: Final = robot.SendSessionHeartbeatResponse.FromString


def _stop_by_silence() -> None:
    """Do nothing: without heartbeats, the other machine stops what this one has moved."""
