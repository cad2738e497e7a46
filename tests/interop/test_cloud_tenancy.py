"""Every method of the cloud, with the IDs of other organizations and with every role."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpclib import GRPCError
from grpclib.client import Channel, StreamUnaryMethod, UnaryUnaryMethod
from grpclib.const import Status
from tests.archives import make_archive
from tests.fleet import Cloud, run_cloud
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.packages.v1 import packages_pb2
from viam.gen.app.v1 import app_pb2
from viam.proto.app import ModuleFileInfo

from cogwork.cloud.fleet.app_service import served_methods

METHODS = {
    each.name: each
    for service in (
        app_pb2.DESCRIPTOR.services_by_name["AppService"],
        packages_pb2.DESCRIPTOR.services_by_name["PackageService"],
    )
    for each in service.methods
}
PACKAGE_METHODS = ("CreatePackage", "GetPackage", "ListPackages", "DeletePackage")
FREE = {"ListOrganizations", "CreateOrganization"}
"""Methods that name nothing of an organization."""
ASKS = {"CheckPermissions", "ListLocations", "ListRobotsForOrg"}
"""Methods that answer with what the caller may see, which is nothing here."""
OPERATOR = {
    *("GetOrganization", "GetLocation", "ListLocations", "GetRobot", "ListRobots"),
    *("ListRobotsForOrg", "ListRobotsForLocations", "GetRobotParts", "GetRobotPart"),
    *("GetRobotPartByNameAndLocation", "GetRobotPartHistory", "GetRobotPartLogs"),
    *("MarkPartForRestart", "CheckPermissions"),
    *("GetFragment", "ListFragments", "GetFragmentHistory", "GetFragmentUsage"),
    *("ListMachineFragments", "GetModule", "ListModules", "GetRegistryItem", "ListRegistryItems"),
    *("GetPackage", "ListPackages"),
}
"""Methods that an operator may call; all others require an owner."""


@dataclass
class Tenant:
    """An organization with one of everything."""

    client: AppClient
    metadata: dict[str, str]
    organization: str
    location: str
    machine: str
    part: str
    secret: str
    key: str
    fragment: str
    module: str

    def fill(self, message: Message) -> None:
        """Name everything of this organization that a request can name."""
        ids = {
            "organization_id": self.organization,
            "org_id": self.organization,
            "location_id": self.location,
            "location": self.location,
            "location_ids": [self.location],
            "robot_id": self.machine,
            "part_id": self.part,
            "secret_id": self.secret,
            "identity_id": self.key,
            "resource_id": self.machine,
            "resource_type": "robot",
            "authorization_type": "role",
            "authorization_id": "robot_owner",
            "permissions": ["read_robot"],
            "machine_id": self.machine,
            "fragment_id": self.fragment,
            "current_organization_id": self.organization,
            "additional_fragment_ids": [self.fragment],
            "module_id": self.module,
            "item_id": self.module,
            "new_name": "stolen",
            "version": "1.0.0",
            "platform": "any",
            "tag": "stable",
            "revision": "1",
        }
        for field in message.DESCRIPTOR.fields:
            if field.name == "id":
                self._set_id(message)
            elif field.name == "permissions" and field.message_type is not None:
                self.fill(message.permissions.add())  # type: ignore[attr-defined]
            elif field.name == "authorizations":
                added = message.authorizations.add()  # type: ignore[attr-defined]
                self.fill(added)
                added.identity_id = ""
            elif field.name.endswith("authorization") or field.name in ("info", "module_file_info"):
                self.fill(getattr(message, field.name))
            elif field.name == "type" and field.enum_type is not None:
                message.type = packages_pb2.PACKAGE_TYPE_MODULE  # type: ignore[attr-defined]
            elif field.name == "version" and "Fragment" in message.DESCRIPTOR.name:
                continue  # the newest revision
            elif field.name in ("name", "part_name"):
                setattr(message, field.name, "press-main")
            elif field.name in ids and field.type == FieldDescriptor.TYPE_STRING:
                value = ids[field.name]
                if isinstance(value, list):
                    getattr(message, field.name).extend(value)
                else:
                    setattr(message, field.name, value)

    def _set_id(self, message: Message) -> None:
        name = message.DESCRIPTOR.name
        is_key = "Key" in name and "Robot" not in name
        is_machine = name.startswith(
            ("GetRobotRequest", "UpdateRobotRequest", "DeleteRobotRequest")
        )
        found = self.key if is_key else self.machine if is_machine else self.part
        if "Fragment" in name:
            found = self.fragment
        elif "Package" in name:
            found = self.module.replace(":", "/")
        message.id = found  # type: ignore[attr-defined]


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[Cloud]:
    async with run_cloud(tmp_path) as running:
        yield running


async def make_tenant(cloud: Cloud, name: str) -> tuple[Tenant, Any]:
    first = await cloud.connect()
    app = first.app_client
    organization = (await app.create_organization(name)).id
    key, key_id = await app.create_key(
        organization, [APIKeyAuthorization("owner", "organization", organization)], "owner"
    )
    first.close()
    connected = await cloud.connect(key_id, key)
    app = connected.app_client
    location = await app.create_location(organization, "Hall")
    machine = await app.new_robot("press", location.id)
    (part,) = await app.get_robot_parts(machine)
    fragment = await app.create_fragment(organization, "shared", {"debug": True})
    module, _ = await app.create_module(organization, "drive")
    file = ModuleFileInfo(module_id=module, version="1.0.0", platform="any")
    await app.upload_module_file(file, make_archive(run=b""))
    tenant = Tenant(
        app,
        dict(connected._metadata),
        organization,
        location.id,
        machine,
        part.id,
        (part.secrets or [])[0].id,
        key_id,
        fragment.id,
        module,
    )
    return tenant, connected


async def call(channel: Channel, name: str, tenant: Tenant, metadata: dict[str, str]) -> Status:
    """Call a method with the IDs of a tenant, and return the status."""
    method = METHODS[name]
    kind = GetMessageClass(method.input_type)
    reply = GetMessageClass(method.output_type)
    request = kind()
    tenant.fill(request)
    path = f"/{method.containing_service.full_name}/{name}"
    try:
        if method.client_streaming:
            upload = StreamUnaryMethod(channel, path, kind, reply)
            found = await upload([request], metadata=metadata)
        else:
            found = await UnaryUnaryMethod(channel, path, kind, reply)(request, metadata=metadata)
    except GRPCError as error:
        return error.status
    return Status.OK if found.ByteSize() or not reply.DESCRIPTOR.fields else Status.UNKNOWN


def list_served() -> list[str]:
    """Methods that are served, without those that stream replies."""
    return sorted({*served_methods(), *PACKAGE_METHODS} - {"TailRobotPartLogs"})


async def test_no_method_reveals_or_changes_another_organization(cloud: Cloud) -> None:
    (mine, one), (other, two) = await make_tenant(cloud, "mine"), await make_tenant(cloud, "other")
    operator_key, operator_id = await other.client.create_key(
        other.organization,
        [APIKeyAuthorization("operator", "organization", other.organization)],
        "operator",
    )
    operator = await cloud.connect(operator_id, operator_key)
    host, _, port = cloud.address.partition(":")
    channel = Channel(host, int(port))
    combinations = 0
    for name, metadata in itertools.product(list_served(), (mine.metadata, {})):
        combinations += 1
        status = await call(channel, name, other, metadata)
        if not metadata:
            assert status is Status.UNAUTHENTICATED, name
        elif name in ASKS:
            assert status is Status.UNKNOWN, f"{name} is not empty"
        elif name not in FREE:
            assert status is Status.NOT_FOUND, f"{name}: {status}"
    for name in list_served():
        combinations += 1
        status = await call(channel, name, other, dict(operator._metadata))
        if name in OPERATOR:
            assert status not in (Status.PERMISSION_DENIED, Status.NOT_FOUND), f"{name}: {status}"
        elif name not in FREE:
            assert status is Status.PERMISSION_DENIED, f"{name}: {status}"
    print(f"{combinations} combinations of {len(list_served())} methods")
    assert (await other.client.get_robot(other.machine)).name == "press"
    assert (await other.client.get_fragment(other.fragment)).fragment == {"debug": True}
    assert len((await other.client.get_module(other.module)).versions) == 1
    channel.close()
    for each in (one, two, operator):
        each.close()
