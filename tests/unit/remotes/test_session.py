"""A session with another machine that misbehaves, over a real connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc.aio
import pytest
from tests.support.waiting import poll

from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.spec import Spec
from cogwork.remotes.errors import RemoteUnavailable
from cogwork.remotes.grpc_connection import GrpcConnection
from cogwork.remotes.names import MAX_RESOURCES, REMOTE_MODEL, RemoteName
from cogwork.remotes.session import SESSION_KEY, RemoteSession
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

SENSOR = Api.parse("rdk:component:sensor")


class Machine(grpc.GenericRpcHandler):
    """Answers each method with given bytes."""

    def __init__(self, replies: Mapping[str, bytes]) -> None:
        self.replies = dict(replies)
        self.sessions: dict[str, list[str]] = {}
        """All that the last call of each method names."""
        self.has_expired = False
        """Whether the session that is extended has expired."""

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method.rpartition("/")[2]
        metadata = handler_call_details.invocation_metadata
        self.sessions[method] = [value for key, value in metadata if key == SESSION_KEY]
        reply = self.replies.get(handler_call_details.method.rpartition("/")[2], b"")

        async def answer(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            if method == "SendSessionHeartbeat" and self.has_expired:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no session")
            return reply

        return grpc.unary_unary_rpc_method_handler(answer)


@contextlib.asynccontextmanager
async def open_session(machine: Machine) -> AsyncIterator[RemoteSession]:
    server = grpc.aio.server(handlers=[machine], options=[("grpc.max_send_message_length", -1)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    options = [("grpc.max_receive_message_length", -1)]

    async def open_channel() -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options)

    connection = GrpcConnection(await open_channel(), (), open_channel)
    try:
        yield RemoteSession(1, connection, SystemClock())
    finally:
        await connection.aclose()
        await server.stop(None)


async def list_names(session: RemoteSession) -> list[str] | None:
    """Return None if the list is that of the last time."""
    names: list[str] = []
    is_new = await session.list_resources(lambda _, name: names.append(name))
    return names if is_new else None


def make_names(*names: str) -> bytes:
    resources = [common.ResourceName(namespace="rdk", name=name) for name in names]
    return bytes(robot.ResourceNamesResponse(resources=resources).SerializeToString())


async def test_same_list_is_read_once() -> None:
    machine = Machine({"ResourceNames": make_names("a", "b")})
    async with open_session(machine) as session:
        assert await list_names(session) == ["a", "b"]
        assert await list_names(session) is None
        machine.replies["ResourceNames"] = make_names("b")
        assert await list_names(session) == ["b"]


async def test_list_that_is_too_large_is_read_in_part() -> None:
    names = [f"{number}-" + "x" * 20_000 for number in range(300)]
    async with open_session(Machine({"ResourceNames": make_names(*names)})) as session:
        read = await list_names(session)
        assert read is not None
        assert 100 < len(read) < 300
        assert session.has_truncated_list
        assert session.min_list_interval > 30
        assert await list_names(session) is None


async def test_millions_of_empty_frames_are_not_read() -> None:
    reply = b"\x0a\x00" * 5_000_000
    async with open_session(Machine({"FrameSystemConfig": reply})) as session:
        frames = await session.list_frames()
        assert len(frames) == MAX_RESOURCES
        assert await session.list_frames() is frames
        assert session.min_frames_interval > 60


@pytest.mark.parametrize("reply", [b"\xff\xff", b"\x0a\x05ab", b"\x0a\x02\x0a\xff"])
async def test_reply_that_cannot_be_read_is_an_error_of_the_remote(reply: bytes) -> None:
    replies = dict.fromkeys(("ResourceNames", "FrameSystemConfig", "StartSession"), reply)
    async with open_session(Machine(replies)) as session:
        with pytest.raises(RemoteUnavailable, match="its list of resources cannot be read"):
            await list_names(session)
        with pytest.raises(RemoteUnavailable, match="its list of frames cannot be read"):
            await session.list_frames()
        with pytest.raises(RemoteUnavailable, match="its answer to StartSession cannot be read"):
            await session.start()


async def test_long_session_id_is_refused() -> None:
    reply = robot.StartSessionResponse(id="x" * 100_000).SerializeToString()
    async with open_session(Machine({"StartSession": reply})) as session:
        with pytest.raises(RemoteUnavailable, match="100000 characters"):
            await session.start()


async def test_resource_of_an_ended_session_says_so() -> None:
    async with open_session(Machine({})) as session:
        where = RemoteName("line", "scale")
        spec = Spec(ResourceName(SENSOR, "scale", "line"), REMOTE_MODEL, where)
        scale: Any = await session.build(spec, {})
        assert (scale.fault, await scale.get_readings()) == (None, {})
        session.end("the connection was lost")
        assert scale.fault == "the connection was lost"
        with pytest.raises(RemoteUnavailable, match="the connection was lost"):
            await scale.get_readings()


async def test_apis_of_the_machine_have_services_and_perhaps_descriptors() -> None:
    apis = [Api("acme", "service", name) for name in ("echo", "radar", "other")]
    subtypes = [
        robot.ResourceRPCSubtype(
            subtype=common.ResourceName(
                namespace=api.namespace, type=api.kind, subtype=api.subtype
            ),
            proto_service=f"acme.{api.subtype}.v1",
        )
        for api in apis
    ]
    reply = robot.ResourceRPCSubtypesResponse(resource_rpc_subtypes=subtypes).SerializeToString()
    async with open_session(Machine({"ResourceRPCSubtypes": reply})) as session:
        assert await session.describe_services(()) == ({}, {})
        services, descriptors = await session.describe_services(apis[:2])
        assert services == {apis[0]: "acme.echo.v1", apis[1]: "acme.radar.v1"}
        assert descriptors == {}  # it does not describe them


def make_session(session_id: str) -> bytes:
    start = robot.StartSessionResponse(id=session_id)
    start.heartbeat_window.FromSeconds(60)
    return bytes(start.SerializeToString())


async def test_calls_carry_the_session() -> None:
    machine = Machine({"StartSession": make_session("session 7")})
    async with open_session(machine) as session:
        # They also show that the connection works, so they come more often than the window needs.
        assert await session.start() == 1.0
        await list_names(session)
        assert machine.sessions == {"StartSession": [], "ResourceNames": ["session 7"]}


async def test_calls_carry_the_session_that_replaces_one_that_has_expired() -> None:
    machine = Machine({"StartSession": make_session("first")})
    async with open_session(machine) as session:
        await session.start()
        machine.replies["StartSession"] = make_session("second")
        machine.has_expired = True
        heartbeats = asyncio.ensure_future(session.send_heartbeats(60.0))

        async def sessions_of_a_call() -> list[str]:
            await list_names(session)
            return machine.sessions["ResourceNames"]

        assert await poll(sessions_of_a_call, lambda named: "second" in named) == ["second"]
        heartbeats.cancel()
        await asyncio.gather(heartbeats, return_exceptions=True)
