"""Secrets in configurations and fragments are shown to owners only, and no mask is saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message import Message
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.cloud.in_process_cloud import (
    ConnectedClient,
    InProcessCloud,
)
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.app_grpc import AppServiceStub

OWN, SHARED = "PLANTED-IN-THE-PART", "PLANTED-IN-THE-FRAGMENT"
FRAGMENT: dict[str, Any] = {"remotes": [{"name": "far", "address": "a:1", "secret": SHARED}]}


def write_config(fragment: str) -> dict[str, Any]:
    keys = {"keys": ["admin"], "admin": OWN}
    return {
        "auth": {"handlers": [{"type": "api-key", "config": keys}]},
        "remotes": [{"name": "near", "address": "b:1", "secret": OWN}],
        "processes": [{"id": "p", "name": "true", "env": {"TOKEN": OWN}}],
        "fragments": [{"id": fragment, "variables": {"x": OWN}}],
    }


@dataclass
class Setup:
    cloud: InProcessCloud
    owner: ConnectedClient
    organization: str
    location: str
    machine: str
    part: str
    fragment: str

    async def connect(self, role: str, kind: Any, resource: str) -> ConnectedClient:
        grant = APIKeyAuthorization(role, kind, resource)  # type: ignore[arg-type]
        app = self.owner.app_client
        key, key_id = await app.create_key(self.organization, [grant], f"{role} of {kind}")
        return await self.cloud.connect(key_id, key)

    def reads(self) -> dict[str, Message]:
        """Every method that shows a configuration, with a request."""
        return {
            "GetRobotPart": pb.GetRobotPartRequest(id=self.part),
            "GetRobotParts": pb.GetRobotPartsRequest(robot_id=self.machine),
            "GetRobotPartByNameAndLocation": pb.GetRobotPartByNameAndLocationRequest(
                name="press", location_id=self.location
            ),
            "GetRobotPartHistory": pb.GetRobotPartHistoryRequest(id=self.part),
            "GetFragment": pb.GetFragmentRequest(id=self.fragment),
            "ListFragments": pb.ListFragmentsRequest(organization_id=self.organization),
            "GetFragmentHistory": pb.GetFragmentHistoryRequest(id=self.fragment),
            "ListMachineFragments": pb.ListMachineFragmentsRequest(machine_id=self.machine),
        }

    async def read_all(self, client: ConnectedClient) -> dict[str, bytes]:
        return {
            name: (await call(client, name, request)).SerializeToString()
            for name, request in self.reads().items()
        }


async def call(client: ConnectedClient, name: str, request: Message) -> Any:
    method = getattr(AppServiceStub(client.channel), name)
    return await method(request, metadata=dict(client.metadata))


@pytest.fixture
async def setup(empty_cloud: InProcessCloud) -> Setup:
    owner = await empty_cloud.connect()
    app = owner.app_client
    (organization,) = await app.list_organizations()
    location = await app.create_location(organization.id, "Hall")
    machine = await app.new_robot("press", location.id)
    (part,) = await app.get_robot_parts(machine)
    fragment = (await app.create_fragment(organization.id, "far", FRAGMENT)).id
    for debug in (True, False):
        await app.update_fragment(fragment, "far", {**FRAGMENT, "debug": debug})
        config = {**write_config(fragment), "debug": debug}
        await app.update_robot_part(part.id, "press", config)
    return Setup(empty_cloud, owner, organization.id, location.id, machine, part.id, fragment)


async def test_owner_reads_the_secrets(setup: Setup) -> None:
    for name, reply in (await setup.read_all(setup.owner)).items():
        assert (SHARED if "Fragment" in name else OWN).encode() in reply, name


@pytest.mark.parametrize("kind", ["organization", "location", "robot"])
async def test_operator_reads_no_secret(setup: Setup, kind: str) -> None:
    resources = {
        "organization": setup.organization,
        "location": setup.location,
        "robot": setup.machine,
    }
    operator = await setup.connect("operator", kind, resources[kind])
    for name, reply in (await setup.read_all(operator)).items():
        assert OWN.encode() not in reply, name
        assert SHARED.encode() not in reply, name
        assert b"***" in reply, name
    part = (await call(operator, "GetRobotPart", pb.GetRobotPartRequest(id=setup.part))).part
    shown = json.loads(part.robot_config_json)
    assert shown["remotes"] == [{"name": "near", "address": "b:1", "secret": "***"}]
    assert shown["auth"]["handlers"][0]["config"] == {"keys": ["admin"], "admin": "***"}


async def test_owner_of_a_machine_reads_its_secrets_but_not_those_of_fragments(
    setup: Setup,
) -> None:
    owner = await setup.connect("owner", "robot", setup.machine)
    for name, reply in (await setup.read_all(owner)).items():
        if name in ("GetFragment", "ListFragments", "GetFragmentHistory"):
            assert SHARED.encode() not in reply, name
        elif name != "ListMachineFragments":
            assert OWN.encode() in reply, name


async def test_public_fragment_is_masked_for_others(setup: Setup) -> None:
    app = setup.owner.app_client
    visibility = pb.FragmentVisibility.FRAGMENT_VISIBILITY_PUBLIC
    await call(
        setup.owner,
        "UpdateFragment",
        pb.UpdateFragmentRequest(id=setup.fragment, visibility=visibility),
    )
    other = (await app.create_organization("Other")).id
    grant = APIKeyAuthorization("owner", "organization", other)
    key, key_id = await app.create_key(other, [grant], "other")
    stranger = await setup.cloud.connect(key_id, key)
    reply = await call(stranger, "GetFragment", pb.GetFragmentRequest(id=setup.fragment))
    assert SHARED not in reply.fragment.fragment_config_json
    assert "***" in reply.fragment.fragment_config_json


async def test_masked_configuration_is_not_saved(setup: Setup) -> None:
    operator = await setup.connect("operator", "robot", setup.machine)
    part = (await call(operator, "GetRobotPart", pb.GetRobotPartRequest(id=setup.part))).part
    fragment = await call(operator, "GetFragment", pb.GetFragmentRequest(id=setup.fragment))
    text = part.robot_config_json.replace('"debug": false', '"debug": true')
    update = pb.UpdateRobotPartRequest(id=setup.part, name="press", robot_config_json=text)
    shared = pb.UpdateFragmentRequest(
        id=setup.fragment, fragment_config_json=fragment.fragment.fragment_config_json
    )
    for name, request in (("UpdateRobotPart", update), ("UpdateFragment", shared)):
        with pytest.raises(
            GRPCError, match='has "\\*\\*\\*", which stands for a secret'
        ) as refused:
            await call(setup.owner, name, request)
        assert refused.value.status is Status.INVALID_ARGUMENT
    for name, reply in (await setup.read_all(setup.owner)).items():
        assert b"***" not in reply, name
