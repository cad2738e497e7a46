"""Names of the resources of other machines."""

from __future__ import annotations

import pytest

from cogwork.graph.name import Api, ResourceName
from cogwork.remotes.names import MAX_HOPS, MAX_RESOURCES, RemoteName, resource_specs

CAMERA = Api.parse("rdk:component:camera")
SENSOR = Api.parse("rdk:component:sensor")


def test_names_follow_that_of_the_remote() -> None:
    camera, nested = resource_specs("line", "", [(CAMERA, "top"), (SENSOR, "cell:scale")])
    assert camera.name == ResourceName(CAMERA, "top", "line")
    assert nested.name.short == "line:cell:scale"
    assert nested.settings == RemoteName("line", "cell:scale")


def test_prefix_is_part_of_the_name_here_only() -> None:
    (camera,) = resource_specs("line", "l1-", [(CAMERA, "top")])
    assert camera.name.short == "line:l1-top"
    assert camera.settings == RemoteName("line", "top")


@pytest.mark.parametrize(
    ("api", "name"),
    [
        (CAMERA, "builtin"),
        (CAMERA, ""),
        (CAMERA, "a::b"),
        (CAMERA, ":".join("abcdef")),
        (CAMERA, "x" * 1000),
        (Api("rdk", "remote", "camera"), "top"),
        (Api("rdk", "component", ""), "top"),
    ],
)
def test_names_that_cannot_be_used_are_left_out(api: Api, name: str) -> None:
    assert resource_specs("line", "", [(api, name)]) == []


def test_hops_and_numbers_are_limited() -> None:
    deepest = ":".join("abcdefgh"[:MAX_HOPS])
    assert len(resource_specs("line", "", [(CAMERA, deepest)])) == 1
    many = [(CAMERA, f"c{number}") for number in range(MAX_RESOURCES + 5)]
    assert len(resource_specs("line", "", many)) == MAX_RESOURCES


def test_name_that_occurs_twice_is_one_resource() -> None:
    assert len(resource_specs("line", "", [(CAMERA, "top"), (CAMERA, "top")])) == 1
