"""Keys and roles, field by field."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop.app_client.owner import Owner, at
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials

Kind = Literal["organization", "location", "robot"]
Role = Literal["owner", "operator"]


async def test_keys(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    location = (await client.create_location(owner.organization, "Hall")).id
    machine = await client.new_robot("press", location)
    await owner.wait()
    roles = [
        APIKeyAuthorization("operator", "location", location),
        APIKeyAuthorization("owner", "robot", machine),
    ]
    key, key_id = await client.create_key(owner.organization, roles, "Gäste")
    check(pb.CreateKeyResponse(id=key_id, key=key))
    assert str(UUID(key_id)) == key_id
    assert await can_see(owner, key_id, key, machine)

    granted = [
        describe_grant(owner, "operator", "location", location),
        describe_grant(owner, "owner", "robot", machine),
    ]
    first = describe_key(
        owner.cloud.key_id,
        "first owner",
        at(0),
        [describe_grant(owner, "owner", "organization", owner.organization)],
    )
    second = describe_key(key_id, "Gäste", at(1), granted)
    assert await client.list_keys(owner.organization) == [first, second]
    check(pb.ListKeysResponse(api_keys=[first, second]))
    # It opens more than this machine, so it is not shown again.
    await client.get_robot_api_keys(machine)
    check(pb.GetRobotAPIKeysResponse(api_keys=[second]))

    request = pb.RenameKeyRequest(id=key_id, name="visitors")
    await owner.app.RenameKey(request, metadata=owner.metadata)
    check(pb.RenameKeyResponse(id=key_id, name="visitors"))
    rotated, same_id = await client.rotate_key(key_id)
    check(pb.RotateKeyResponse(id=key_id, key=rotated))
    assert (same_id, rotated == key) == (key_id, False)
    assert await can_see(owner, key_id, rotated, machine)
    second = describe_key(key_id, "visitors", at(1), granted)
    await client.list_keys(owner.organization)
    check(pb.ListKeysResponse(api_keys=[first, second]))

    await client.delete_key(key_id)
    check(pb.DeleteKeyResponse())
    await client.list_keys(owner.organization)
    check(pb.ListKeysResponse(api_keys=[first]))
    credentials = Credentials(type="api-key", payload=rotated)
    login = AuthenticateRequest(entity=key_id, credentials=credentials)
    with pytest.raises(GRPCError) as refused:
        await AuthServiceStub(client._channel).Authenticate(login)
    assert refused.value.status is Status.UNAUTHENTICATED


async def test_roles(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    location = (await client.create_location(owner.organization, "Hall")).id
    machine = await client.new_robot("press", location)
    role = APIKeyAuthorization("operator", "location", location)
    _, key_id = await client.create_key(owner.organization, [role], "guest")
    on_location = describe_role(owner, key_id, "operator", "location", location)
    await client.list_authorizations(owner.organization, [machine, location])
    check(pb.ListAuthorizationsResponse(authorizations=[on_location]))

    await client.add_role(owner.organization, key_id, "operator", "robot", machine)
    check(pb.AddRoleResponse())
    on_machine = describe_role(owner, key_id, "operator", "robot", machine)
    await client.list_authorizations(owner.organization, [machine])
    check(pb.ListAuthorizationsResponse(authorizations=[on_machine]))

    await client.change_role(
        *(owner.organization, key_id, "operator", "robot", machine),
        *(key_id, "owner", "robot", machine),
    )
    check(pb.ChangeRoleResponse())
    on_machine = describe_role(owner, key_id, "owner", "robot", machine)
    await client.list_authorizations(owner.organization, [machine])
    check(pb.ListAuthorizationsResponse(authorizations=[on_machine]))

    await client.remove_role(owner.organization, key_id, "owner", "robot", machine)
    check(pb.RemoveRoleResponse())
    first = describe_role(owner, owner.cloud.key_id, "owner", "organization", owner.organization)
    everything = sorted([first, on_location], key=lambda each: each.identity_id)
    assert await client.list_authorizations(owner.organization) == everything
    check(pb.ListAuthorizationsResponse(authorizations=everything))


async def test_permissions(owner: Owner) -> None:
    location = (await owner.client.create_location(owner.organization, "Hall")).id
    machine = await owner.client.new_robot("press", location)
    role = APIKeyAuthorization("operator", "robot", machine)
    key, key_id = await owner.client.create_key(owner.organization, [role], "guest")
    connected = await owner.cloud.connect(key_id, key)
    owner.replies.record(connected._channel)
    asked = [
        pb.AuthorizedPermissions(
            resource_type="robot",
            resource_id=machine,
            permissions=["read_robot_logs", "update_robot", "control_robot"],
        ),
        pb.AuthorizedPermissions(
            resource_type="location", resource_id=location, permissions=["read_location"]
        ),
    ]
    allowed = pb.AuthorizedPermissions(
        resource_type="robot",
        resource_id=machine,
        permissions=["read_robot_logs", "control_robot"],
    )
    assert await connected.app_client.check_permissions(asked) == [allowed]
    owner.replies.check(pb.CheckPermissionsResponse(authorized_permissions=[allowed]))
    connected.close()
    assert await owner.client.check_permissions(asked) == asked
    owner.replies.check(pb.CheckPermissionsResponse(authorized_permissions=asked))


async def can_see(owner: Owner, key_id: str, key: str, machine: str) -> bool:
    connected = await owner.cloud.connect(key_id, key)
    found = await connected.app_client.get_robot(machine)
    connected.close()
    return bool(found.id == machine)


def describe_grant(owner: Owner, role: Role, kind: Kind, resource: str) -> pb.AuthorizationDetails:
    return pb.AuthorizationDetails(
        authorization_type="role",
        authorization_id=f"{kind}_{role}",
        resource_type=kind,
        resource_id=resource,
        org_id=owner.organization,
    )


def describe_role(
    owner: Owner, key: str, role: Role, kind: Kind, resource: str
) -> pb.Authorization:
    return pb.Authorization(
        authorization_type="role",
        authorization_id=f"{kind}_{role}",
        resource_type=kind,
        resource_id=resource,
        identity_id=key,
        identity_type="api-key",
        organization_id=owner.organization,
    )


def describe_key(
    key: str, name: str, created: Timestamp, grants: list[pb.AuthorizationDetails]
) -> pb.APIKeyWithAuthorizations:
    """Return a key without its secret, which is shown when it is created."""
    return pb.APIKeyWithAuthorizations(
        api_key=pb.APIKey(id=key, name=name, created_on=created), authorizations=grants
    )
