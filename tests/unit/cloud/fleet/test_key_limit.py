"""Access lists stay small: the number of keys with a role on one resource is limited."""

from __future__ import annotations

import shutil
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from tests.support.cloud.cloud_at_rest import add_machine, call_method, new_cloud, open_plane
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.auth.access_list import parse_access_list
from cogwork.cloud.commands import key_commands
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.fleet import keys
from cogwork.cloud.fleet.keys import KeyLimit
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.machine.part_access_list import issue_access_list
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import PartRow
from cogwork.core.clock import SystemClock
from cogwork.core.workers import run_in_thread
from cogwork.wire.messages.follow_method import GET_ACCESS

LIMIT = 1_000


@dataclass
class FullMachine:
    """A machine with the maximum number of keys."""

    plane: ControlPlane
    directory: CloudDirectory
    owner: str
    organization: str
    machine: str
    part: str
    secret: str

    async def call(self, operation: str, request: Any) -> Any:
        def work(tx: Transaction) -> Any:
            call = self.plane.context.make_call(Actor(ActorType.API_KEY, self.owner))
            return keys.OPERATIONS[operation].answer(tx, call, request)

        return await self.plane.context.records.write(work)

    def grant(self, key: str = "", role: str = "operator") -> pb.Authorization:
        return pb.Authorization(
            authorization_type="role",
            authorization_id=f"robot_{role}",
            resource_type="robot",
            resource_id=self.machine,
            identity_id=key,
        )

    async def fill(self, resource_type: str, resource: str, count: int) -> None:
        def work(tx: Transaction) -> None:
            for number in range(count):
                key = f"{resource_type}-{number}"
                tx.execute(
                    "INSERT INTO api_key (id, organization_id, name, digest, sealed, created_at) "
                    "VALUES (?, ?, 'k', '00', '', 0)",
                    *(key, self.organization),
                )
                tx.execute(
                    "INSERT INTO role_grant VALUES (?, ?, ?, ?, 'operator')",
                    *(key, self.organization, resource_type, resource),
                )

        await self.plane.context.records.write(work)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    directory, new = new_cloud(tmp_path_factory.mktemp("cloud") / "cloud")
    return directory.path, new.key_id


@pytest.fixture
async def full(template: tuple[Path, str], tmp_path: Path) -> AsyncIterator[FullMachine]:
    directory = CloudDirectory(Path(shutil.copytree(template[0], tmp_path / "cloud")))
    async with open_plane(directory) as plane:
        part, secret = await add_machine(plane, template[1])
        (row,) = await plane.context.records.read(
            lambda tx: select(tx, PartRow, "WHERE id = ?", part)
        )
        made = FullMachine(
            *(plane, directory, template[1], row.organization_id),
            *(row.machine_id, part, secret),
        )
        await made.fill("robot", made.machine, LIMIT)
        yield made


async def test_no_more_keys_have_a_role_on_a_resource(full: FullMachine) -> None:
    create = pb.CreateKeyRequest(name="one more", authorizations=[full.grant()])
    with pytest.raises(KeyLimit, match=r"at most 1,000 may have one; delete unused keys"):
        await full.call("CreateKey", create)
    with pytest.raises(KeyLimit):
        await full.call("AddRole", pb.AddRoleRequest(authorization=full.grant(full.owner)))
    await full.call("DeleteKey", pb.DeleteKeyRequest(id="robot-7"))
    await full.call("CreateKey", create)


async def test_roles_of_keys_on_a_full_resource_can_be_changed(full: FullMachine) -> None:
    await full.call("AddRole", pb.AddRoleRequest(authorization=full.grant("robot-1", "owner")))
    await full.call(
        "ChangeRole",
        pb.ChangeRoleRequest(
            old_authorization=full.grant("robot-2"),
            new_authorization=full.grant("robot-2", "owner"),
        ),
    )


async def test_lost_owner_key_of_a_full_organization_is_replaced(full: FullMachine) -> None:
    await full.fill("organization", full.organization, LIMIT)

    def create() -> None:
        key_commands.create_owner_key(full.directory, "", "owner", SystemClock())

    await run_in_thread("create", 30, create)


async def test_access_list_is_issued_beside_the_event_loop(
    full: FullMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def record(content: bytes, now: float) -> str:
        threads.append(threading.get_ident())
        return issue_access_list(content, now)

    monkeypatch.setattr("cogwork.cloud.machine.follow_service.issue_access_list", record)
    token = await full.plane.login.log_in(full.part, "robot-secret", full.secret, "::1")
    reply = await call_method(full.plane, GET_ACCESS, token, StringValue(value=full.part))
    assert len(parse_access_list(reply.value).entries) == LIMIT + 1
    assert threads
    assert threading.get_ident() not in threads
