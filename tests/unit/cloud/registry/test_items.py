"""Items of the registry: names, listings, deprecation, and what keeps an item."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.mltraining.v1 import ml_training_pb2
from viam.gen.app.packages.v1 import packages_pb2
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.registry.item_operations import ItemInUse
from cogwork.cloud.storage.records import DuplicateRecord
from cogwork.core.errors import InvalidRequest, NotFound

ML_MODEL = packages_pb2.PACKAGE_TYPE_ML_MODEL
MODULE = packages_pb2.PACKAGE_TYPE_MODULE
PUBLIC = pb.VISIBILITY_PUBLIC


def create(acme: OwnedOrganization, name: str, kind: Any = ML_MODEL) -> str:
    organization = acme.tenant.organization
    acme.run(pb.CreateRegistryItemRequest(organization_id=organization, name=name, type=kind))
    return f"{organization}:{name}"


def list_names(acme: OwnedOrganization, key: str = "", **filters: Any) -> list[str]:
    organization = "" if key else acme.tenant.organization
    request = pb.ListRegistryItemsRequest(organization_id=organization, **filters)
    found = acme.cloud.run(key or acme.tenant.key, request).items
    return [each.name for each in found]


@pytest.mark.parametrize("name", ["", "-a", "a b", "ä", "x" * 81, "a/b", "a:b", ".."])
def test_name_that_no_path_can_hold_is_refused(acme: OwnedOrganization, name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be the name of a package"):
        create(acme, name)
    rename = pb.RenameRegistryItemRequest(item_id=create(acme, "fine"), new_name=name)
    with pytest.raises(InvalidRequest, match="cannot be the name of a package"):
        acme.run(rename)


@pytest.mark.parametrize("kind", [0, 99])
def test_type_is_required(acme: OwnedOrganization, kind: int) -> None:
    with pytest.raises(InvalidRequest, match="type of the package is missing"):
        create(acme, "belt", kind)


def test_names_are_unique_in_an_organization(acme: OwnedOrganization) -> None:
    with pytest.raises(DuplicateRecord, match='"drive"'):
        create(acme, "drive")
    other = create(acme, "belt")
    with pytest.raises(DuplicateRecord, match='"drive"'):
        acme.run(pb.RenameRegistryItemRequest(item_id=other, new_name="drive"))
    renamed = pb.RenameRegistryItemRequest(item_id=other, new_name="band")
    assert acme.run(renamed).item.name == "band"
    with pytest.raises(NotFound):
        acme.run(pb.GetRegistryItemRequest(item_id=other))


def test_listing_is_filtered(acme: OwnedOrganization) -> None:
    create(acme, "belt")
    published = pb.REGISTRY_ITEM_STATUS_PUBLISHED
    assert list_names(acme) == ["belt", "drive"]
    assert list_names(acme, types=[ML_MODEL]) == ["belt"]
    assert list_names(acme, search_term="RIV") == ["drive"]
    assert list_names(acme, statuses=[published]) == ["drive"]
    assert list_names(acme, platforms=["any"]) == ["drive"]
    assert list_names(acme, platforms=["linux/arm64"]) == []
    assert list_names(acme, visibilities=[PUBLIC]) == []
    assert list_names(acme, public_namespaces=["acme"]) == []


def test_listing_goes_on_after_an_item(acme: OwnedOrganization) -> None:
    belt = create(acme, "belt")
    assert list_names(acme, page_token=belt) == ["drive"]
    with pytest.raises(InvalidRequest, match="page token"):
        list_names(acme, page_token="drive")


def test_others_see_what_is_public_only(acme: OwnedOrganization) -> None:
    stranger = acme.cloud.add_tenant("Other")
    item = create(acme, "belt")
    assert list_names(acme, stranger.key) == []
    acme.run(pb.UpdateRegistryItemRequest(item_id=item, visibility=PUBLIC))
    assert list_names(acme, stranger.key) == ["belt"]
    assert acme.cloud.run(stranger.key, pb.GetRegistryItemRequest(item_id=item)).item.name == "belt"
    with pytest.raises(NotFound, match="organization"):
        acme.cloud.run(
            stranger.key, pb.ListRegistryItemsRequest(organization_id=acme.tenant.organization)
        )


def test_deprecated_item_is_hidden_and_stays_usable(acme: OwnedOrganization) -> None:
    item = acme.tenant.module
    acme.run(pb.DeprecateRegistryItemRequest(item_id=item, message="use belt"))
    assert list_names(acme) == []
    assert list_names(acme, show_owned_deprecated=True) == ["drive"]
    found = acme.run(pb.GetRegistryItemRequest(item_id=item)).item
    assert found.deprecated_status.message == "use belt"
    listing = pb.ListModulesRequest(organization_id=acme.tenant.organization)
    assert len(acme.run(listing).modules) == 0
    acme.run(pb.UndeprecateRegistryItemRequest(item_id=item))
    assert list_names(acme) == ["drive"]


def test_deprecated_version_says_so(acme: OwnedOrganization) -> None:
    item = acme.tenant.module
    names = {"item_id": item, "version": "1.0.0"}
    acme.run(pb.DeprecateRegistryItemVersionRequest(**names, message="it crashes"))
    (version,) = acme.run(pb.GetModuleRequest(module_id=item)).module.versions
    assert version.deprecated_status.message == "it crashes"
    acme.run(pb.UndeprecateRegistryItemVersionRequest(**names))
    (version,) = acme.run(pb.GetModuleRequest(module_id=item)).module.versions
    assert not version.HasField("deprecated_status")
    with pytest.raises(NotFound, match=r'no version "2\.0\.0"'):
        acme.run(pb.DeprecateRegistryItemVersionRequest(item_id=item, version="2.0.0"))


def test_details_are_those_of_the_type(acme: OwnedOrganization) -> None:
    item = create(acme, "belt")
    details = pb.UpdateMLModelMetadata(
        model_type=ml_training_pb2.MODEL_TYPE_OBJECT_DETECTION,
        model_framework=ml_training_pb2.MODEL_FRAMEWORK_ONNX,
    )
    request = pb.UpdateRegistryItemRequest(
        item_id=item, description="finds belts", update_ml_model_metadata=details
    )
    acme.run(request)
    found = acme.run(pb.GetRegistryItemRequest(item_id=item)).item
    assert found.description == "finds belts"
    assert found.ml_model_metadata.model_framework == ml_training_pb2.MODEL_FRAMEWORK_ONNX
    request.item_id = acme.tenant.module
    with pytest.raises(InvalidRequest, match="type module"):
        acme.run(request)
    with pytest.raises(InvalidRequest, match="type of an item cannot change"):
        acme.run(pb.UpdateRegistryItemRequest(item_id=item, type=MODULE))


@pytest.mark.parametrize("path", ["/bin/sh", "../run.sh", "a/../../b"])
def test_entrypoint_stays_inside_of_the_archive(acme: OwnedOrganization, path: str) -> None:
    request = pb.UpdateModuleRequest(module_id=acme.tenant.module, entrypoint=path)
    with pytest.raises(InvalidRequest, match="cannot be the entrypoint"):
        acme.run(request)


def test_item_that_machines_use_stays(acme: OwnedOrganization) -> None:
    config = {"modules": [{"type": "registry", "name": "d", "module_id": acme.tenant.module}]}
    request = pb.UpdateRobotPartRequest(id=acme.tenant.part)
    request.robot_config.update(config)
    acme.run(request)
    item = acme.tenant.module
    for change in (
        pb.DeleteRegistryItemRequest(item_id=item),
        pb.RenameRegistryItemRequest(item_id=item, new_name="belt"),
    ):
        with pytest.raises(ItemInUse):
            acme.run(change)
    acme.run(pb.UpdateModuleRequest(module_id=item, description="drives", entrypoint="run.sh"))
    assert acme.changed == {acme.tenant.part}


def test_name_of_a_deleted_item_is_free_if_nothing_was_uploaded(acme: OwnedOrganization) -> None:
    acme.run(pb.DeleteRegistryItemRequest(item_id=create(acme, "belt")))
    create(acme, "belt")
    acme.run(pb.DeleteRegistryItemRequest(item_id=acme.tenant.module))
    with pytest.raises(DuplicateRecord, match="has or had"):
        create(acme, "drive", MODULE)
