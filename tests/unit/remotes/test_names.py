"""Names of the resources of other machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from cogwork.graph.name import Api, ResourceName
from cogwork.graph.spec import Spec
from cogwork.remotes.names import (
    MAX_FOREIGN_APIS,
    MAX_HOPS,
    MAX_RESOURCES,
    RemoteName,
    ResourceList,
)

CAMERA = Api.parse("rdk:component:camera")
SENSOR = Api.parse("rdk:component:sensor")


def resource_specs(remote: str, prefix: str, names: Iterable[tuple[Api, str]]) -> list[Spec]:
    return list(make_list(names, {}, remote, prefix).specs.values())


def make_list(
    names: Iterable[tuple[Api, str]],
    present: Mapping[ResourceName, Spec],
    remote: str = "line",
    prefix: str = "",
) -> ResourceList:
    listed = ResourceList(remote, prefix, present)
    for api, name in names:
        listed.add(api, name)
    return listed


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
        (Api("x" * 1000, "component", "camera"), "top"),
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


def test_too_many_resources_are_counted() -> None:
    listed = make_list([(CAMERA, f"c{number}") for number in range(3 * MAX_RESOURCES)], {})
    assert (len(listed.specs), listed.left_out) == (MAX_RESOURCES, 2 * MAX_RESOURCES)


def test_too_many_resources_in_another_order_are_the_same() -> None:
    names = [(CAMERA, f"c{number}") for number in range(3 * MAX_RESOURCES)]
    first = make_list(names, {})
    second = make_list(reversed(names), first.specs)
    assert second.specs.keys() == first.specs.keys()
    assert second.left_out == first.left_out


def test_resource_that_disappears_makes_room_for_another() -> None:
    names = [(CAMERA, f"c{number}") for number in range(MAX_RESOURCES + 1)]
    first = make_list(names, {})
    second = make_list(names[1:], first.specs)
    assert ResourceName(CAMERA, "c0", "line") not in second.specs
    assert ResourceName(CAMERA, f"c{MAX_RESOURCES}", "line") in second.specs
    assert second.left_out == 0


def test_resource_that_stays_keeps_its_spec() -> None:
    first = make_list([(CAMERA, "top")], {}).specs
    second = make_list([(SENSOR, "scale"), (CAMERA, "top")], first).specs
    assert second[ResourceName(CAMERA, "top", "line")] is first[ResourceName(CAMERA, "top", "line")]


def test_apis_that_this_server_does_not_have_are_limited() -> None:
    apis = [Api("acme", "component", f"kind{number}") for number in range(2 * MAX_FOREIGN_APIS)]
    names = [(api, name) for api in apis for name in ("a", "b")]
    listed = make_list([*names, (CAMERA, "top")], {})
    assert {name.api for name in listed.specs} == {*apis[:MAX_FOREIGN_APIS], CAMERA}
    assert listed.left_out == 2 * MAX_FOREIGN_APIS
