"""The preview of the changes that a new configuration would cause."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue
from tests.unit.config.workshop import REGISTRY, load_config, sensor

from cogwork.config.check.diff import ConfigDiff, as_json, as_text, diff, find_blocked

CANARY = "CANARY7f3a"


def generic(name: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"name": name, "api": "rdk:component:generic", "model": "fake", **more}


def vision(**attributes: JsonValue) -> dict[str, JsonValue]:
    return {"name": "v", "api": "rdk:service:vision", "model": "test", "attributes": attributes}


def claw(**attributes: JsonValue) -> dict[str, JsonValue]:
    return {
        "name": "claw",
        "api": "acme:component:claw",
        "model": "acme:claws:one",
        "attributes": attributes,
    }


def change(old: dict[str, JsonValue], new: dict[str, JsonValue]) -> ConfigDiff:
    return diff(load_config(old).result, load_config(new).result, REGISTRY)


def change_components(old: list[JsonValue], new: list[JsonValue]) -> ConfigDiff:
    return change({"components": old}, {"components": new})


def format_lines(difference: ConfigDiff) -> list[str]:
    return as_text(difference).split("\n")


def test_same_configuration_changes_nothing() -> None:
    same: list[JsonValue] = [sensor("a"), sensor("b", depends_on=["a"])]
    difference = change_components(same, same)
    assert difference.is_empty
    assert as_text(difference) == "nothing would change"


def test_order_of_components_does_not_matter() -> None:
    difference = change_components([sensor("a"), generic("b")], [generic("b"), sensor("a")])
    assert as_text(difference) == "nothing would change"


def test_build_and_close_groups_follow_the_dependencies() -> None:
    chain: list[JsonValue] = [
        generic("c", depends_on=["b"]),
        generic("b", depends_on=["a"]),
        generic("a"),
        generic("x"),
    ]
    assert format_lines(change_components([], chain)) == [
        "build (group 1 of 3)",
        "  rdk:component:generic/a: build, because it is not running yet",
        "  rdk:component:generic/x: build, because it is not running yet",
        "build (group 2 of 3)",
        "  rdk:component:generic/b: build, because it is not running yet",
        "build (group 3 of 3)",
        "  rdk:component:generic/c: build, because it is not running yet",
        "4 built",
    ]
    first, *group = format_lines(change_components(chain, []))[:3]
    assert first == "close (group 1 of 3)"
    assert sorted(group) == [
        "  rdk:component:generic/c: close, because it is no longer configured",
        "  rdk:component:generic/x: close, because it is no longer configured",
    ]
    assert format_lines(change_components(chain, []))[-1] == "4 removed"


def test_changed_attributes_reconfigure_in_place() -> None:
    old, new = ([sensor("a", attributes={"readings": {"x": n}}), generic("b")] for n in (1, 2))
    assert format_lines(change_components([*old], [*new])) == [
        "build",
        "  rdk:component:sensor/a: reconfigure, because its attributes changed"
        " (attributes.readings)",
        "1 reconfigured, 1 unchanged",
    ]


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False)])
def test_values_of_different_json_types_are_a_change(old: JsonValue, new: JsonValue) -> None:
    difference = change_components(
        [sensor("a", attributes={"readings": {"x": old}})],
        [sensor("a", attributes={"readings": {"x": new}})],
    )
    assert "1 reconfigured" in as_text(difference)


def test_dependents_of_a_rebuilt_resource_are_rebuilt() -> None:
    module: dict[str, JsonValue] = {"modules": [{"name": "m", "executable_path": "/bin/acme"}]}
    holder = generic("h", depends_on=["claw"])
    old: dict[str, JsonValue] = {**module, "components": [claw(x=1), holder, generic("free")]}
    new: dict[str, JsonValue] = {**module, "components": [claw(x=2), holder, generic("free")]}
    assert format_lines(change(old, new)) == [
        "close (group 1 of 2)",
        '  rdk:component:generic/h: close, because it holds "claw", which is closed',
        "close (group 2 of 2)",
        "  acme:component:claw/claw: close, because its attributes changed (attributes.x)",
        "build (group 1 of 2)",
        "  acme:component:claw/claw: rebuild, because its attributes changed (attributes.x)",
        "build (group 2 of 2)",
        '  rdk:component:generic/h: rebuild, because it holds "claw", which is closed',
        "2 rebuilt, 1 unchanged",
    ]


def test_changed_model_rebuilds_the_resource() -> None:
    module: dict[str, JsonValue] = {"modules": [{"name": "m", "executable_path": "/bin/acme"}]}
    difference = change(
        {**module, "components": [generic("a")]},
        {**module, "components": [generic("a", model="acme:things:one")]},
    )
    assert (
        "  rdk:component:generic/a: rebuild, because its model changed from fake to"
        " acme:things:one (model)" in format_lines(difference)
    )


def test_resource_without_its_dependency_is_halted() -> None:
    difference = change_components(
        [sensor("a"), generic("b", depends_on=["a"])], [generic("b", depends_on=["a"])]
    )
    assert format_lines(difference) == [
        "close (group 1 of 2)",
        '  rdk:component:generic/b: close, because it depends on "a", which is not configured',
        "close (group 2 of 2)",
        "  rdk:component:sensor/a: close, because it is no longer configured",
        "cannot run",
        '  rdk:component:generic/b: depends on "a", which is not configured',
        "1 removed, 1 halted",
    ]


def test_broken_resource_cannot_run_for_its_fault() -> None:
    difference = change_components([sensor("a")], [sensor("a"), sensor("b", depends_on=5)])
    assert format_lines(difference) == [
        "cannot run",
        "  rdk:component:sensor/b: expected a list, got the number 5 (at /components/1/depends_on)",
        "1 unchanged",
    ]


def test_diff_may_consist_only_of_blocked_resources() -> None:
    difference = change_components([], [sensor("b", depends_on=["x"])])
    assert format_lines(difference) == [
        "cannot run",
        '  rdk:component:sensor/b: depends on "x", which is not configured',
    ]


def test_find_blocked_lists_resources_and_reasons() -> None:
    broken = load_config({"components": [sensor("a", depends_on=["x"]), sensor("b", model="nope")]})
    assert [(step.name.short, step.why) for step in find_blocked(broken.result, REGISTRY)] == [
        ("a", 'depends on "x", which is not configured'),
        ("b", 'unknown model "nope" for rdk:component:sensor'),
    ]


def test_optional_dependency_that_appears_or_disappears_rebuilds() -> None:
    service: dict[str, JsonValue] = {"services": [vision(helper="h")]}
    without: dict[str, JsonValue] = {**service, "components": []}
    with_it: dict[str, JsonValue] = {**service, "components": [sensor("h")]}
    appeared = format_lines(change(without, with_it))
    assert "  rdk:component:sensor/h: build, because it is not running yet" in appeared
    assert '  rdk:service:vision/v: rebuild, because it now depends on "h"' in appeared
    gone = format_lines(change(with_it, without))
    assert gone[1].startswith("  rdk:service:vision/v: close, because ")
    assert gone[-1] == "1 rebuilt, 1 removed"


def test_changes_that_need_no_rebuild_are_listed() -> None:
    difference = change_components(
        [sensor("a"), generic("b")],
        [sensor("a", log_configuration={"level": "debug"}, frame={"parent": "w"}), generic("b")],
    )
    assert not difference.is_empty
    assert format_lines(difference) == [
        "settings",
        "  rdk:component:sensor/a: changed (frame, log_configuration); without a rebuild",
        "2 unchanged",
    ]


SECTIONS: list[tuple[dict[str, JsonValue], dict[str, JsonValue], list[str]]] = [
    ({}, {"debug": True}, ["debug: on; takes effect immediately"]),
    ({"debug": True}, {}, ["debug: off; takes effect immediately"]),
    ({"revision": "a"}, {"revision": "b"}, ["revision: changed; only a label"]),
    (
        {},
        {"log": [{"pattern": "a", "level": "info"}]},
        ["log: added; takes effect immediately"],
    ),
    (
        {"log": [{"pattern": "a", "level": "info"}]},
        {"log": [{"pattern": "a", "level": "warn"}]},
        ["log: changed; takes effect immediately"],
    ),
    (
        {},
        {"network": {"bind_address": "localhost:1", "no_tls": True}},
        ["network: changed (bind_address, no_tls)"],
    ),
    ({}, {"cloud": {"id": "i", "secret": "s"}}, ["cloud: added"]),
    (
        {"cloud": {"id": "i", "secret": "s"}},
        {"cloud": {"id": "i", "secret": "t"}},
        ["cloud: changed (secret)"],
    ),
    (
        {"modules": [{"name": n, "executable_path": "/bin/acme"} for n in ("c", "b", "a", "d")]},
        {
            "modules": [
                {"name": "x", "executable_path": "/bin/acme"},
                {"name": "d", "executable_path": "/bin/acme", "env": {"K": "v"}},
            ]
        },
        [
            'modules: "c" removed',
            'modules: "b" removed',
            'modules: "a" removed',
            'modules: "x" added',
            'modules: "d" changed (env.K)',
        ],
    ),
    (
        {"processes": [{"id": "p", "name": "a"}]},
        {"processes": [{"id": "p", "name": "b"}]},
        ['processes: "p" changed (name)'],
    ),
    ({"$schema": "a"}, {"$schema": "b"}, ["$schema: changed"]),
]


@pytest.mark.parametrize(("old", "new", "expected"), SECTIONS)
def test_changed_sections_are_listed(
    old: dict[str, JsonValue], new: dict[str, JsonValue], expected: list[str]
) -> None:
    shown = format_lines(change(old, new))
    assert shown == ["settings", *(f"  {line}" for line in expected)]


def test_diff_shows_no_values() -> None:
    def config(n: int) -> dict[str, JsonValue]:
        value = f"{CANARY}{n}"
        return {
            "cloud": {"id": value, "secret": value, "api_key": {"id": value, "key": value}},
            "auth": {"handlers": [{"type": "api-key", "config": {"k": value, "keys": ["k"]}}]},
            "modules": [{"name": "m", "executable_path": "/bin/acme", "env": {"A": value}}],
            "remotes": [{"name": "r", "address": value, "secret": value}],
            "components": [
                claw(password=value),
                sensor("s", attributes={"readings": {"x": value}}),
            ],
            "revision": value,
        }

    difference = change(config(1), config(2))
    assert "attributes.password" in as_text(difference)
    assert CANARY not in as_text(difference)
    assert CANARY not in json.dumps(as_json(difference))


def test_json_form_has_all_steps() -> None:
    difference = change(
        {"components": [sensor("a"), generic("gone"), generic("same")]},
        {
            "components": [
                sensor("a", attributes={"readings": {}}),
                generic("same"),
                generic("stuck", depends_on=["gone"]),
            ],
            "debug": True,
        },
    )
    assert as_json(difference) == {
        "close": [
            [
                {
                    "name": "rdk:component:generic/gone",
                    "action": "remove",
                    "why": "it is no longer configured",
                    "changed": None,
                }
            ]
        ],
        "build": [
            [
                {
                    "name": "rdk:component:sensor/a",
                    "action": "reconfigure",
                    "why": "its attributes changed",
                    "changed": "attributes.readings",
                }
            ]
        ],
        "cannot_run": [
            {
                "name": "rdk:component:generic/stuck",
                "action": "wait",
                "why": 'depends on "gone", which is not configured',
                "changed": None,
            }
        ],
        "untouched": ["rdk:component:generic/same"],
        "settings": [{"section": "debug", "what": "on", "how": "takes effect immediately"}],
    }


def test_added_or_removed_dependency_rebuilds_the_resource() -> None:
    alone: list[JsonValue] = [generic("a"), generic("b")]
    joined: list[JsonValue] = [generic("a"), generic("b", depends_on=["a"])]
    assert (
        '  rdk:component:generic/b: rebuild, because it now depends on "a" (depends_on)'
        in format_lines(change_components(alone, joined))
    )
    assert (
        '  rdk:component:generic/b: rebuild, because it no longer depends on "a" (depends_on)'
        in format_lines(change_components(joined, alone))
    )


def test_default_motion_service_is_no_change_and_blocks_nothing() -> None:
    config: dict[str, JsonValue] = {
        "components": [
            {
                "name": "a",
                "api": "rdk:component:sensor",
                "model": "fake",
                "depends_on": ["rdk:service:motion/builtin"],
            }
        ]
    }
    change = diff(load_config({}).result, load_config(config).result, REGISTRY)
    assert [str(step.name) for group in change.dry_run.building for step in group] == [
        "rdk:component:sensor/a"
    ]
    assert change.dry_run.blocked == []
