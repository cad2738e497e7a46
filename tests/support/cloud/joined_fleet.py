"""A cloud as a process, machines that have joined it, and clients that reach them in every way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
from benchmarks.parts.webrtc_client import WebRtcClient
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.running import DEADLINE, Server, run_server
from tests.support.waiting import pass_time, poll
from viam.app.app_client import AppClient
from viam.app.viam_client import ViamClient
from viam.gen.proto.rpc.v1.auth_pb2 import (
    AuthenticateRequest,
    AuthenticateResponse,
    AuthenticateToRequest,
    AuthenticateToResponse,
    Credentials,
)

LOG_IN = "/proto.rpc.v1.AuthService/Authenticate"
LOG_IN_TO = "/proto.rpc.v1.ExternalAuthService/AuthenticateTo"
Metadata = list[tuple[str, str]]


@dataclass(frozen=True)
class Login:
    entity: str
    kind: str
    payload: str


@dataclass
class JoinedMachine:
    part: Any
    """As the SDK describes it."""
    server: Server
    directory: Path
    channel: grpc.aio.Channel


@dataclass
class Fleet:
    cloud: CloudProcess
    client: ViamClient
    channel: grpc.aio.Channel
    organization: str
    directory: Path

    @property
    def app(self) -> AppClient:
        return self.client.app_client

    @contextlib.asynccontextmanager
    async def run_machine(
        self, name: str, location: str, config: dict[str, Any]
    ) -> AsyncIterator[JoinedMachine]:
        machine = await self.app.new_robot(name, location)
        (part,) = await self.app.get_robot_parts(machine)
        part = await self.app.update_robot_part(part.id, part.name, config)
        directory = self.directory / name
        directory.mkdir()
        file = {
            "cloud": {
                "id": part.id,
                "secret": part.secret,
                "app_address": f"http://{self.cloud.address}",
            }
        }
        async with run_server(file, directory, arguments=["-disable-mdns"]) as server:
            await server.out.wait_for("waiting for clients at the signaling server")
            channel = grpc.aio.insecure_channel(f"localhost:{server.port}")
            yield JoinedMachine(part, server, directory, channel)
            await channel.close()


@contextlib.asynccontextmanager
async def run_fleet(directory: Path) -> AsyncIterator[Fleet]:
    cloud = CloudProcess(directory / "cloud")
    await cloud.initialize()
    async with cloud.serve():
        client = await cloud.client().connect()
        (organization,) = await client.app_client.list_organizations()
        async with grpc.aio.insecure_channel(cloud.address) as channel:
            yield Fleet(cloud, client, channel, organization.id, directory)
        client.close()


async def log_in(channel: grpc.aio.Channel, login: Login) -> Metadata:
    """Return the metadata of later calls."""
    call: Any = channel.unary_unary(
        LOG_IN,
        request_serializer=AuthenticateRequest.SerializeToString,
        response_deserializer=AuthenticateResponse.FromString,
    )
    credentials = Credentials(type=login.kind, payload=login.payload)
    request = AuthenticateRequest(entity=login.entity, credentials=credentials)
    return _bearer((await call(request, timeout=DEADLINE)).access_token)


async def log_in_to(channel: grpc.aio.Channel, host: str, metadata: Metadata) -> Metadata:
    """Return the metadata of calls to a machine, given a login at its cloud."""
    call: Any = channel.unary_unary(
        LOG_IN_TO,
        request_serializer=AuthenticateToRequest.SerializeToString,
        response_deserializer=AuthenticateToResponse.FromString,
    )
    request = AuthenticateToRequest(entity=host)
    return _bearer((await call(request, metadata=metadata, timeout=DEADLINE)).access_token)


def _bearer(token: str) -> Metadata:
    return [("authorization", f"Bearer {token}")]


async def call_raw(channel: grpc.aio.Channel, path: str, metadata: Metadata, request: bytes) -> Any:
    call: Any = channel.unary_unary(path)
    return await call(request, metadata=metadata, timeout=DEADLINE)


@contextlib.asynccontextmanager
async def webrtc_client(
    signaling: grpc.aio.Channel, host: str, metadata: Metadata
) -> AsyncIterator[WebRtcClient]:
    client = WebRtcClient()
    try:
        await client.connect(signaling, host, metadata)
        yield client
    finally:
        await client.close()


async def wait_for_login(channel: grpc.aio.Channel, login: Login) -> Metadata:
    """Log in to a machine as soon as it knows the credentials."""

    async def ask() -> Metadata:
        with contextlib.suppress(grpc.aio.AioRpcError):
            return await log_in(channel, login)
        return []

    return await poll(ask, bool)


async def measure_until_refused(
    probe: Callable[[], Awaitable[bool]], began: float, watched: float = 0.5
) -> tuple[float, int]:
    """Return the seconds until a client is refused, and how often it is served after that.

    `probe` returns whether a call was served.
    """
    clock = asyncio.get_running_loop().time
    while await probe():
        assert clock() - began < DEADLINE, "it is never refused"
        await pass_time(0.01)
    refused_at = clock()
    served = 0
    while clock() - refused_at < watched:
        served += await probe()
        await pass_time(0.02)
    return refused_at - began, served
