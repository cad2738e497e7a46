"""TURN servers that the cloud names to clients and machines."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.interop.test_app_client import PROGRAM
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import Cloud, make_part, run_cloud
from tests.support.machine.running import start_server
from viam.app.app_client import APIKeyAuthorization
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb
from viam.gen.proto.rpc.webrtc.v1.signaling_grpc import SignalingServiceStub

from cogwork.cloud.signaling.relay_servers import RelayServers
from cogwork.core.clock import ManualClock

URLS = ("turn:turn.test:3478?transport=udp", "turns:turn.test:5349")
SECRET = "shared with coturn"
NOW = 1_800_000_000


def check_servers(servers: Any) -> None:
    (server,) = servers
    assert tuple(server.urls) == URLS
    expires, _, _ = server.username.partition(":")
    assert int(expires) == NOW + 24 * 3600
    # As coturn computes it from its static-auth-secret.
    digest = hmac.digest(SECRET.encode(), server.username.encode(), hashlib.sha1)
    assert server.credential == base64.b64encode(digest).decode()


async def read_config(cloud: Cloud, host: str, metadata: Any) -> pb.WebRTCConfig:
    address, _, port = cloud.address.partition(":")
    channel = Channel(address, int(port))
    try:
        reply = await SignalingServiceStub(channel).OptionalWebRTCConfig(
            pb.OptionalWebRTCConfigRequest(), metadata={**metadata, "rpc-host": host}
        )
    finally:
        channel.close()
    config: pb.WebRTCConfig = reply.config
    return config


async def test_no_servers_by_default(tmp_path: Path) -> None:
    async with run_cloud(tmp_path) as cloud:
        owner = await cloud.connect()
        part = await owner.app_client.get_robot_part(await make_part(owner.app_client))
        assert await read_config(cloud, part.fqdn, owner._metadata) == pb.WebRTCConfig()
        owner.close()


async def test_clients_and_machines_get_the_same_servers(tmp_path: Path) -> None:
    relays = RelayServers(URLS, SECRET)
    async with run_cloud(tmp_path, ManualClock(NOW), relays=relays) as cloud:
        owner = await cloud.connect()
        app = owner.app_client
        part = await app.get_robot_part(await make_part(app))
        machine = PartClient(cloud, part.id)
        await machine.log_in(part.secret)
        for login in (owner._metadata, machine._metadata):
            found = await read_config(cloud, part.fqdn, login)
            check_servers(found.additional_ice_servers)
        offer = await call_machine(machine, part.fqdn, owner._metadata)
        check_servers(offer.optional_config.additional_ice_servers)
        machine.channel.close()
        owner.close()


async def call_machine(machine: PartClient, host: str, client: Any) -> pb.AnswerRequestInitStage:
    """Return the offer that a machine gets when a client calls it."""
    stub = SignalingServiceStub(machine.channel)
    waits = {**machine._metadata, "rpc-host": host, "heartbeats-allowed": "true"}
    async with asyncio.timeout(60), stub.Answer.open(metadata=waits) as answer:
        await answer.send_request()
        # The first heartbeat says that the machine waits: before it, the cloud
        # refuses a call, which nobody here would read.
        heartbeat = await answer.recv_message()
        assert heartbeat is not None
        assert heartbeat.HasField("heartbeat")
        async with stub.Call.open(metadata={**client, "rpc-host": host}) as call:
            await call.send_message(pb.CallRequest(sdp="offer"), end=True)
            request = await answer.recv_message()
            assert request is not None
            assert request.HasField("init")
            await call.cancel()
        await answer.cancel()
    init: pb.AnswerRequestInitStage = request.init
    return init


async def test_servers_are_only_for_those_who_use_the_machine(tmp_path: Path) -> None:
    async with run_cloud(tmp_path, relays=RelayServers(URLS, SECRET)) as cloud:
        owner = await cloud.connect()
        app = owner.app_client
        part = await app.get_robot_part(await make_part(app))
        other = await app.get_robot_part(await make_part(app))
        (organization,) = await app.list_organizations()
        role = APIKeyAuthorization("owner", "robot", other.robot)
        key, key_id = await app.create_key(organization.id, [role], "stranger")
        stranger = await cloud.connect(key_id, key)
        machine = PartClient(cloud, other.id)
        await machine.log_in(other.secret)
        for login in (stranger._metadata, machine._metadata):
            with pytest.raises(GRPCError) as refused:
                await read_config(cloud, part.fqdn, login)
            assert refused.value.status is Status.NOT_FOUND
        machine.channel.close()
        stranger.close()
        owner.close()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--turn-url", "turn:turn.test:3478"], "belong together"),
        (["--turn-url", "http://x", "--turn-secret-file", "secret"], "is not a TURN server"),
        (["--turn-url", "turn:x", "--turn-secret-file", "missing"], "cannot read"),
        (["--turn-url", "turn:x", "--turn-secret-file", "empty"], "is empty"),
    ],
)
async def test_unusable_options_are_explained(
    tmp_path: Path, arguments: list[str], expected: str
) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "empty").write_text("\n")
    arguments = [
        str(tmp_path / each) if each in ("secret", "empty", "missing") else each
        for each in arguments
    ]
    serve = ["serve", "--data", str(tmp_path), *arguments]
    async with start_server(serve, program=PROGRAM) as server:
        assert await server.exit_code() == 1
    assert expected in server.err.text
