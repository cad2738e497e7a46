"""What machines call on the cloud, as the SDK's generated client sends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.cloud.fleet import DOMAIN, Cloud, make_part, run_cloud
from tests.support.waiting import pass_time
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1 import robot_pb2 as pb
from viam.gen.app.v1.robot_grpc import RobotServiceStub
from viam.gen.common.v1.common_pb2 import LogEntry
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials

from cogwork.resource.messages.config_message import from_message
from cogwork.wire.messages.follow_method import ACCESS_METADATA


class PartClient:
    """A machine's part at the cloud."""

    def __init__(self, cloud: Cloud, part: str) -> None:
        host, _, port = cloud.address.partition(":")
        self.id = part
        self.channel = Channel(host, int(port))
        self._stub = RobotServiceStub(self.channel)
        self._metadata: dict[str, str] = {}

    async def log_in(self, secret: str) -> None:
        credentials = Credentials(type="robot-secret", payload=secret)
        request = AuthenticateRequest(entity=self.id, credentials=credentials)
        token = (await AuthServiceStub(self.channel).Authenticate(request)).access_token
        self._metadata = {"authorization": f"Bearer {token}"}

    async def call(self, method: str, request: Any) -> Any:
        return await getattr(self._stub, method)(request, metadata=self._metadata)


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[Cloud]:
    async with run_cloud(tmp_path) as running:
        yield running


@pytest.fixture
async def part(cloud: Cloud) -> AsyncIterator[PartClient]:
    connected = await cloud.connect()
    app = connected.app_client
    made = PartClient(cloud, await make_part(app))
    found = await app.get_robot_part(made.id)
    await app.update_robot_part(made.id, "press", {"debug": True, "components": []})
    await made.log_in(found.secret)
    yield made
    made.channel.close()
    connected.close()


async def test_part_gets_its_configuration(cloud: Cloud, part: PartClient) -> None:
    reply = await part.call("Config", pb.ConfigRequest(id=part.id))
    config: pb.RobotConfig = reply.config
    location = config.cloud.location_id
    assert config.debug
    assert config.revision.startswith("1-")
    assert config.cloud.fqdn == f"press.{location}.{DOMAIN}"
    assert config.cloud.signaling_address == f"{DOMAIN}:443"
    assert cloud.key_id not in str(config)


async def test_server_of_another_make_gets_the_keys_of_this_machine_only(
    cloud: Cloud, part: PartClient
) -> None:
    connected = await cloud.connect()
    app = connected.app_client
    found = await app.get_robot_part(part.id)
    (organization,) = await app.list_organizations()
    made = [
        await app.create_key(organization.id, [authorization], "key")
        for authorization in (
            APIKeyAuthorization("owner", "robot", found.robot),
            APIKeyAuthorization("operator", "robot", found.robot),
            APIKeyAuthorization("owner", "location", found.location_id),
            APIKeyAuthorization("owner", "organization", organization.id),
        )
    ]
    config = (await part.call("Config", pb.ConfigRequest(id=part.id))).config
    (handler,) = from_message(config)["auth"]["handlers"]
    key, key_id = made[0]
    # Every member but `keys` is a key to it, and it stops at one that is no text.
    assert handler["config"] == {"keys": [key_id], key_id: key}
    assert config.cloud.location_secrets[0].secret == config.cloud.location_secret
    again = (await part.call("Config", pb.ConfigRequest(id=part.id))).config
    assert again == config, "small servers restart at each revision"
    with pytest.raises(GRPCError, match="the machine and its owners can read it") as refused:
        await app.add_role(organization.id, key_id, "operator", "location", found.location_id)
    assert refused.value.status is Status.FAILED_PRECONDITION
    await app.delete_key(key_id)
    config = (await part.call("Config", pb.ConfigRequest(id=part.id))).config
    assert "handlers" not in from_message(config)["auth"]
    part._metadata |= [ACCESS_METADATA]
    config = (await part.call("Config", pb.ConfigRequest(id=part.id))).config
    assert "auth" not in from_message(config)
    assert not config.cloud.location_secret
    connected.close()


async def test_certificate_is_valid_for_the_names_of_the_part(
    part: PartClient, tmp_path: Path
) -> None:
    config = (await part.call("Config", pb.ConfigRequest(id=part.id))).config
    reply = await part.call("Certificate", pb.CertificateRequest(id=part.id))
    certificate, _ = x509.load_pem_x509_certificates(reply.tls_certificate.encode())
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    for name in (config.cloud.fqdn, config.cloud.local_fqdn):
        verifier = (
            PolicyBuilder().store(Store([authority])).build_server_verifier(x509.DNSName(name))
        )
        verifier.verify(certificate, [])
    assert "PRIVATE KEY" in reply.tls_private_key


async def test_logs_reach_the_owner(cloud: Cloud, part: PartClient) -> None:
    entries = [
        LogEntry(level=level, logger_name="rdk.motor", message=f"line {number}", host="press")
        for number, level in enumerate(["info", "error", "info"])
    ]
    for entry in entries:
        entry.time.GetCurrentTime()
    await part.call("Log", pb.LogRequest(id=part.id, logs=entries))
    connected = await cloud.connect()
    app = connected.app_client
    found = await app.get_robot_part_logs(part.id)
    assert [each.message for each in found] == ["line 2", "line 1", "line 0"]
    assert [
        each.message for each in await app.get_robot_part_logs(part.id, log_levels=["error"])
    ] == ["line 1"]
    assert [each.message for each in await app.get_robot_part_logs(part.id, filter="LINE 0")] == [
        "line 0"
    ]
    connected.close()


async def test_new_lines_are_followed(cloud: Cloud, part: PartClient) -> None:
    connected = await cloud.connect()
    followed = await connected.app_client.tail_robot_part_logs(part.id, False, "good")
    messages: list[str] = []

    async def follow() -> None:
        async for entries in followed:
            messages.extend(each.message for each in entries)

    following = asyncio.create_task(follow())
    async with asyncio.timeout(60):
        while "good 2" not in messages:
            lines = [LogEntry(message=each) for each in ("bad", "good 1", "good 2")]
            await part.call("Log", pb.LogRequest(id=part.id, logs=lines))
            await pass_time(0.02)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert set(messages) == {"good 1", "good 2"}
    connected.close()


async def test_restart_is_delivered_once(cloud: Cloud, part: PartClient) -> None:
    connected = await cloud.connect()
    await connected.app_client.mark_part_for_restart(part.id)
    request = pb.NeedsRestartRequest(id=part.id)
    replies = [await part.call("NeedsRestart", request) for _ in range(2)]
    assert [reply.must_restart for reply in replies] == [True, False]
    assert replies[0].restart_check_interval.seconds >= 1
    connected.close()


@pytest.mark.parametrize("method", ["Config", "Certificate", "Log", "NeedsRestart"])
async def test_part_cannot_act_for_another(cloud: Cloud, part: PartClient, method: str) -> None:
    connected = await cloud.connect()
    other = await make_part(connected.app_client)
    connected.close()
    with pytest.raises(GRPCError) as refused:
        await part.call(method, getattr(pb, f"{method}Request")(id=other))
    assert refused.value.status is Status.NOT_FOUND
