"""The JSON Schema for editors agrees with the checks of the server."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import JsonValue
from scripts import generate
from tests.support.paths import REPOSITORY
from tests.unit.config.workshop import (
    REGISTRY,
    CameraAttributes,
    codes_of,
    load_config,
    model,
    sensor,
)

from cogwork.config.schema import cloud, frame, module, network
from cogwork.config.schema import machine as machine
from cogwork.config.schema.codes import CODES
from cogwork.config.schema.fields import DEPENDS_ON, Attributes, Section
from cogwork.config.schema.json_schema import describe_model, machine_schema
from cogwork.config.text.json_reader import read_json
from cogwork.drivers.base.attributes import WheeledBaseAttributes
from cogwork.drivers.builtin_models import builtin_models
from cogwork.drivers.motor.attributes import GpioMotorAttributes
from cogwork.resource.registry import Registry


@functools.cache
def validator() -> Draft202012Validator:
    schema = machine_schema(REGISTRY)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def camera(**attributes: JsonValue) -> dict[str, JsonValue]:
    return {
        "components": [
            {
                "name": "c",
                "api": "rdk:component:camera",
                "model": "test",
                "attributes": attributes,
            }
        ]
    }


def resource(**more: JsonValue) -> dict[str, JsonValue]:
    return {"components": [sensor("a", **more)]}


GOOD: list[JsonValue] = [
    {},
    {"debug": True, "revision": "x", "$schema": "./s.json"},
    {"components": None, "network": None, "debug": None, "revision": None, "cloud": None},
    {"network": {"bind_address": None, "sessions": {"heartbeat_window": None}}},
    {"network": {"sessions": {"heartbeat_window": "1.5s"}}},
    {"network": {"sessions": {"heartbeat_window": "+1s500ms"}}},
    {"log": [{"pattern": "*", "level": level} for level in ("debug", "Info", "WARN", "warning")]},
    resource(),
    resource(attributes=None, depends_on=None, frame=None, service_configs=None),
    resource(namespace=None, type=None),
    resource(log_configuration={"level": "Warning"}),
    resource(frame={"parent": "world", "translation": {"x": 1}, "id": None}),
    {"components": [{"name": "a", "type": "sensor", "model": "fake"}]},
    {"components": [{"name": "a", "type": "sensor", "api": None, "model": "fake"}]},
    {"components": [{"name": "a", "type": "sensor", "namespace": "rdk", "model": "fake"}]},
    {
        "components": [
            {
                "name": "a",
                "api": {"namespace": "rdk", "type": "component", "subtype": "sensor"},
                "model": {"namespace": "rdk", "model_family": "builtin", "name": "fake"},
            }
        ]
    },
    {"services": [{"api": "rdk:service:generic", "model": "fake"}]},
    camera(),
    camera(width=1, rate=2, mode="depth"),
    {"processes": [{"id": "p", "name": "x", "stop_signal": 9}]},
    {"remotes": [{"name": "r", "address": "h:1", "auth": {"credentials": None}}]},
]

BAD: list[JsonValue] = [
    [],
    5,
    {"unknown": 1},
    {"debug": "yes"},
    {"debug": 1},
    {"revision": 5},
    {"components": {}},
    {"components": [5]},
    {"components": [{}]},
    {"components": [{"name": "a", "model": "fake"}]},
    {"components": [{"name": "a", "api": None, "model": "fake"}]},
    {"components": [{"name": "a", "type": 5, "model": "fake"}]},
    {"components": [{"name": None, "api": "rdk:component:sensor", "model": "fake"}]},
    {"components": [{"name": "a", "api": "rdk:component:sensor", "model": None}]},
    {"components": [{"name": "a b", "api": "rdk:component:sensor", "model": "fake"}]},
    {"components": [{"name": "x" * 61, "api": "rdk:component:sensor", "model": "fake"}]},
    {"components": [{"name": "a", "api": "sensor", "model": "fake"}]},
    {"components": [{"name": "a", "api": "rdk:component:sensor", "model": "a:b"}]},
    {"components": [{"name": "a", "api": {"namespace": "rdk"}, "model": "fake"}]},
    resource(unknown=1),
    resource(depends_on="b"),
    resource(depends_on=[5]),
    resource(attributes=[]),
    resource(attributes={"unknown": 1}),
    resource(attributes={"readings": 5}),
    resource(frame={}),
    resource(frame={"parent": "w", "translation": {"w": 1}}),
    resource(log_configuration={"level": "loud"}),
    resource(log_configuration={"level": "info", "x": 1}),
    camera(width="wide"),
    camera(width=0),
    camera(width=9999),
    camera(rate=[]),
    camera(rate="nan"),
    camera(mode="infrared"),
    camera(readings={}),
    {"services": [{"name": "s", "model": "fake"}]},
    {"services": [{"api": "rdk:service:generic", "model": "fake", "attributes": {"x": 1}}]},
    {"network": {"sessions": {"heartbeat_window": 2}}},
    {"network": {"sessions": {"heartbeat_window": "2 s"}}},
    {"network": {"traffic_tunnel_endpoints": [{"port": 0}]}},
    {"network": {"no_tls": "no"}},
    {"cloud": {"secret": "s"}},
    {"cloud": {"id": "", "secret": "s"}},
    {"cloud": {"id": "i", "api_key": {"id": "x"}}},
    {"auth": {"handlers": [{"type": "external", "config": {}}]}},
    {"log": [{"pattern": "a"}]},
    {"log": [{"pattern": "", "level": "info"}]},
    {"modules": [{"executable_path": "/bin/acme"}]},
    {"modules": [{"name": "m", "type": "lokal"}]},
    {"modules": [{"name": "m", "executable_path": "/bin/acme", "env": {"A": 1}}]},
    {"packages": [{"name": "p", "package": "a/b", "type": "zip"}]},
    {"remotes": [{"name": "r"}]},
    {"jobs": [{"name": "j"}]},
    {"tracing": {"enabled": 1}},
    {"maintenance": {}},
]


def test_schema_conforms_to_its_dialect() -> None:
    schema = machine_schema(REGISTRY)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("value", GOOD, ids=lambda value: json.dumps(value)[:60])
def test_schema_accepts_what_the_loader_accepts(value: JsonValue) -> None:
    assert [code for code in codes_of(load_config(value)) if code != "W406"] == []
    assert not list(validator().iter_errors(value))


def test_schema_accepts_the_complete_file() -> None:
    value = read_json((Path(__file__).parents[1] / "complete.json").read_text()).value
    assert not [error.message for error in validator().iter_errors(value)]


@pytest.mark.parametrize("value", BAD, ids=lambda value: json.dumps(value)[:60])
def test_schema_rejects_what_the_loader_rejects(value: JsonValue) -> None:
    assert codes_of(load_config(value))
    assert list(validator().iter_errors(value))


def test_defaults_satisfy_their_own_schema() -> None:
    wrong = [
        (name, key, member["default"])
        for name, definition in _definitions().items()
        for key, member in definition.get("properties", {}).items()
        if "default" in member and list(_member_validator(member).iter_errors(member["default"]))
    ]
    assert wrong == []


def _section_classes() -> list[type[Section]]:
    found = {
        kind: None
        for file in (cloud, frame, module, network, machine)
        for kind in vars(file).values()
        if isinstance(kind, type) and issubclass(kind, Section) and kind is not Section
    }
    return list(found)


@functools.cache
def _definitions() -> dict[str, Any]:
    schema = machine_schema(REGISTRY)
    return {**schema["$defs"], "machine": schema}


def _member_validator(member: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({"$defs": _definitions(), **member})


def test_every_property_of_the_schema_is_described() -> None:
    schema = machine_schema(Registry(builtin_models()))
    definitions = {**schema["$defs"], "machine": schema}
    members = {
        f"{name}.{key}": member
        for name, definition in definitions.items()
        for key, member in definition.get("properties", {}).items()
    }
    assert len(members) > 150
    assert [at for at, member in members.items() if not member.get("description")] == []


def test_every_model_is_described() -> None:
    described = [describe_model(each.load_attributes())["description"] for each in builtin_models()]
    assert [each for each in described if not each.endswith(".")] == []


def test_attribute_that_names_a_resource_says_of_which_api() -> None:
    base = describe_model(WheeledBaseAttributes)["properties"]
    assert base["left"]["items"][DEPENDS_ON] == "rdk:component:motor"
    assert DEPENDS_ON not in base["width_mm"]
    motor = describe_model(GpioMotorAttributes)["properties"]
    assert motor["board"][DEPENDS_ON] == "rdk:component:board"


@pytest.mark.parametrize("kind", _section_classes(), ids=lambda kind: kind.__name__)
def test_section_is_described(kind: type[Section]) -> None:
    assert describe_model(kind)["description"]


def test_attribute_class_named_like_a_section_does_not_collide() -> None:
    theirs = type("ComponentConfig", (CameraAttributes,), {"__module__": "acme"})
    also = type("MachineConfig", (Attributes,), {"__module__": "acme"})
    registry = Registry(
        [
            model("rdk:component:camera", "acme:cams:one", theirs),
            model("rdk:service:generic", "acme:things:one", also),
        ]
    )
    schema = machine_schema(registry)
    Draft202012Validator.check_schema(schema)
    bad: JsonValue = {
        "components": [
            {
                "name": "c",
                "api": "rdk:component:camera",
                "model": "acme:cams:one",
                "attributes": {"width": "wide"},
            }
        ]
    }
    assert list(Draft202012Validator(schema).iter_errors(bad))
    assert not list(Draft202012Validator(schema).iter_errors(resource()))


def test_schema_without_models_is_valid() -> None:
    Draft202012Validator.check_schema(machine_schema(Registry([])))


# Committed files


def test_generated_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capsys.readouterr().err


def test_committed_schema_is_current() -> None:
    committed = (REPOSITORY / "schemas" / "machine.schema.json").read_text(encoding="utf-8")
    assert committed == generate.generate_files()["schemas/machine.schema.json"], "run `make docs`"


def test_check_names_outdated_generated_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().err
    assert all(path in said for path in generate.generate_files())
    assert "make docs" in said
    assert list(tmp_path.iterdir()) == []
    assert generate.main([], tmp_path) == 0
    assert generate.main(["--check"], tmp_path) == 0
    (tmp_path / "docs" / "reference" / "models.md").write_text("old")
    capsys.readouterr()
    assert generate.main(["--check"], tmp_path) == 1
    assert "docs/reference/models.md" in capsys.readouterr().err


def test_diagnostics_page_has_a_section_for_every_code() -> None:
    page = generate.generate_files()["docs/reference/diagnostics.md"]
    for code in CODES.values():
        assert f"\n## {code.id}\n\n**{code.title}**" in page
        assert f"(#{code.id.lower()})" in page
        assert code.explanation in page
