"""Mistakes of first-time users, and the hints they must get."""

from __future__ import annotations

import pytest
from pydantic import JsonValue
from tests.unit.config.workshop import REGISTRY, load_config

from cogwork.config.check.diff import as_text, diff, find_blocked
from cogwork.config.schema.fields import Dependency, OptionalDependency
from cogwork.core.errors import InvalidName

PART = '"api": "rdk:component:sensor", "model": "fake"'


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"components": [{"name":"a,"api":"x"}]}', "is a quote missing before this?"),
        ('{"components": [{"name: "cam"}]}', "is a quote missing before this?"),
        (r'{"revision": "C:\users"}', r"write a literal backslash as \\"),
        ('{"components": [{"name": "a" , {"name": "b"}]}', "close the object before this one"),
        ("{“debug”: true}", "these are typographic quotes"),
        (
            '{"components": [{"name": "v", "type": "vision", "model": "x"}]}',
            'move it to "services"',
        ),
        (f'{{"components": [{{"name": "my camera", {PART}}}]}}', 'for example "my-camera"'),
        (f'{{"components": [{{"name": "a", "depends_on": "b", {PART}}}]}}', 'write ["b"]'),
    ],
)
def test_beginner_mistake_gets_a_hint(text: str, hint: str) -> None:
    hints = [fault.diagnostic.hint or "" for fault in load_config(text).diagnostics]
    assert any(hint in said for said in hints), hints


def test_namespaced_model_without_a_module_cannot_run() -> None:
    lamp: dict[str, JsonValue] = {
        "components": [{"name": "l", "api": "rdk:component:generic", "model": "acme:lights:lamp"}]
    }
    checked = load_config(lamp).result
    assert [step.name.name for step in find_blocked(checked, REGISTRY)] == ["l"]
    assert "cannot run" in as_text(diff(load_config({}).result, checked, REGISTRY))


def test_remote_dependency_is_not_reported_as_missing() -> None:
    config: dict[str, JsonValue] = {
        "components": [
            {
                "name": "a",
                "api": "rdk:component:sensor",
                "model": "fake",
                "depends_on": ["r:b"],
            }
        ],
        "remotes": [{"name": "r", "address": "localhost:9090"}],
    }
    checked = load_config(config).result
    assert not checked.diagnostics
    assert not find_blocked(checked, REGISTRY)


@pytest.mark.parametrize("api", ["switch", "rdk:component:swich"])
def test_dependency_marker_with_an_invalid_api_raises(api: str) -> None:
    for marker in (Dependency, OptionalDependency):
        with pytest.raises(InvalidName):
            marker(api)


def test_resource_count_includes_broken_entries() -> None:
    checked = load_config(
        f'{{"components": [{{"model": "fake"}}, {{"name": "a", {PART}}}]}}'
    ).result
    assert (checked.resource_count, len(checked.specs)) == (2, 1)
