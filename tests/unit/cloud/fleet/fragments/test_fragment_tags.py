"""Tags of fragments: names for revisions, which machines follow."""

from __future__ import annotations

import pytest
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.fragments.fragments import FragmentInUse, TooManyFragments
from cogwork.core.errors import InvalidRequest, NotFound

MAX_TAGS = 100


def set_tag(acme: OwnedOrganization, tag: str, revision: str = "0") -> dict[str, str]:
    """Return the tags and their revisions."""
    fragment = acme.tenant.fragment
    request = pb.SetFragmentTagRequest(fragment_id=fragment, tag=tag, revision=revision)
    return {each.tag: each.revision for each in acme.run(request).tags}


def use(acme: OwnedOrganization, version: str) -> None:
    request = pb.UpdateRobotPartRequest(id=acme.tenant.part)
    request.robot_config.update({"fragments": [{"id": acme.tenant.fragment, "version": version}]})
    acme.run(request)


def edit(acme: OwnedOrganization, number: int) -> str:
    """Return the new revision."""
    request = pb.UpdateFragmentRequest(id=acme.tenant.fragment)
    request.config.update({"debug": number})
    return str(acme.run(request).fragment.revision)


def test_tag_moves_to_another_revision(acme: OwnedOrganization) -> None:
    first = edit(acme, 1)
    assert set_tag(acme, "stable", first) == {"stable": first}
    second = edit(acme, 2)
    assert set_tag(acme, "stable", second) == {"stable": second}


def test_machines_that_use_a_fragment_are_told(acme: OwnedOrganization) -> None:
    first = edit(acme, 1)
    assert acme.changed == set()
    set_tag(acme, "stable", first)
    use(acme, "stable")
    set_tag(acme, "stable", edit(acme, 2))
    assert acme.changed == {acme.tenant.part}


@pytest.mark.parametrize("tag", ["", "7", "a b", "-a", "x" * 61, "a\n"])
def test_what_is_not_a_tag_is_refused(acme: OwnedOrganization, tag: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be a tag"):
        set_tag(acme, tag, edit(acme, 1))


@pytest.mark.parametrize("revision", ["", "99", "none", "-1"])
def test_revision_must_exist(acme: OwnedOrganization, revision: str) -> None:
    with pytest.raises(NotFound, match="no revision"):
        set_tag(acme, "stable", revision)


def test_number_of_tags_is_limited_and_each_still_moves(acme: OwnedOrganization) -> None:
    first = edit(acme, 1)
    for number in range(MAX_TAGS):
        set_tag(acme, f"t{number}", first)
    with pytest.raises(TooManyFragments, match="delete one first"):
        set_tag(acme, "one-more", first)
    second = edit(acme, 2)
    assert set_tag(acme, "t7", second)["t7"] == second


def test_used_tag_is_not_deleted(acme: OwnedOrganization) -> None:
    set_tag(acme, "stable", edit(acme, 1))
    use(acme, "stable")
    delete = pb.DeleteFragmentTagRequest(fragment_id=acme.tenant.fragment, tag="stable")
    with pytest.raises(FragmentInUse, match="machines or fragments use"):
        acme.run(delete)
    use(acme, "")
    assert list(acme.run(delete).tags) == []


def test_used_fragment_is_not_deleted(acme: OwnedOrganization) -> None:
    use(acme, "")
    delete = pb.DeleteFragmentRequest(id=acme.tenant.fragment)
    with pytest.raises(FragmentInUse, match="1 machines"):
        acme.run(delete)
    acme.run(pb.DeleteRobotRequest(id=acme.tenant.machine))
    acme.run(delete)
    with pytest.raises(NotFound):
        acme.run(pb.GetFragmentRequest(id=acme.tenant.fragment))
