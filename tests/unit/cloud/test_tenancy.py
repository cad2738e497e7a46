"""Every method of the cloud, with every login, and with the IDs of what belongs to others."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

import pytest
from google.protobuf.message import Message
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.cloud.in_process_cloud import InProcessCloud
from tests.support.cloud.tenants import (
    NOBODY,
    Login,
    Outcome,
    Tenant,
    add_siblings,
    call,
    list_fleet_methods,
    list_machine_methods,
    log_in_keys,
    log_in_secrets,
    make_ghost,
    make_tenant,
)
from tests.support.sizes import size
from viam.app.app_client import AppClient, Fragment
from viam.gen.app.v1.app_pb2 import GetRobotAPIKeysResponse

from cogwork.cloud.fleet.app_service import APP_SERVICE
from cogwork.cloud.fleet.unserved_methods import UNSERVED_METHODS

APP = f"/{APP_SERVICE}/"
METHODS = {**list_fleet_methods(), **list_machine_methods()}
FREE = {"CreateOrganization", "ListOrganizations", "ReportConnectionMetadata"}
"""Methods that name nothing of an organization."""
REQUIRING_ROLES = [each for each in METHODS if each not in FREE]
ASKS = {"CheckPermissions", "ListLocations", "ListRobotsForOrg"}
"""Methods that answer with what the caller may see, which is nothing of others."""
OF_THE_LOCATION = {"GetOrganizationsWithAccessToLocation"}
"""Methods that show something of the location in which a login has a machine."""
OPERATOR = {
    *("GetOrganization", "GetLocation", "ListLocations", "GetRobot", "ListRobots"),
    *("ListRobotsForOrg", "ListRobotsForLocations", "GetRobotParts", "GetRobotPart"),
    *("GetRobotPartByNameAndLocation", "GetRobotPartHistory", "GetRobotPartLogs"),
    *("TailRobotPartLogs", "MarkPartForRestart", "CheckPermissions"),
    *("GetFragment", "ListFragments", "GetFragmentHistory", "GetFragmentUsage"),
    "GetOrganizationsWithAccessToLocation",
    *("ListMachineFragments", "GetModule", "ListModules", "GetRegistryItem", "ListRegistryItems"),
    *("GetPackage", "ListPackages", "AuthenticateTo", "OptionalWebRTCConfig"),
}
"""Methods that an operator may call; most others require an owner."""
UNKNOWN_TO_OPERATORS = {"Call", "CallUpdate"}
"""Methods that find nothing here: the machine is offline, and nobody calls it."""
SHARED = {
    *("GetFragment", "ListFragments", "GetFragmentHistory", "GetFragmentUsage"),
    *("GetModule", "ListModules", "GetRegistryItem", "ListRegistryItems", "GetPackage"),
}
"""Methods that show what an organization shares with all of its machines."""
BY_NAME = "GetRobotPartByNameAndLocation"
CANARY = "canary-7b21"
"""A name in a fragment that must not leave its organization."""
SECRETS = {"part", "other part", "secret of a location"}
"""Logins that are not for people, so they get nothing of AppService."""
OTHERS = size(ci=1, full=2)
"""Organizations whose IDs are tried."""
RESOURCES = ("organization", "location", "robot")


class Naming(enum.Enum):
    """What the siblings of a part are called."""

    AS_CREATED = enum.auto()
    SAME_NAME = enum.auto()
    FORMER_NAME = enum.auto()
    """As the part was called before it was renamed. Calls name it so, too."""


NAMINGS = tuple(Naming)[:: size(ci=2, full=1)]


@pytest.fixture
def channel(empty_cloud: InProcessCloud) -> Channel:
    return empty_cloud.channel


def test_every_method_is_tried(empty_cloud: InProcessCloud) -> None:
    public = ("/grpc.health.", "/grpc.reflection.", "/proto.rpc.v1.AuthService/")
    unserved = {f"/{APP_SERVICE}/{each}" for each in UNSERVED_METHODS}
    found = {each for each in empty_cloud.list_methods() if not each.startswith(public)}
    assert found - unserved == {each.path for each in METHODS.values()}


async def test_no_login_reveals_or_changes_another_organization(
    empty_cloud: InProcessCloud, channel: Channel
) -> None:
    async with (
        make_tenant(empty_cloud, "mine") as (mine, app),
        make_tenant(empty_cloud, "other") as (other, other_app),
        make_tenant(empty_cloud, "third") as (third, third_app),
    ):
        resources = dict(zip(RESOURCES, astuple(mine), strict=False))
        logins = {
            "nobody": NOBODY,
            **await log_in_keys(channel, app, mine.organization, resources),
            **await log_in_secrets(channel, app, mine),
        }
        before = [await take_snapshot(other_app, other), await take_snapshot(third_app, third)]
        combinations = 0
        for target in (other, third)[:OTHERS]:
            ghost = make_ghost(target)
            for name in METHODS:
                for who, login in logins.items():
                    combinations += 1
                    found = await call_both(channel, name, (target, ghost), login)
                    what = f"{name} by {who}: {found}"
                    if who == "nobody":
                        assert found.status is Status.UNAUTHENTICATED, what
                    elif who in SECRETS and METHODS[name].path.startswith(APP):
                        assert found.status is Status.PERMISSION_DENIED, what
                    elif name in ASKS:
                        assert found.is_empty, what
                    elif name not in FREE:
                        assert found.status is Status.NOT_FOUND, what
                    assert not list_revealed(found, *astuple(target)), what
        print(f"{combinations} combinations of {len(METHODS)} methods and {len(logins)} logins")
        after = [await take_snapshot(other_app, other), await take_snapshot(third_app, third)]
        assert after == before


@pytest.mark.parametrize("naming", NAMINGS)
async def test_no_login_reveals_or_changes_its_siblings(
    empty_cloud: InProcessCloud, channel: Channel, naming: Naming
) -> None:
    """A role on one location or machine is no role on another one of the organization."""
    async with make_tenant(empty_cloud, "mine") as (target, app):
        far, near = await add_siblings(app, target)
        if naming is not Naming.AS_CREATED:
            (part,) = await app.get_robot_parts(target.machine)
            if naming is Naming.FORMER_NAME:
                await app.update_robot_part(target.part, "lathe")
            for sibling in (far, near):
                await app.update_robot_part(sibling.part, part.name)
        far_away = {"location": far.location}
        beside = {"robot": near.machine}
        secrets = await log_in_secrets(channel, app, far)
        logins = {
            **await log_in_keys(channel, app, target.organization, far_away),
            **await log_in_keys(channel, app, target.organization, beside),
            **secrets,
            "other part": (await log_in_secrets(channel, app, near))["part"],
        }
        before, combinations = await take_snapshot(app, target), 0
        # What is shared exists for the ghost, too.
        ghost = replace(
            make_ghost(target),
            organization=target.organization,
            fragment=target.fragment,
            module=target.module,
        )
        private = (target.machine, target.part, target.secret, target.host)
        for name in REQUIRING_ROLES:
            for who, login in logins.items():
                combinations += 1
                if name == BY_NAME and naming is not Naming.AS_CREATED:
                    # It finds the sibling of this name.
                    found = await call(channel, METHODS[name], target, login)
                    assert not list_revealed(found, *private), f"{name} by {who}: {found}"
                    continue
                found = await call_both(channel, name, (target, ghost), login)
                what = f"{name} by {who}: {found}"
                if who in SECRETS and METHODS[name].path.startswith(APP):
                    assert found.status is Status.PERMISSION_DENIED, what
                elif name in SHARED and who != "secret of a location":
                    assert found.status is Status.OK, what
                elif name not in ASKS | OF_THE_LOCATION:
                    assert found.status is Status.NOT_FOUND, what
                assert not list_revealed(found, *private), what
        print(f"{combinations} combinations with {len(logins)} logins, {naming}")
        assert await take_snapshot(app, target) == before


async def test_operator_of_an_organization_changes_nothing(
    empty_cloud: InProcessCloud, channel: Channel
) -> None:
    async with make_tenant(empty_cloud, "mine") as (mine, app):
        resources = {"organization": mine.organization}
        logins = await log_in_keys(channel, app, mine.organization, resources)
        before = await take_snapshot(app, mine)
        for name in REQUIRING_ROLES:
            operator = logins["operator of a organization"]
            found = await call(channel, METHODS[name], mine, operator)
            refused = found.status in (Status.PERMISSION_DENIED, Status.NOT_FOUND)
            if name in UNKNOWN_TO_OPERATORS:
                assert found.status is Status.NOT_FOUND, f"{name}: {found}"
            elif name in OPERATOR:
                assert not refused, f"{name}: {found}"
            else:
                assert found.status is Status.PERMISSION_DENIED, f"{name}: {found}"
        print(f"{len(REQUIRING_ROLES)} methods")
        assert await take_snapshot(app, mine) == before


async def test_own_ids_do_not_open_those_of_others(
    empty_cloud: InProcessCloud, channel: Channel
) -> None:
    """An owner names what is its own, except for one ID in each request."""
    async with (
        make_tenant(empty_cloud, "mine") as (mine, app),
        make_tenant(empty_cloud, "other") as (other, other_app),
    ):
        resources = {"organization": mine.organization}
        logins = await log_in_keys(channel, app, mine.organization, resources)
        before, requests = await take_snapshot(other_app, other), 0
        private = set(astuple(other)) - {other.key}
        destructive = [each for each in METHODS if each.startswith(("Delete", "Remove"))]
        for name in [*(each for each in METHODS if each not in destructive), *destructive]:
            for request, foreign in list_mixed_requests(name, mine, other):
                requests += 1
                owner = logins["owner of a organization"]
                found = await call(channel, METHODS[name], mine, owner, request)
                # What it sent may come back.
                revealed = list_revealed(found, *(private - {foreign}))
                assert not revealed, f"{name} with {foreign}: {found}"
        print(f"{requests} requests of {len(METHODS)} methods")
        assert await take_snapshot(other_app, other) == before


async def test_keys_of_others_are_never_shown(
    empty_cloud: InProcessCloud, channel: Channel
) -> None:
    """An owner of a machine sees its keys, so it must not be able to add the key of another."""
    async with (
        make_tenant(empty_cloud, "mine") as (mine, app),
        make_tenant(empty_cloud, "other") as (other, _),
    ):
        with pytest.raises(GRPCError) as refused:
            await app.add_role(mine.organization, other.key, "operator", "robot", mine.machine)
        assert refused.value.status is Status.NOT_FOUND
        robot = {"robot": mine.machine}
        logins = await log_in_keys(channel, app, mine.organization, robot)
        # The creator of the organization has a role in it, but its key is of another one.
        config = await call(channel, METHODS["Config"], mine, logins["owner of a robot"])
        assert config.status is Status.OK
        assert list_revealed(config, empty_cloud.owner[1], empty_cloud.owner[0]) == []

        # A key that opens more than this machine is shown to no one again.
        await app.add_role(mine.organization, mine.key, "operator", "robot", mine.machine)
        shown = await call(channel, METHODS["GetRobotAPIKeys"], mine, logins["owner of a robot"])
        keys = [each.api_key for each in GetRobotAPIKeysResponse.FromString(shown.reply).api_keys]
        assert [each.id for each in keys if not each.key] == [mine.key]
        assert len(keys) == 3
        every = await app.get_robot_api_keys(mine.machine)
        assert [each.api_key.id for each in every if not each.api_key.key] == [mine.key]


async def test_fragments_of_others_stay_theirs(
    empty_cloud: InProcessCloud, channel: Channel
) -> None:
    """A machine names a fragment of another organization, before and after it was shared."""
    async with (
        make_tenant(empty_cloud, "mine") as (mine, app),
        make_tenant(empty_cloud, "other") as (other, other_app),
    ):
        recipe: dict[str, Any] = {
            "components": [{"name": CANARY, "api": "rdk:component:motor", "model": "fake"}]
        }
        fragment = (await other_app.create_fragment(other.organization, "recipe", recipe)).id
        using: dict[str, Any] = {"fragments": [fragment, {"id": other.fragment, "prefix": "x"}]}
        for tenant in (mine, other):
            with pytest.raises(GRPCError, match=r"not shared|there is no part"):
                await app.update_robot_part(tenant.part, "press-main", using)
        public, private = Fragment.Visibility.PUBLIC, Fragment.Visibility.PRIVATE
        for each in (fragment, other.fragment):
            await other_app.update_fragment(each, "recipe", visibility=public)
        shared = {**recipe, "debug": True}
        await other_app.update_fragment(fragment, "recipe", shared, visibility=public)
        await app.update_robot_part(mine.part, "press-main", using)
        robot = {"robot": mine.machine, "organization": mine.organization}
        logins = {
            **await log_in_keys(channel, app, mine.organization, robot),
            **await log_in_secrets(channel, app, mine),
        }
        asked = replace(mine, fragment=fragment)
        reading = [each for each in METHODS if each.startswith(("Get", "List", "Config", "Device"))]
        shown = {
            name
            for name in reading
            for login in logins.values()
            if list_revealed(await call(channel, METHODS[name], asked, login), CANARY)
        }
        assert {"Config", "GetFragment", "GetRobotPart"} <= shown

        for each in (fragment, other.fragment):
            await other_app.update_fragment(each, "recipe", visibility=private)
        for name in (*reading, *(each for each in METHODS if each not in reading)):
            for who, login in logins.items():
                found = await call(channel, METHODS[name], asked, login)
                what = f"{name} by {who}: {found}"
                assert not list_revealed(found, CANARY, other.organization, other.key), what
        after = await other_app.get_fragment(fragment)
        assert (after.fragment, after.visibility) == (shared, private)


async def call_both(
    channel: Channel, name: str, tenants: tuple[Tenant, Tenant], login: Login
) -> Outcome:
    """Call with IDs that exist and with ones that do not, and require the same outcome."""
    outcomes = [await call(channel, METHODS[name], each, login) for each in tenants]
    if name not in FREE | ASKS | SHARED | OF_THE_LOCATION:
        one, two = (
            replace(outcome, error=tenant.without_ids(outcome.error))
            for outcome, tenant in zip(outcomes, tenants, strict=True)
        )
        assert one == two, f"{name} reveals what exists"
    return outcomes[0]


def list_revealed(outcome: Outcome, *values: str) -> list[str]:
    """Return those of the values that are in a reply."""
    return [each for each in values if each.encode() in outcome.reply]


async def take_snapshot(app: AppClient, tenant: Tenant) -> list[Any]:
    """Return everything that the owner of an organization sees of it."""
    return [
        await app.get_organization(tenant.organization),
        await app.list_locations(tenant.organization),
        await app.list_robots(tenant.location),
        await app.get_robot_parts(tenant.machine),
        await app.get_robot_part_history(tenant.part),
        await app.get_robot_part_logs(tenant.part),
        await app.list_keys(tenant.organization),
        await app.list_authorizations(tenant.organization),
        await app.get_fragment(tenant.fragment),
        await app.get_fragment_history(tenant.fragment),
        await app.list_modules(tenant.organization),
        await app.list_registry_items(tenant.organization, [], [], [], []),
    ]


def list_mixed_requests(name: str, mine: Tenant, other: Tenant) -> Iterator[tuple[Message, str]]:
    """Yield requests that name what is mine, except for one ID, and that ID."""
    for at, foreign in enumerate(astuple(other)):
        values = list(astuple(mine))
        values[at] = foreign
        own, mixed = METHODS[name].request(), METHODS[name].request()
        mine.fill(own)
        Tenant(*values).fill(mixed)
        if mixed != own:
            yield mixed, foreign
