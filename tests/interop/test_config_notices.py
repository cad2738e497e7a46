"""What changes the configuration or the access list of a machine, besides an edit, reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import Cloud, make_part, run_cloud
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.v1 import robot_pb2 as pb

from cogwork.auth.access_list import AccessList, PrincipalKind, parse_access_list
from cogwork.cloud.storage.bus import part_topic
from cogwork.wire.messages.follow_method import GET_ACCESS


@dataclass
class Machine:
    """A machine in a location within another, and its part at the cloud."""

    app: AppClient
    cloud: Cloud
    part: PartClient
    id: str
    organization: str
    location: str
    hall: str
    """The location above."""
    key: str
    """A key with a role on the machine."""

    async def create_key(
        self, kind: Literal["organization", "location", "robot"], resource: str
    ) -> str:
        role = APIKeyAuthorization("operator", kind, resource)
        _, key_id = await self.app.create_key(self.organization, [role], "new")
        return str(key_id)

    async def read_revisions(self) -> tuple[str, str]:
        """Return those of the configuration and of the access list."""
        reply = await self.part.call("Config", pb.ConfigRequest(id=self.part.id))
        return reply.config.revision, (await self.read_access()).revision

    async def read_access(self) -> AccessList:
        stream = self.part.channel.request(
            GET_ACCESS,
            Cardinality.UNARY_UNARY,
            StringValue,
            StringValue,
            metadata=self.part._metadata,
        )
        async with stream as opened:
            await opened.send_message(StringValue(value=self.part.id), end=True)
            reply = await opened.recv_message()
        assert reply is not None
        return parse_access_list(reply.value)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with run_cloud(tmp_path) as cloud:
        connected = await cloud.connect()
        app = connected.app_client
        (organization,) = await app.list_organizations()
        hall = (await app.create_location(organization.id, "Hall")).id
        location = (await app.create_location(organization.id, "Line", hall)).id
        machine = await app.new_robot("press", location)
        (part,) = await app.get_robot_parts(machine)
        client = PartClient(cloud, part.id)
        await client.log_in(part.secret)
        made = Machine(app, cloud, client, machine, organization.id, location, hall, "")
        made.key = await made.create_key("robot", machine)
        yield made
        client.channel.close()
        connected.close()


async def create_organization_key(machine: Machine) -> None:
    await machine.create_key("organization", machine.organization)


async def create_key_of_location_above(machine: Machine) -> None:
    await machine.create_key("location", machine.hall)


async def create_key_of_machine(machine: Machine) -> None:
    await machine.create_key("robot", machine.id)


async def delete_key(machine: Machine) -> None:
    await machine.app.delete_key(machine.key)


async def rotate_key(machine: Machine) -> None:
    await machine.app.rotate_key(machine.key)


async def add_role(machine: Machine) -> None:
    await machine.app.add_role(machine.organization, machine.key, "owner", "robot", machine.id)


async def remove_role(machine: Machine) -> None:
    await machine.app.remove_role(
        machine.organization, machine.key, "operator", "robot", machine.id
    )


async def change_role(machine: Machine) -> None:
    await machine.app.change_role(
        machine.organization,
        *(machine.key, "operator", "robot", machine.id),
        *(machine.key, "owner", "robot", machine.id),
    )


async def create_location_secret(machine: Machine) -> None:
    await machine.app.create_location_secret(machine.location)


async def move_machine(machine: Machine) -> None:
    await machine.app.update_robot(machine.id, "press", machine.hall)


async def rename_part(machine: Machine) -> None:
    await machine.app.update_robot_part(machine.part.id, "hammer")


async def move_location(machine: Machine) -> None:
    """The machine inherits the roles that were granted on its location's new place."""
    app = machine.app
    other = (await app.create_location(machine.organization, "Other hall")).id
    await machine.create_key("location", other)
    await app.update_location(machine.location, None, other)


CHANGES: list[Callable[[Machine], Awaitable[None]]] = [
    *(create_organization_key, create_key_of_location_above, create_key_of_machine),
    *(delete_key, rotate_key, add_role, remove_role, change_role),
    *(create_location_secret, move_machine, rename_part, move_location),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
async def test_change_reaches_the_machine(
    machine: Machine, change: Callable[[Machine], Awaitable[None]]
) -> None:
    before = await machine.read_revisions()
    assert await machine.read_revisions() == before
    context = machine.cloud.context
    assert context is not None
    async with context.bus.listen(part_topic(machine.part.id)) as notices:
        await change(machine)
        async with asyncio.timeout(60):
            await anext(notices)
    assert await machine.read_revisions() != before


async def test_former_secret_of_the_location_leaves_the_access_list(machine: Machine) -> None:
    for _ in range(2):
        auth = await machine.app.create_location_secret(machine.location)
    both = await machine.read_access()
    new, old = (each.id for each in auth.secrets)
    assert {each.principal.id for each in both.of_kind(PrincipalKind.LOCATION)} == {new, old}
    await machine.app.delete_location_secret(old, machine.location)
    after = await machine.read_access()
    assert [each.principal.id for each in after.of_kind(PrincipalKind.LOCATION)] == [new]
    assert after.revision != both.revision


async def test_secret_of_the_part_is_announced(machine: Machine) -> None:
    context = machine.cloud.context
    assert context is not None
    async with context.bus.listen(part_topic(machine.part.id)) as notices:
        await machine.app.create_robot_part_secret(machine.part.id)
        async with asyncio.timeout(60):
            await anext(notices)


async def test_other_machines_are_left_alone(machine: Machine) -> None:
    other = await make_part(machine.app)
    context = machine.cloud.context
    assert context is not None
    async with context.bus.listen(part_topic(other)) as notices:
        for change in (create_key_of_location_above, rotate_key, change_role, move_machine):
            await change(machine)
        context.bus.publish(part_topic(other), b"the first")
        async with asyncio.timeout(60):
            assert await anext(notices) == b"the first"
