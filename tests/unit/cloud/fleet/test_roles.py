"""Every operation of the fleet, by keys with each role, and with each ID of somebody else."""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from tests.support.cloud.organization import OwnedOrganization
from tests.support.cloud.small_cloud import SmallCloud
from tests.support.cloud.tenants import Tenant, list_fleet_methods
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.app_service import OPERATIONS
from cogwork.cloud.identity.access import ROLE_NAMES, CloudRole, ResourceType
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import CogworkError

OPERATOR, OWNER = CloudRole
LEVELS = (ResourceType.MACHINE, ResourceType.LOCATION, ResourceType.ORGANIZATION)
"""The lowest first. A role holds for everything below."""
MACHINE, LOCATION, ORGANIZATION = LEVELS
ACTORS = [(kind, role) for kind in LEVELS for role in CloudRole]
METHODS = list_fleet_methods()

OPEN = {"ListOrganizations", "ListLocations", "ListRobotsForOrg", "CheckPermissions"}
"""They answer with what the actor may see."""
REQUIRED = {
    (MACHINE, OPERATOR): {
        *("GetRobot", "GetRobotParts", "GetRobotPart", "GetRobotPartByNameAndLocation"),
        *("GetRobotPartHistory", "MarkPartForRestart", "ListMachineFragments"),
        "GetOrganizationsWithAccessToLocation",
        # What an organization shares with all of its machines.
        *("GetFragment", "ListFragments", "GetFragmentUsage", "GetFragmentHistory"),
        *("GetRegistryItem", "ListRegistryItems", "GetModule", "ListModules"),
    },
    (MACHINE, OWNER): {
        *("DeleteRobot", "NewRobotPart", "DeleteRobotPart", "UpdateRobotPart"),
        *("MarkPartAsMain", "CreateRobotPartSecret", "DeleteRobotPartSecret"),
        *("CreateKey", "GetRobotAPIKeys", "AddRole", "RemoveRole", "ChangeRole"),
    },
    (LOCATION, OPERATOR): {"GetLocation", "ListRobots", "ListRobotsForLocations"},
    (LOCATION, OWNER): {
        *("UpdateLocation", "DeleteLocation", "NewRobot", "UpdateRobot"),
        *("LocationAuth", "CreateLocationSecret", "DeleteLocationSecret"),
    },
    (ORGANIZATION, OPERATOR): {"GetOrganization"},
    (ORGANIZATION, OWNER): {
        *("UpdateOrganization", "CreateLocation", "ListAuthorizations"),
        *("ListKeys", "DeleteKey", "RotateKey", "RenameKey"),
        *("CreateFragment", "UpdateFragment", "DeleteFragment"),
        *("SetFragmentTag", "DeleteFragmentTag"),
        *("CreateRegistryItem", "UpdateRegistryItem", "DeleteRegistryItem"),
        *("RenameRegistryItem", "DeprecateRegistryItem", "UndeprecateRegistryItem"),
        *("DeprecateRegistryItemVersion", "UndeprecateRegistryItemVersion"),
        *("CreateModule", "UpdateModule"),
    },
}
"""The lowest resource and the lowest role that an operation requires."""
ONLY_SOME_SEE = {"UpdateRobot": MACHINE}
"""It names a machine and a location: an actor that sees only the machine lacks a role there."""
HOSTING = "CreateOrganization"
"""Only for owners of the organization that hosts the cloud."""


UNREAD = {
    *("authorization.organizationId", "authorizations.organizationId"),
    *("oldAuthorization.organizationId", "newAuthorization.organizationId"),
    *("currentOrganizationId", "additionalFragmentIds"),
}
"""Fields without a meaning here: the resource says which organization is meant. A fragment that
is not shared is left out of a list."""

Field = tuple[str | int, ...]
"""Where a value is in a JSON document."""


class Undone(Exception):
    """A transaction went through, and is rolled back for the next test."""


@dataclass
class World:
    cloud: SmallCloud
    tenant: Tenant
    keys: dict[tuple[ResourceType, CloudRole], str]
    combined: dict[frozenset[tuple[ResourceType, CloudRole]], str]
    """Keys that own one resource, and operate what is above it."""
    other: Tenant
    """Another organization. Its key is an owner there."""
    location_secret: str

    def make_request(self, name: str) -> Message:
        request = METHODS[name].request()
        self.tenant.fill(request)
        if isinstance(request, pb.DeleteLocationSecretRequest):
            request.secret_id = self.location_secret
        elif isinstance(request, pb.RemoveRoleRequest):
            self._name_operator(request.authorization)
        elif isinstance(request, pb.ChangeRoleRequest):
            self._name_operator(request.old_authorization)
            request.new_authorization.identity_id = request.old_authorization.identity_id
        return request

    def _name_operator(self, authorization: pb.Authorization) -> None:
        authorization.identity_id = self.keys[MACHINE, OPERATOR]
        authorization.authorization_id = "robot_operator"

    def attempt(self, name: str, key: str, request: Message | None = None) -> str:
        """Return the status of an operation, whose changes are taken back."""

        def work(tx: Transaction) -> None:
            asked = self.make_request(name) if request is None else request
            OPERATIONS[name].answer(tx, self.cloud.make_call(key), asked)
            raise Undone

        try:
            self.cloud.write(work)
        except Undone:
            return "OK"
        except CogworkError as error:
            return error.status
        raise AssertionError


@pytest.fixture(scope="module")
def world(cloud_template: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> World:
    template, owner = cloud_template
    cloud = SmallCloud(template, tmp_path_factory.mktemp("roles") / "cloud", owner)
    mine = cloud.add_tenant("mine")
    resources = {ORGANIZATION: mine.organization, LOCATION: mine.location, MACHINE: mine.machine}
    keys = {
        (kind, role): cloud.add_key(mine.key, kind, resources[kind], ROLE_NAMES[role])
        for kind, role in ACTORS
    }
    combined, owned = {}, OwnedOrganization(cloud, mine)
    for low, high in itertools.pairwise(LEVELS):
        grants = [
            owned.grant(low, ROLE_NAMES[OWNER]),
            owned.grant(high, ROLE_NAMES[OPERATOR]),
        ]
        key = owned.create(*grants).id
        combined[frozenset({(low, OWNER), (high, OPERATOR)})] = key
    request = pb.CreateLocationSecretRequest(location_id=mine.location)
    secret = cloud.run(mine.key, request).auth.secrets[0].id
    return World(cloud, mine, keys, combined, cloud.add_tenant("other"), secret)


def test_every_operation_has_a_required_role() -> None:
    named = [name for names in REQUIRED.values() for name in names]
    assert sorted([*named, *OPEN, HOSTING]) == sorted(OPERATIONS)


@pytest.mark.parametrize(
    ("name", "kind", "role"),
    [
        (name, kind, role)
        for (kind, role), names in sorted(REQUIRED.items())
        for name in sorted(names)
    ],
)
def test_operation_requires_its_role(
    world: World, name: str, kind: ResourceType, role: CloudRole
) -> None:
    seen = ONLY_SOME_SEE.get(name, kind)
    for actor, key in world.keys.items():
        status = world.attempt(name, key)
        if LEVELS.index(actor[0]) < LEVELS.index(seen):
            assert status == "NOT_FOUND", actor
        elif actor[1] < role:
            assert status == "PERMISSION_DENIED", actor
        elif LEVELS.index(actor[0]) < LEVELS.index(kind):
            assert status in ("NOT_FOUND", "PERMISSION_DENIED"), actor
        else:
            assert status not in ("NOT_FOUND", "PERMISSION_DENIED"), actor
    assert world.attempt(name, world.other.key) == "NOT_FOUND"


@pytest.mark.parametrize("name", sorted(set().union(*REQUIRED.values())))
def test_roles_on_several_resources_do_not_add_up(world: World, name: str) -> None:
    """An owner of a machine and operator of its location is no owner of the location."""
    ((kind, role),) = (required for required, names in REQUIRED.items() if name in names)
    for roles, key in world.combined.items():
        is_allowed = any(
            has_role >= role and LEVELS.index(has) >= LEVELS.index(kind) for has, has_role in roles
        )
        status = world.attempt(name, key)
        assert (status not in ("NOT_FOUND", "PERMISSION_DENIED")) is is_allowed, (roles, status)


@pytest.mark.parametrize("name", sorted(set().union(*REQUIRED.values())))
def test_no_field_accepts_an_id_of_another_organization(world: World, name: str) -> None:
    for request, field in list_mixed_requests(world, name):
        if ".".join(each for each in field if isinstance(each, str)) not in UNREAD:
            status = world.attempt(name, world.tenant.key, request)
            assert status != "OK", field


def list_mixed_requests(world: World, name: str) -> Iterator[tuple[Message, Field]]:
    """Yield requests that name what is mine, except in one field, and that field."""
    foreign = METHODS[name].request()
    world.other.fill(foreign)
    if isinstance(foreign, pb.CreateLocationRequest | pb.UpdateLocationRequest):
        foreign.parent_location_id = world.other.location
    own = MessageToDict(world.make_request(name))
    for field, value in list_values(MessageToDict(foreign)):
        mixed: Any = copy.deepcopy(own)
        *parents, last = field
        holder = functools.reduce(operator.getitem, parents, mixed)
        if last not in holder or holder[last] != value:
            holder[last] = value
            yield ParseDict(mixed, METHODS[name].request()), field


def list_values(found: Any) -> Iterator[tuple[Field, Any]]:
    """Yield where each value is in a JSON document, and the value."""
    inside = found.items() if isinstance(found, dict) else enumerate(found)
    for key, value in inside:
        if isinstance(value, dict | list):
            yield from (((key, *field), each) for field, each in list_values(value))
        else:
            yield (key,), value


@pytest.mark.parametrize("name", sorted(OPEN))
def test_open_operation_answers_everyone(world: World, name: str) -> None:
    for key in (*world.keys.values(), world.other.key):
        assert world.attempt(name, key) == "OK"


def test_only_the_host_creates_organizations(world: World) -> None:
    for key in (*world.keys.values(), world.other.key):
        assert world.attempt(HOSTING, key) == "PERMISSION_DENIED"
    assert world.attempt(HOSTING, world.cloud.owner) == "OK"
