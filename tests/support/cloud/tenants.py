"""Organizations with one of everything, their logins, and calls that name what is theirs."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Cardinality, Status
from tests.support.archives import make_archive
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.agent.v1 import agent_pb2
from viam.gen.app.packages.v1 import packages_pb2
from viam.gen.app.v1 import app_pb2, robot_pb2
from viam.gen.proto.rpc.v1 import auth_pb2
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2
from viam.proto.app import ModuleFileInfo

from cogwork.cloud.fleet.app_service import served_methods
from cogwork.core.versions.product import Product
from cogwork.wire.messages.claim_method import CREATE_CLAIM
from cogwork.wire.messages.follow_method import FOLLOW, GET_ACCESS
from cogwork.wire.messages.fragment_method import PREVIEW
from cogwork.wire.messages.update_method import REPORT, UpdateReport
from cogwork.wire.messages.update_method import Outcome as UpdateOutcome

Login = Mapping[str, str]
"""The metadata of a call. Without a token: nobody."""

NOBODY: Login = {}
DEADLINE = 30.0
OPEN_STREAM = 1.0
"""Seconds after which a stream that has sent nothing counts as open."""


_CARDINALITIES = {(each.client_streaming, each.server_streaming): each for each in Cardinality}


@dataclass(frozen=True)
class CloudMethod:
    path: str
    cardinality: Cardinality
    request: type[Message]
    reply: type[Message]

    @classmethod
    def of(cls, method: MethodDescriptor) -> CloudMethod:
        return cls(
            f"/{method.containing_service.full_name}/{method.name}",
            _CARDINALITIES[method.client_streaming, method.server_streaming],
            GetMessageClass(method.input_type),
            GetMessageClass(method.output_type),
        )


def list_fleet_methods() -> dict[str, CloudMethod]:
    """Return what clients of the fleet call, by name: what is served, and the packages."""
    app = app_pb2.DESCRIPTOR.services_by_name["AppService"]
    packages = packages_pb2.DESCRIPTOR.services_by_name["PackageService"]
    found = {name: app.methods_by_name[name] for name in served_methods()}
    found |= packages.methods_by_name
    return {name: CloudMethod.of(found[name]) for name in sorted(found)}


def list_machine_methods() -> dict[str, CloudMethod]:
    """Return what machines and their clients call, by name, except the login itself."""
    services = (
        robot_pb2.DESCRIPTOR.services_by_name["RobotService"],
        auth_pb2.DESCRIPTOR.services_by_name["ExternalAuthService"],
        signaling_pb2.DESCRIPTOR.services_by_name["SignalingService"],
        agent_pb2.DESCRIPTOR.services_by_name["AgentDeviceService"],
    )
    found = {each.name: CloudMethod.of(each) for service in services for each in service.methods}
    found["Follow"] = CloudMethod(FOLLOW, Cardinality.UNARY_STREAM, Struct, Struct)
    found["GetAccess"] = CloudMethod(GET_ACCESS, Cardinality.UNARY_UNARY, StringValue, StringValue)
    found["CreateClaim"] = CloudMethod(
        CREATE_CLAIM, Cardinality.UNARY_UNARY, StringValue, StringValue
    )
    found["Preview"] = CloudMethod(
        PREVIEW, Cardinality.UNARY_UNARY, app_pb2.UpdateFragmentRequest, Struct
    )
    found["Report"] = CloudMethod(REPORT, Cardinality.UNARY_UNARY, Struct, Empty)
    return found


@dataclass(frozen=True)
class Tenant:
    """The IDs of one of everything in an organization."""

    organization: str
    location: str
    machine: str
    part: str
    secret: str
    key: str
    fragment: str
    module: str
    host: str
    """The name by which clients reach the part."""

    def without_ids(self, text: str) -> str:
        """Return an error without the IDs that the caller sent."""
        for number, each in enumerate(astuple(self)):
            text = text.replace(each, f"<{number}>").replace(each.replace(":", "/"), f"<{number}>")
        return text

    def fill(self, message: Message) -> None:
        """Name everything of this organization that a request can name."""
        if isinstance(message, Struct):
            report = UpdateReport(Product.SERVER, "1.0.0", UpdateOutcome.GOOD, self.part)
            message.CopyFrom(report.to_struct())
            return
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
            "entity": self.host,
            "value": self.part,
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


def make_ghost(tenant: Tenant) -> Tenant:
    """Return IDs of the same form, of which nothing exists."""
    organization, location = str(uuid.uuid4()), uuid.uuid4().hex[:10]
    return Tenant(
        organization,
        location,
        machine=str(uuid.uuid4()),
        part=str(uuid.uuid4()),
        secret=str(uuid.uuid4()),
        key=str(uuid.uuid4()),
        fragment=str(uuid.uuid4()),
        module=f"{organization}:drive",
        host=tenant.host.replace(tenant.location, location),
    )


@dataclass(frozen=True)
class Outcome:
    """What a call returned: a status, and an error or a reply."""

    status: Status
    error: str = ""
    reply: bytes = b""

    @property
    def is_empty(self) -> bool:
        return self.status is Status.OK and not self.reply


async def call(
    channel: Channel, method: CloudMethod, tenant: Tenant, login: Login, request: Any = None
) -> Outcome:
    """Call a method with the IDs of a tenant. Of a stream, only the first reply is read."""
    if request is None:
        request = method.request()
        tenant.fill(request)
    metadata = {**login, "rpc-host": tenant.host}
    stream = channel.request(
        method.path,
        method.cardinality,
        method.request,
        method.reply,
        metadata=metadata,
        timeout=DEADLINE,
    )
    try:
        async with stream as opened:
            await opened.send_message(request, end=True)
            receiving = asyncio.ensure_future(opened.recv_message())
            wait = OPEN_STREAM if method.cardinality.server_streaming else DEADLINE
            # Twice: this process may have stood still for all of the first time.
            for _ in range(2):
                await asyncio.wait([receiving], timeout=wait / 2)
            if not receiving.done():
                receiving.cancel()
                await asyncio.gather(receiving, return_exceptions=True)
                await opened.cancel()
                return Outcome(Status.OK)
            reply = receiving.result()
            if method.cardinality.server_streaming and reply is not None:
                await opened.cancel()
            else:
                await opened.recv_trailing_metadata()
    except GRPCError as error:
        return Outcome(error.status, error.message or "")
    return Outcome(Status.OK, reply=b"" if reply is None else reply.SerializeToString())


class Cloud(Protocol):
    async def connect(self, key_id: str = "", key: str = "") -> Any:
        """Return the SDK's client with a key: that of the owner by default."""


@contextlib.asynccontextmanager
async def make_tenant(cloud: Cloud, name: str) -> AsyncIterator[tuple[Tenant, AppClient]]:
    """A new organization with one of everything, and its owner."""
    first = await cloud.connect()
    app = first.app_client
    organization = (await app.create_organization(name)).id
    role = APIKeyAuthorization("owner", "organization", organization)
    key, key_id = await app.create_key(organization, [role], "owner")
    first.close()
    connected = await cloud.connect(key_id, key)
    try:
        yield await _fill(connected.app_client, organization, key_id), connected.app_client
    finally:
        connected.close()


async def _fill(app: AppClient, organization: str, key_id: str) -> Tenant:
    location = await app.create_location(organization, "Hall")
    machine = await app.new_robot("press", location.id)
    (part,) = await app.get_robot_parts(machine)
    fragment = await app.create_fragment(organization, "shared", {"debug": True})
    module, _ = await app.create_module(organization, "drive")
    file = ModuleFileInfo(module_id=module, version="1.0.0", platform="any")
    await app.upload_module_file(file, make_archive(run=b""))
    return Tenant(
        organization,
        location.id,
        machine,
        part.id,
        (part.secrets or [])[0].id,
        key_id,
        fragment.id,
        module,
        part.fqdn,
    )


async def add_siblings(app: AppClient, tenant: Tenant) -> tuple[Tenant, Tenant]:
    """Add a machine in another location, and a machine in the same location, and return both."""
    yard = await app.create_location(tenant.organization, "Yard")
    found = []
    for location in (yard.id, tenant.location):
        machine = await app.new_robot("saw", location)
        (part,) = await app.get_robot_parts(machine)
        sibling = replace(tenant, location=location, machine=machine, part=part.id, host=part.fqdn)
        found.append(sibling)
    return found[0], found[1]


async def log_in_keys(
    channel: Channel, app: AppClient, organization: str, resources: Mapping[Any, str]
) -> dict[str, Login]:
    """Return the logins of an owner and an operator of each resource, by type and ID."""
    found: dict[str, Login] = {}
    for kind, resource in resources.items():
        for role in ("owner", "operator"):
            grant = APIKeyAuthorization(role, kind, resource)
            key, key_id = await app.create_key(organization, [grant], f"{kind} {role}")
            found[f"{role} of a {kind}"] = await log_in(channel, "api-key", key_id, key)
    return found


async def log_in_secrets(channel: Channel, app: AppClient, tenant: Tenant) -> dict[str, Login]:
    """Return the logins with the secrets of a part and of its location."""
    part = await app.get_robot_part(tenant.part)
    auth = await app.create_location_secret(tenant.location)
    return {
        "part": await log_in(channel, "robot-secret", part.id, part.secret),
        "secret of a location": await log_in(
            channel, "robot-location-secret", part.fqdn, auth.secrets[0].secret
        ),
    }


async def log_in(channel: Channel, kind: str, entity: str, secret: str) -> Login:
    request = auth_pb2.AuthenticateRequest(
        entity=entity, credentials=auth_pb2.Credentials(type=kind, payload=secret)
    )
    reply = await AuthServiceStub(channel).Authenticate(request)
    return {"authorization": f"Bearer {reply.access_token}"}
