"""Names of machines: calls, tokens and certificates never go to or come from another part."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.cloud.fleet import DOMAIN, Cloud, run_cloud
from tests.support.cloud.tenants import Login, log_in, log_in_keys
from viam.app.app_client import AppClient
from viam.gen.app.v1.robot_grpc import RobotServiceStub
from viam.gen.app.v1.robot_pb2 import CertificateRequest
from viam.gen.proto.rpc.v1.auth_grpc import ExternalAuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateToRequest
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb
from viam.gen.proto.rpc.webrtc.v1.signaling_grpc import SignalingServiceStub

DEADLINE = 30.0


@dataclass
class Hall:
    """A location."""

    cloud: Cloud
    channel: Channel
    app: AppClient
    organization: str
    location: str

    async def add(self, name: str, location: str = "") -> Any:
        """Return the main part of a new machine."""
        machine = await self.app.new_robot(name, location or self.location)
        (part,) = await self.app.get_robot_parts(machine)
        return part

    async def rename(self, part: Any, name: str) -> Any:
        await self.app.update_robot_part(part.id, name)
        return await self.app.get_robot_part(part.id)

    async def owner_of(self, part: Any) -> Login:
        logins = await log_in_keys(self.channel, self.app, self.organization, {"robot": part.robot})
        return logins["owner of a robot"]

    async def machine(self, part: Any) -> Login:
        return await log_in(self.channel, "robot-secret", part.id, part.secret)

    async def token_for(self, host: str, login: Login) -> dict[str, Any]:
        """Return the claims of a token for the machine with this name."""
        request = AuthenticateToRequest(entity=host)
        stub = ExternalAuthServiceStub(self.channel)
        reply = await stub.AuthenticateTo(request, metadata=login)
        claims: dict[str, Any] = jwt.decode(reply.access_token, options={"verify_signature": False})
        return claims

    async def names_in_certificate(self, part: Any) -> set[str]:
        reply = await RobotServiceStub(self.channel).Certificate(
            CertificateRequest(id=part.id), metadata=await self.machine(part)
        )
        certificate = x509.load_pem_x509_certificate(reply.tls_certificate.encode())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return set(names.value.get_values_for_type(x509.DNSName))

    @contextlib.asynccontextmanager
    async def answering(self, part: Any, *hosts: str) -> AsyncIterator[asyncio.Task[str]]:
        """A part waits at these names for one call. The task has the offer, which is accepted."""
        login = await self.machine(part)
        metadata = [*login.items(), *(("rpc-host", host) for host in hosts)]
        opened = asyncio.Event()

        async def answer() -> str:
            async with SignalingServiceStub(self.channel).Answer.open(
                metadata=[*metadata, ("heartbeats-allowed", "true")]
            ) as stream:
                await stream.send_request()
                request = await stream.recv_message()
                assert request is not None
                assert request.WhichOneof("stage") == "heartbeat"
                opened.set()
                while request.WhichOneof("stage") == "heartbeat":
                    request = await stream.recv_message()
                    assert request is not None
                init = pb.AnswerResponseInitStage(sdp=f"answer of {part.id}")
                await stream.send_message(pb.AnswerResponse(uuid=request.uuid, init=init))
                done = pb.AnswerResponseDoneStage()
                await stream.send_message(pb.AnswerResponse(uuid=request.uuid, done=done), end=True)
                assert await stream.recv_message() is None
                return str(request.init.sdp)

        waiting = asyncio.create_task(answer())
        is_open = asyncio.create_task(opened.wait())
        try:
            await asyncio.wait({waiting, is_open}, timeout=DEADLINE, return_when="FIRST_COMPLETED")
            if waiting.done():
                waiting.result()
            yield waiting
        finally:
            for task in (waiting, is_open):
                task.cancel()
            await asyncio.gather(waiting, is_open, return_exceptions=True)

    async def call(self, host: str, login: Login) -> str:
        """Return the answer of the machine with this name."""
        metadata = {**login, "rpc-host": host}
        async with SignalingServiceStub(self.channel).Call.open(
            metadata=metadata, timeout=DEADLINE
        ) as stream:
            await stream.send_message(pb.CallRequest(sdp="offer"), end=True)
            reply = await stream.recv_message()
            if reply is None:
                await stream.recv_trailing_metadata()
            assert reply is not None
            return str(reply.init.sdp)


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Hall]:
    async with run_cloud(tmp_path) as cloud:
        connected = await cloud.connect()
        app = connected.app_client
        (organization,) = await app.list_organizations()
        location = await app.create_location(organization.id, "Hall")
        host, _, port = cloud.address.partition(":")
        with contextlib.closing(Channel(host, int(port))) as channel:
            yield Hall(cloud, channel, app, organization.id, location.id)
        connected.close()


@contextlib.contextmanager
def refused() -> Iterator[None]:
    with pytest.raises(GRPCError) as error:
        yield
    assert error.value.status is Status.NOT_FOUND


async def test_part_with_the_name_of_another_neither_reaches_nor_becomes_it(hall: Hall) -> None:
    victim, mine = await hall.add("victim"), await hall.add("mine")
    thief, owner = await hall.owner_of(mine), await hall.owner_of(victim)
    mine = await hall.rename(mine, victim.name)
    assert mine.name == victim.name
    assert mine.fqdn != victim.fqdn
    assert mine.fqdn.startswith(f"{victim.dns_name}-")
    with refused():
        async with hall.answering(mine, victim.fqdn):
            pass
    # A machine whose other names are its own gets its own calls only.
    async with (
        hall.answering(mine, mine.fqdn, victim.fqdn) as at_mine,
        hall.answering(victim, victim.fqdn, victim.local_fqdn),
    ):
        for host in (victim.fqdn, victim.local_fqdn):
            with refused():
                await hall.token_for(host, thief)
            with refused():
                await hall.call(host, thief)
        assert await hall.call(victim.fqdn, owner) == f"answer of {victim.id}"
        assert not at_mine.done()
        assert await hall.call(mine.local_fqdn, thief) == f"answer of {mine.id}"
    assert (await hall.token_for(victim.fqdn, owner))["aud"] == [victim.id, victim.fqdn]
    assert victim.fqdn not in await hall.names_in_certificate(mine)


async def test_former_name_leads_to_the_same_part(hall: Hall) -> None:
    before = await hall.add("press")
    owner = await hall.owner_of(before)
    part = await hall.rename(before, "Säge")
    assert part.fqdn == f"sage.{hall.location}.{DOMAIN}"
    other = await hall.rename(await hall.add("other"), before.name)
    assert other.fqdn not in (before.fqdn, part.fqdn)
    names = {before.fqdn, before.local_fqdn, part.fqdn, part.local_fqdn}
    permanent = f"{part.id}.part.{DOMAIN}"
    # A machine that has not noticed waits at its former name.
    for answered, called in ((before.fqdn, part.fqdn), (part.fqdn, before.fqdn)):
        async with hall.answering(part, answered):
            assert await hall.call(called, owner) == f"answer of {part.id}"
    for host in (*names, permanent):
        assert (await hall.token_for(host, owner))["aud"] == [part.id, part.fqdn]
    assert await hall.names_in_certificate(part) == {*names, permanent}


async def test_moved_and_deleted_machines_keep_their_names(hall: Hall) -> None:
    moved, deleted = await hall.add("press"), await hall.add("saw")
    yard = await hall.app.create_location(hall.organization, "Yard")
    owner = await hall.owner_of(moved)
    await hall.app.update_robot(moved.robot, "press", yard.id)
    now = await hall.app.get_robot_part(moved.id)
    assert now.fqdn == f"press-main.{yard.id}.{DOMAIN}"
    for host in (moved.fqdn, now.fqdn):
        assert (await hall.token_for(host, owner))["aud"] == [moved.id, now.fqdn]
    await hall.app.delete_robot(deleted.robot)
    for name, former in (("press", moved), ("saw", deleted)):
        successor = await hall.add(name)
        assert successor.fqdn != former.fqdn
        with refused():
            await hall.token_for(former.fqdn, await hall.owner_of(successor))


async def test_names_without_latin_letters_are_distinct(hall: Hall) -> None:
    names = ("机器人一", "机器人二", "Пресс", "Печь", f"{'x' * 60}a", f"{'x' * 60}b", "!", "?")
    parts = [await hall.add(name) for name in names]
    assert [part.name for part in parts] == [f"{name}-main" for name in names]
    assert len({part.fqdn for part in parts}) == len(names)
    assert len({part.local_fqdn for part in parts}) == len(names)
