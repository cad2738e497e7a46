"""Fragments are merged into configurations."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sizes import size

from cogwork.cloud.configuration.fragment_merge import (
    MAX_DEPTH,
    Merged,
    MistakeType,
    merge_fragments,
)
from cogwork.cloud.configuration.fragment_use import FragmentUnavailable, FragmentUse

Json = dict[str, Any]

CAMERA = {
    "name": "camera",
    "api": "rdk:component:camera",
    "model": "webcam",
    "attributes": {"path": {"$variable": {"name": "path"}}},
}
ROVER: Json = {
    "components": [
        {"name": "local", "model": "pi"},
        {
            "name": "left",
            "model": "gpio",
            "attributes": {"pins": {"a": "12", "b": "11"}, "board": "local", "max_rpm": 150},
            "depends_on": ["local"],
            "frame": {"parent": "local"},
        },
    ],
    "network": {"bind_address": ":8080"},
}


def merge(config: Json, **fragments: Json) -> Merged:
    def find(use: FragmentUse) -> str:
        try:
            return json.dumps(fragments[use.id])
        except KeyError:
            raise FragmentUnavailable("there is no such fragment") from None

    before = copy.deepcopy((config, fragments))
    found = merge_fragments(config, find)
    assert before == (config, fragments), "nothing is modified"
    return found


def types_of(merged: Merged) -> list[MistakeType]:
    return [each.type for each in merged.mistakes]


def test_configuration_without_fragments_stays_as_it_is() -> None:
    config = {"components": [{"name": "a", "x": {"$variable": {"name": "y"}}}], "other": 1}
    assert merge(config) == (config, [])


def test_fragment_is_merged_after_the_own_configuration() -> None:
    own = {"components": [{"name": "arm"}], "debug": True}
    found = merge({**own, "fragments": ["rover"]}, rover=ROVER)
    assert found.mistakes == []
    assert found.config == {
        "components": [{"name": "arm"}, *ROVER["components"]],
        "debug": True,
        "network": ROVER["network"],
    }


def test_own_configuration_has_precedence() -> None:
    own = {"network": {"bind_address": ":1"}, "components": [{"name": "left", "model": "fake"}]}
    found = merge({**own, "fragments": ["rover"]}, rover=ROVER)
    assert found.config["network"] == own["network"]
    assert [each["model"] for each in found.config["components"]] == ["fake", "pi"]
    assert types_of(found) == [MistakeType.NAME_IN_USE]
    assert '"left" in components is left out' in str(found.mistakes[0])


def test_same_module_of_two_fragments_is_used_once() -> None:
    module = {"modules": [{"name": "acme", "module_id": "acme:driver", "version": "1.0.0"}]}
    found = merge({"fragments": ["a", "b"]}, a=module, b=module)
    assert found == (module, [])


def test_keys_of_fragments_are_used_in_any_letter_case() -> None:
    """As in configurations: otherwise, a module that is disabled would run."""
    fragment = {
        "Components": [{"Name": "arm", "attributes": {"Speed": 1}}],
        "modules": [{"name": "acme", "Disabled": True}],
    }
    found = merge({"fragments": [{"id": "f", "prefix": "left"}]}, f=fragment)
    assert found.config == {
        "components": [{"name": "left-arm", "attributes": {"Speed": 1}}],
        "modules": [{"name": "acme", "disabled": True}],
    }


@pytest.mark.parametrize("value", ["/dev/video0", 5, None, {"a": [1]}])
def test_variable(value: Any) -> None:
    found = merge(
        {"fragments": [{"id": "f", "variables": {"path": value}}]}, f={"components": [CAMERA]}
    )
    assert found.mistakes == []
    assert found.config["components"][0]["attributes"]["path"] == value


def test_default_value_of_a_variable() -> None:
    fragment = {"debug": {"$variable": {"name": "debug", "default_value": False}}}
    assert merge({"fragments": ["f"]}, f=fragment).config == {"debug": False}
    use = {"id": "f", "variables": {"debug": True}}
    assert merge({"fragments": [use]}, f=fragment).config == {"debug": True}


def test_missing_variable_leaves_out_only_what_uses_it() -> None:
    fragment = {
        "components": [CAMERA, {"name": "board"}],
        "network": {"bind_address": {"$variable": {"name": "address"}}},
    }
    found = merge({"components": [{"name": "own"}], "fragments": ["f"]}, f=fragment)
    assert found.config == {"components": [{"name": "own"}, {"name": "board"}]}
    assert types_of(found) == [MistakeType.VARIABLE] * 2
    assert '"camera" in components is left out, because the variable "path"' in str(
        found.mistakes[0]
    )


def test_missing_fragment_leaves_out_only_itself() -> None:
    found = merge({"components": [{"name": "own"}], "fragments": ["gone", "rover"]}, rover=ROVER)
    assert [each["name"] for each in found.config["components"]] == ["own", "local", "left"]
    assert found.mistakes == [(MistakeType.NO_ACCESS, "gone", "there is no such fragment")]


def test_prefix_is_put_before_names_and_where_they_are_used() -> None:
    uses = [{"id": "rover", "prefix": prefix} for prefix in ("a", "b")]
    found = merge({"fragments": uses}, rover=ROVER)
    assert found.mistakes == []
    names = [each["name"] for each in found.config["components"]]
    assert names == ["a-local", "a-left", "b-local", "b-left"]
    left = found.config["components"][1]
    assert (left["attributes"]["board"], left["depends_on"]) == ("a-local", ["a-local"])
    assert left["frame"] == {"parent": "a-local"}
    assert left["model"] == "gpio"


def test_overrides() -> None:
    mods = [
        {"$set": {"components.left.attributes.pins.a": "16", "components.left.frame.x.y": 1}},
        {"$unset": {"components.left.attributes.pins.b": 0}, "$set": {"debug": True}},
        {"$inc": {"components.left.attributes.max_rpm": 50}},
        {"$push": {"components.left.depends_on": "arm"}},
        {"$rename": {"components.left.attributes.board": "components.left.attributes.pi"}},
    ]
    config = {"fragments": ["rover"], "fragment_mods": [{"fragment_id": "rover", "mods": mods}]}
    found = merge(config, rover=ROVER)
    assert found.mistakes == []
    assert found.config["debug"] is True
    assert found.config["components"][1] == {
        "name": "left",
        "model": "gpio",
        "attributes": {"pins": {"a": "16"}, "pi": "local", "max_rpm": 200},
        "depends_on": ["local", "arm"],
        "frame": {"parent": "local", "x": {"y": 1}},
    }


def test_override_of_one_of_two_uses() -> None:
    uses = [{"id": "rover", "prefix": prefix} for prefix in ("a", "b")]
    mods = [{"$set": {"components.local.model": "fake"}}]
    for prefix, expected in (({"prefix": "b"}, ["pi", "fake"]), ({}, ["fake", "fake"])):
        override = {"fragment_id": "rover", "mods": mods, **prefix}
        found = merge({"fragments": uses, "fragment_mods": [override]}, rover=ROVER)
        models = [each["model"] for each in found.config["components"] if "local" in each["name"]]
        assert (models, found.mistakes) == (expected, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"$set": {"components.arm.attributes.speed": 1}},
        {"$set": {"services.arm.attributes.speed": 1}},
        {"$unset": {"components.left.attributes.c": 1}},
        {"$inc": {"components.left.model": 1}},
        {"$mul": {"components.left.attributes.max_rpm": 10**4000}},
        {"$push": {"components.left.attributes": 1}},
        {"$set": {"components..x": 1}},
        {"$set": {"components.left.attributes.max_rpm.x": 1}},
        {"$setOnInsert": {"components.left.model": 1}},
        {"$set": 1},
        {"$rename": {"components.left.model": 1}},
        {"$rename": {"network": "fragments"}},
        {"$set": {"fragment_mods.x": []}},
        5,
    ],
)
def test_if_one_override_is_wrong_none_is_applied(wrong: Any) -> None:
    mods = [{"$set": {"components.left.model": "fake"}}, wrong]
    config = {"fragments": ["rover"], "fragment_mods": [{"fragment_id": "rover", "mods": mods}]}
    found = merge(config, rover=ROVER)
    assert found.config == ROVER
    assert types_of(found) == [MistakeType.OVERRIDE]


def test_override_of_a_fragment_that_is_not_used() -> None:
    found = merge({"fragment_mods": [{"fragment_id": "rover", "mods": []}]}, rover=ROVER)
    assert types_of(found) == [MistakeType.OVERRIDE]


def test_fragment_in_a_fragment_gets_variables_and_overrides() -> None:
    inner_path = {"$variable": {"name": "front_path"}}
    outer = {
        "components": [{"name": "board"}],
        "fragments": [{"id": "inner", "prefix": "front", "variables": {"path": inner_path}}],
        "fragment_mods": [
            {"fragment_id": "inner", "mods": [{"$set": {"components.camera.model": "fake"}}]}
        ],
    }
    config = {"fragments": [{"id": "outer", "prefix": "x", "variables": {"front_path": "/v"}}]}
    found = merge(config, outer=outer, inner={"components": [CAMERA]})
    assert found.mistakes == []
    assert [each["name"] for each in found.config["components"]] == ["x-board", "x-front-camera"]
    camera = found.config["components"][1]
    assert (camera["model"], camera["attributes"]["path"]) == ("fake", "/v")


def test_fragment_that_contains_itself() -> None:
    found = merge({"fragments": ["a"]}, a={"fragments": ["b"], "x": 1}, b={"fragments": ["a"]})
    assert found.config == {"x": 1}
    assert types_of(found) == [MistakeType.CYCLE]


def test_fragments_that_are_too_deep() -> None:
    chain: dict[str, Json] = {
        f"f{depth}": {"fragments": [f"f{depth + 1}"], f"at{depth}": 1} for depth in range(20)
    }
    found = merge({"fragments": ["f0"]}, **chain)
    assert found.config == {f"at{depth}": 1 for depth in range(MAX_DEPTH)}
    assert types_of(found) == [MistakeType.TOO_DEEP]


def test_fragments_that_multiply_are_bounded() -> None:
    """Each passes its variable ten times to the next one."""
    variable = {"$variable": {"name": "x"}}
    fragments = {
        f"f{depth}": {"fragments": [{"id": f"f{depth + 1}", "variables": {"x": [variable] * 10}}]}
        for depth in range(8)
    }
    config = {"debug": True, "fragments": [{"id": "f0", "variables": {"x": "y" * 1000}}]}
    found = merge(config, **fragments, f8={"x": variable})
    assert found.config == {"debug": True}
    assert MistakeType.TOO_LARGE in types_of(found)


def test_fragments_that_branch_are_bounded() -> None:
    fragments: dict[str, Json] = {
        f"f{depth}": {"fragments": [{"id": f"f{depth + 1}", "prefix": str(n)} for n in range(9)]}
        for depth in range(8)
    }
    found = merge({"fragments": ["f0"]}, **fragments, f8={"components": [{"name": "x"}]})
    assert MistakeType.TOO_LARGE in types_of(found)


@pytest.mark.parametrize("fragments", [5, {"a": 1}, [5], [{"id": 1}], [""], [{"version": "1"}]])
def test_invalid_section_is_explained(fragments: Any) -> None:
    found = merge({"debug": True, "fragments": fragments})
    assert found.config == {"debug": True}
    assert types_of(found) == [MistakeType.INVALID]


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b", "f", "g"])
keys = st.sampled_from(
    [
        *("name", "id", "components", "fragments", "fragment_mods", "fragment_id", "mods", "a"),
        *("$variable", "default_value", "variables", "prefix", "$set", "$unset", "$inc"),
        *("components.a", "b"),
    ]
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)
)
objects = st.dictionaries(keys, anything, max_size=5)


@settings(max_examples=size(ci=100, full=300, quick=15), deadline=None)
@given(objects, objects, objects)
def test_whatever_is_written_there_is_a_result(config: Json, one: Json, two: Json) -> None:
    config = {"fragments": ["f", {"id": "g", "prefix": "p"}], **config}
    found = merge(config, f=one, g=two)
    json.dumps(found.config)
    assert "fragments" not in found.config
    assert "fragment_mods" not in found.config
    for key, value in config.items():
        if key not in ("fragments", "fragment_mods") and not isinstance(value, list | None):
            assert found.config[key] == value, "the own configuration has precedence"
    assert merge(found.config) == (found.config, []), "merging again changes nothing"


resources = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcdefgh"), "attributes": anything}),
    unique_by=lambda each: str(each["name"]),
)


@settings(max_examples=size(ci=70, full=200, quick=15), deadline=None)
@given(resources, resources)
def test_every_resource_is_there_or_has_a_mistake(own: list[Json], other: list[Json]) -> None:
    found = merge({"components": own, "fragments": ["f"]}, f={"components": other})
    names = [each["name"] for each in found.config["components"]]
    assert len(names) == len({*names})
    assert found.config["components"][: len(own)] == own
    for each in other:
        explained = any(f'"{each["name"]}"' in mistake.text for mistake in found.mistakes)
        assert each["name"] in names or explained
