"""Only a machine itself answers the calls of its clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.cloud.cloud_at_rest import add_machine, call_method, new_cloud, open_plane
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.fleet.keys import add_key
from cogwork.cloud.fleet.parts import LocatedPart, select_part
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import NotFound

ANSWER = "/proto.rpc.webrtc.v1.SignalingService/Answer"


@dataclass
class Machine:
    plane: ControlPlane
    part: LocatedPart
    secret: str
    owner: tuple[str, str]
    """The ID of the key of the organization's owner, and the key."""

    async def add_key(self, machine: str, role: CloudRole) -> tuple[str, str]:
        """Return the ID of a key with a role on one machine, and the key."""
        context = self.plane.context

        def work(tx: Transaction) -> tuple[str, str]:
            call = context.make_call(Actor(ActorType.API_KEY, self.owner[0]))
            grants = [((ResourceType.MACHINE, machine), role)]
            return add_key(tx, call, self.part.organization_id, "k", grants)

        return await context.records.write(work)

    async def answer(self, kind: str, login: tuple[str, str]) -> Any:
        """Return the first message to a machine that waits for clients."""
        token = await self.plane.login.log_in(login[0], kind, login[1], "::1")
        host = self.plane.context.name.full_name(self.part)
        metadata = {"rpc_host": host, "heartbeats_allowed": "true"}
        async with asyncio.timeout(30):
            return await call_method(self.plane, ANSWER, token, pb.AnswerResponse(), **metadata)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    directory, new = new_cloud(tmp_path / "cloud")
    async with open_plane(directory) as plane:
        part_id, secret = await add_machine(plane, new.key_id)
        part = await plane.context.records.read(lambda tx: select_part(tx, part_id))
        assert part is not None
        yield Machine(plane, part, secret, (new.key_id, new.key))


async def test_part_and_local_owner_key_answer(machine: Machine) -> None:
    login = machine.part.id, machine.secret
    assert (await machine.answer("robot-secret", login)).HasField("heartbeat")
    key = await machine.add_key(machine.part.machine_id, CloudRole.OWNER)
    assert (await machine.answer("api-key", key)).HasField("heartbeat")


async def test_wide_keys_and_operators_do_not_answer(machine: Machine) -> None:
    with pytest.raises(RoleTooLow, match="gives access to more than this machine"):
        await machine.answer("api-key", machine.owner)
    operator = await machine.add_key(machine.part.machine_id, CloudRole.OPERATOR)
    with pytest.raises(RoleTooLow, match="requires the role owner"):
        await machine.answer("api-key", operator)


async def test_strangers_learn_nothing_of_the_part(machine: Machine) -> None:
    other, secret = await add_machine(machine.plane, machine.owner[0])
    with pytest.raises(NotFound, match="does not have the name") as error:
        await machine.answer("robot-secret", (other, secret))
    assert machine.part.id not in str(error.value)
