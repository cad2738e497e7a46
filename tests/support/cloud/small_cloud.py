"""The records of a cloud and its operations, without servers and threads: milliseconds a call."""

from __future__ import annotations

import asyncio
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from tests.support.cloud.cloud_at_rest import DOMAIN, new_cloud  # noqa: E402
from tests.support.cloud.tenants import Tenant  # noqa: E402
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory  # noqa: E402
from cogwork.cloud.fleet.app_service import OPERATIONS  # noqa: E402
from cogwork.cloud.identity.actor import Actor, ActorType  # noqa: E402
from cogwork.cloud.identity.part_watch import PartWatch  # noqa: E402
from cogwork.cloud.identity.presence import Presence  # noqa: E402
from cogwork.cloud.identity.public_name import PublicName  # noqa: E402
from cogwork.cloud.keys.cloud_keys import CloudKeys  # noqa: E402
from cogwork.cloud.keys.key_records import list_cloud_keys  # noqa: E402
from cogwork.cloud.keys.keyring import Keyring  # noqa: E402
from cogwork.cloud.operations.operation import Call  # noqa: E402
from cogwork.cloud.registry.packages import MODULE, NewPackage, add_package  # noqa: E402
from cogwork.cloud.storage.blobs import Blob  # noqa: E402
from cogwork.cloud.storage.records import Transaction  # noqa: E402
from cogwork.cloud.storage.sqlite_records import read_records, write_records  # noqa: E402
from cogwork.core.clock import ManualClock  # noqa: E402

T = TypeVar("T")


def create_template(path: Path) -> str:
    """Create a cloud to copy from, and return the ID of its owner's key."""
    return new_cloud(path, ManualClock())[1].key_id


@functools.cache
def _open_keyring(template: Path) -> Keyring:
    """Open it once for all copies, because checking an RSA key takes as long as many calls."""
    directory = CloudDirectory(template)
    rows = read_records(directory.records, list_cloud_keys)
    return Keyring(CloudKeys(directory.read_root_key(), ManualClock(), rows))


class SmallCloud:
    def __init__(self, template: Path, path: Path, owner: str) -> None:
        directory = CloudDirectory(Path(shutil.copytree(template, path)))
        self._records = directory.records
        self.clock = ManualClock()
        self.owner = owner
        """The key of the hosting organization's owner."""
        self._keyring = _open_keyring(template)
        self._name = PublicName(DOMAIN, f"{DOMAIN}:443", is_encrypted=True)
        self._presence, self._watch = Presence(self.clock), PartWatch(self.clock)
        self.last_call = self.make_call(owner)
        """With what follows from the last operation."""

    def make_call(self, key: str) -> Call:
        actor, now = Actor(ActorType.API_KEY, key), int(self.clock.time() * 1e6)
        return Call(actor, now, self._keyring, self._name, self._presence, self._watch)

    def run(self, key: str, request: Message) -> Any:
        """Return the reply to a request, which names the operation, made with a key."""
        operation = OPERATIONS[request.DESCRIPTOR.name.removesuffix("Request")]
        call = self.last_call = self.make_call(key)
        execute = write_records if operation.is_write else read_records
        return execute(self._records, lambda tx: operation.answer(tx, call, request))

    def advance(self, seconds: float) -> None:
        """Let time pass: records that are created at the same time have no order."""
        asyncio.run(self.clock.advance(seconds))

    def write(self, work: Callable[[Transaction], T]) -> T:
        return write_records(self._records, work)

    def read(self, work: Callable[[Transaction], T]) -> T:
        return read_records(self._records, work)

    def add_key(self, owner: str, kind: str, resource: str, role: str) -> str:
        """Return the ID of a new key that has a role on one resource."""
        granted = pb.Authorization(
            authorization_type="role",
            authorization_id=f"{kind}_{role}",
            resource_type=kind,
            resource_id=resource,
        )
        reply = self.run(
            owner, pb.CreateKeyRequest(name=f"{kind} {role}", authorizations=[granted])
        )
        return str(reply.id)

    def add_tenant(self, name: str) -> Tenant:
        """Return a new organization with one of everything. Its key is an owner."""
        made = self.run(self.owner, pb.CreateOrganizationRequest(name=name))
        organization = made.organization.id
        owner = self.add_key(self.owner, "organization", organization, "owner")
        hall = pb.CreateLocationRequest(organization_id=organization, name="Hall")
        location = self.run(owner, hall).location.id
        machine = self.run(owner, pb.NewRobotRequest(name="press", location=location)).id
        (part,) = self.run(owner, pb.GetRobotPartsRequest(robot_id=machine)).parts
        fragment = pb.CreateFragmentRequest(name="shared", organization_id=organization)
        fragment.config.update({"debug": True})
        drive = pb.CreateModuleRequest(name="drive", organization_id=organization)
        module = self.run(owner, drive).module_id
        package = NewPackage(organization, "drive", MODULE, "1.0.0", "any")
        content = Blob("00", size=0, crc32c=0)
        self.write(lambda tx: add_package(tx, self.make_call(owner), package, content))
        return Tenant(
            *(organization, location, machine, part.id, part.secrets[0].id, owner),
            self.run(owner, fragment).fragment.id,
            module,
            part.fqdn,
        )
