"""Edits of fragments are checked on the machines that use them, and show what they change there."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from grpclib import GRPCError
from grpclib.client import UnaryUnaryMethod
from grpclib.const import Status
from tests.support.cloud.in_process_cloud import (
    ConnectedClient,
    InProcessCloud,
)
from viam.app.app_client import APIKeyAuthorization, AppClient, Fragment
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.app_grpc import AppServiceStub

from cogwork.cloud.fleet.agent_info import save_agent_info
from cogwork.cloud.fleet.fragments import fragment_impact
from cogwork.wire.messages.fragment_method import PREVIEW, FragmentPreview, parse_preview

MOTOR: dict[str, Any] = {"name": "motor", "api": "rdk:component:motor", "model": "rdk:builtin:fake"}
CAMERA: dict[str, Any] = {
    "name": "camera",
    "api": "rdk:component:camera",
    "model": "rdk:builtin:fake",
    "attributes": {"path": {"$variable": {"name": "path"}}},
}


class Fleet:
    def __init__(
        self, cloud: InProcessCloud, client: ConnectedClient, organization: str, location: str
    ) -> None:
        self.cloud = cloud
        self.client = client
        self.organization = organization
        self.location = location

    @property
    def app(self) -> AppClient:
        return self.client.app_client

    async def create(self, config: dict[str, Any]) -> str:
        return (await self.app.create_fragment(self.organization, "shared", config)).id

    async def add_machine(self, name: str, config: dict[str, Any]) -> str:
        machine = await self.app.new_robot(name, self.location)
        (part,) = await self.app.get_robot_parts(machine)
        await self.app.update_robot_part(part.id, "main", config)
        return part.id

    async def preview(self, fragment: str, config: dict[str, Any]) -> FragmentPreview:
        method: Any = UnaryUnaryMethod(
            self.client.channel, PREVIEW, pb.UpdateFragmentRequest, Struct
        )
        request = pb.UpdateFragmentRequest(id=fragment)
        request.config.update(config)
        return parse_preview(await method(request, metadata=dict(self.client.metadata)))


@pytest.fixture
async def fleet(empty_cloud: InProcessCloud) -> Fleet:
    client = await empty_cloud.connect()
    (organization,) = await client.app_client.list_organizations()
    location = await client.app_client.create_location(organization.id, "Hall")
    return Fleet(empty_cloud, client, organization.id, location.id)


async def add_organization(fleet: Fleet) -> Fleet:
    """Add an organization with its own owner."""
    organization = (await fleet.app.create_organization("Other")).id
    grant = APIKeyAuthorization("owner", "organization", organization)
    key, key_id = await fleet.app.create_key(organization, [grant], "other")
    client = await fleet.cloud.connect(key_id, key)
    location = await client.app_client.create_location(organization, "Their hall")
    return Fleet(fleet.cloud, client, organization, location.id)


async def refuse_update(fleet: Fleet, fragment: str, config: dict[str, Any]) -> str:
    with pytest.raises(GRPCError) as refused:
        await fleet.app.update_fragment(fragment, "shared", config)
    assert refused.value.status is Status.INVALID_ARGUMENT
    return refused.value.message or ""


async def test_edit_that_breaks_machines_is_refused(fleet: Fleet) -> None:
    fragment = await fleet.create({"components": [MOTOR]})
    outer = (await fleet.app.create_fragment(fleet.organization, "o", {"fragments": [fragment]})).id
    await fleet.add_machine("press", {"fragments": [fragment]})
    await fleet.add_machine("saw", {"fragments": [outer], "debug": True})
    message = await refuse_update(fleet, fragment, {"components": [CAMERA]})
    assert message.startswith("the change would be a mistake on 2 machines, such as ")
    assert '"camera" in components is left out, because the variable "path" has no value' in message
    history = await fleet.app.get_fragment_history(fragment)
    assert len(history) == 1


async def test_configuration_that_machines_would_refuse(fleet: Fleet) -> None:
    fragment = await fleet.create({"components": [MOTOR]})
    await fleet.add_machine("press", {"fragments": [fragment]})
    message = await refuse_update(fleet, fragment, {"network": {"bind_address": 7}})
    assert message.startswith("the change would be a mistake on the machine press, because")
    assert "/network/bind_address" in message


async def test_configuration_for_machines_of_another_make(fleet: Fleet) -> None:
    fragment = await fleet.create({"components": [MOTOR]})
    part = await fleet.add_machine("press", {"fragments": [fragment]})
    ours_refuses: dict[str, Any] = {"auth": {"tls_auth_entities": ["client.example"]}}
    assert "tls_auth_entities" in await refuse_update(fleet, fragment, ours_refuses)
    await fleet.cloud.context.records.write(
        lambda tx: save_agent_info(tx, part, '{"version": "0.98.0"}')
    )
    await fleet.app.update_fragment(fragment, "shared", ours_refuses)


async def test_mistake_that_is_there_already_does_not_keep_an_owner_from_other_changes(
    fleet: Fleet,
) -> None:
    other = await add_organization(fleet)
    theirs = await other.create({"components": [{**MOTOR, "name": "other"}]})
    await other.app.update_fragment(theirs, "shared", visibility=Fragment.Visibility.PUBLIC)
    fragment = await fleet.create({"components": [MOTOR]})
    await fleet.add_machine("press", {"fragments": [fragment, theirs]})
    # They may do this, because it is not their machine.
    await other.app.update_fragment(theirs, "shared", {"components": [{**MOTOR, "model": "x"}]})
    await fleet.app.update_fragment(fragment, "shared", {"components": [MOTOR], "debug": True})
    message = await refuse_update(fleet, fragment, {"components": [MOTOR, CAMERA]})
    assert "another fragment has something else of this name" not in message


async def test_machines_of_others_and_other_versions_do_not_matter(fleet: Fleet) -> None:
    fragment = await fleet.create({"components": [MOTOR]})
    await fleet.app.update_fragment(fragment, "shared", visibility=Fragment.Visibility.PUBLIC)
    await fleet.add_machine("pinned", {"fragments": [{"id": fragment, "version": "1"}]})
    theirs = await add_organization(fleet)
    await theirs.add_machine("secret-name", {"fragments": [fragment]})
    preview = await fleet.preview(fragment, {"components": [CAMERA]})
    assert (preview.machines, preview.other_machines, preview.unchanged_parts) == (1, 1, 1)
    assert "secret-name" not in str(preview)
    await fleet.app.update_fragment(fragment, "shared", {"components": [CAMERA]})


async def test_preview_says_what_would_change_where(fleet: Fleet) -> None:
    fragment = await fleet.create({"components": [MOTOR]})
    for name in ("press", "saw"):
        await fleet.add_machine(name, {"fragments": [fragment]})
    await fleet.add_machine("drill", {"fragments": [fragment], "debug": True})
    await fleet.add_machine("unrelated", {"components": [MOTOR]})
    wheel = {**MOTOR, "name": "wheel"}
    preview = await fleet.preview(fragment, {"components": [MOTOR, wheel]})
    assert (preview.machines, preview.unchecked_parts, preview.unchanged_parts) == (3, 0, 0)
    assert [sorted(each.parts) for each in preview.changes] == [["press", "saw"], ["drill"]]
    for change in preview.changes:
        assert change.mistakes == []
        assert "rdk:component:motor/wheel" in change.plan
        assert "rdk:component:motor/motor" not in change.plan
    wrong = await fleet.preview(fragment, {"components": [CAMERA]})
    assert all('the variable "path" has no value' in each.mistakes[0] for each in wrong.changes)
    assert (await fleet.app.get_fragment(fragment)).fragment == {"components": [MOTOR]}


async def test_too_many_configurations_are_sampled_and_counted(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragment_impact, "MAX_CONFIGS", 2)
    fragment = await fleet.create({"components": [MOTOR]})
    for number in range(4):
        await fleet.add_machine(f"m{number}", {"fragments": [fragment], "revision": str(number)})
    preview = await fleet.preview(fragment, {"debug": True})
    assert (preview.machines, len(preview.changes), preview.unchecked_parts) == (4, 2, 2)
    message = await refuse_update(fleet, fragment, {"components": [CAMERA]})
    assert message.endswith("(2 parts were not checked, because there are too many)")


async def test_moving_a_tag_is_checked(fleet: Fleet) -> None:
    fragment = await fleet.create({"components": [MOTOR]})
    await fleet.app.update_fragment(fragment, "shared", {"components": [CAMERA]})
    stub, metadata = AppServiceStub(fleet.client.channel), dict(fleet.client.metadata)
    request = pb.SetFragmentTagRequest(fragment_id=fragment, tag="stable", revision="1")
    await stub.SetFragmentTag(request, metadata=metadata)
    await fleet.add_machine("press", {"fragments": [{"id": fragment, "version": "stable"}]})
    request.revision = "2"
    with pytest.raises(GRPCError, match="would be a mistake on the machine press"):
        await stub.SetFragmentTag(request, metadata=metadata)
