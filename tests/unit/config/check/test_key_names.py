"""Keys in other letter case are used, and reported with their fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.unit.config.workshop import load_config

from cogwork.config.check import diagnostic_format
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load, load_value
from cogwork.config.schema import codes
from cogwork.config.text.positions import Pointer, format_pointer
from cogwork.config.text.secrets import is_masked, is_secret
from cogwork.drivers.builtin_models import builtin_models
from cogwork.drivers.input_controller.attributes import GamepadAttributes
from cogwork.resource.registry import Registry

CONTEXT = LoadContext(Registry(builtin_models()), Path("/home"), {})

PLAIN: dict[str, Any] = {
    "components": [
        {
            "name": "cam",
            "type": "camera",
            "model": "transform",
            "attributes": {
                "source": "file",
                "pipeline": [{"type": "rotate", "attributes": {"angle_degs": 90}}],
            },
            "frame": {
                "parent": "world",
                "geometry": {"type": "sphere", "r": 5, "translation": {"x": 1}},
                "orientation": {"type": "ov_degrees", "value": {"z": 1, "th": 90}},
            },
        },
        {
            "name": "file",
            "api": {"namespace": "rdk", "type": "component", "subtype": "camera"},
            "model": {"namespace": "rdk", "model_family": "builtin", "name": "fake"},
            "log_configuration": {"level": "debug"},
        },
    ],
    "modules": [{"name": "m", "executable_path": "/m", "env": {"Path": "x"}}],
    "remotes": [{"name": "r", "address": "r:8080", "auth": {"credentials": {
        "type": "api-key", "payload": "the secret"}}}],
    "network": {"sessions": {"heartbeat_window": "1s"}},
    "auth": {"handlers": [{"type": "api-key", "config": {"keys": ["id"], "id": "the key"}}]},
}  # fmt: skip
FREE = {("modules", 0, "env", "Path"), ("auth", "handlers", 0, "config", "keys")}


def load_plain(value: Any) -> LoadedConfig:
    return load(json.dumps(value), CONTEXT)


def upper_keys(value: Any, at: Pointer = ()) -> Any:
    """Return the configuration with all keys in upper case, except free ones."""
    if isinstance(value, list):
        return [upper_keys(each, (*at, index)) for index, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    is_free = at[-1:] in (("env",), ("config",))
    return {
        key if is_free else key.upper(): upper_keys(each, (*at, key)) for key, each in value.items()
    }


def test_keys_count_in_any_letter_case() -> None:
    plain, shouted = load_plain(PLAIN), load_plain(upper_keys(PLAIN))
    assert shouted.result.config == plain.result.config
    assert shouted.result.specs == plain.result.specs
    found = [each.diagnostic for each in shouted.diagnostics]
    assert {each.code for each in found} - {each.diagnostic.code for each in plain.diagnostics} == {
        codes.OTHER_CASE
    }
    assert all(
        each.fix is not None and each.fix.kind is FixKind.RENAME
        for each in found
        if each.code is codes.OTHER_CASE
    )


def test_diagnostic_points_to_the_key_as_it_is_written() -> None:
    value = {
        "Components": [{"Name": "s", "type": "sensor", "model": "fake", "Frame": {"Parent": 5}}]
    }
    loaded = load_plain(value)
    located = {
        (each.diagnostic.code, format_pointer(each.diagnostic.location.pointer)): each.diagnostic
        for each in loaded.diagnostics
    }
    assert (codes.WRONG_TYPE, "/Components/0/Frame/Parent") in located
    assert located[codes.OTHER_CASE, "/Components/0/Name"].fix == Fix(
        FixKind.RENAME, ("Components", 0, "Name"), "name"
    )
    assert loaded.result.specs[0].fault == (
        "expected a string, got the number 5 (at /Components/0/Frame/Parent)"
    )
    assert list(loaded.result.resource_pointers.values()) == [("Components", 0)]


def test_exact_key_wins() -> None:
    sensor = {"NAME": "a", "name": "b", "Name": "c", "type": "sensor", "model": "fake"}
    loaded = load_plain({"components": [sensor]})
    assert [spec.name.name for spec in loaded.result.specs] == ["b"]
    removed = [each.diagnostic.fix for each in loaded.diagnostics]
    assert removed == [
        Fix(FixKind.REMOVE, ("components", 0, "NAME")),
        Fix(FixKind.REMOVE, ("components", 0, "Name")),
    ]


def test_first_key_wins_if_none_is_exact() -> None:
    loaded = load_plain({"Debug": True, "DEBUG": False})
    assert loaded.result.config.debug is True
    assert [each.diagnostic.code for each in loaded.diagnostics] == [
        codes.OTHER_CASE,
        codes.DUPLICATE_KEY,
    ]


@pytest.mark.parametrize(
    "config",
    [{"auth": {}, "Auth": PLAIN["auth"]}, {"auth": {"handlers": [], "Handlers": []}}],
)
def test_ignored_login_is_refused(config: dict[str, Any]) -> None:
    assert load_plain(config).is_refused


def test_login_in_other_case_is_required() -> None:
    loaded = load_plain({"Auth": upper_keys(PLAIN["auth"])})
    assert not loaded.is_refused
    assert loaded.result.config.auth.is_configured


def test_attributes_of_modules_are_passed_on_as_written() -> None:
    resource: JsonValue = {
        "name": "s",
        "type": "sensor",
        "model": "acme:x:y",
        "attributes": {"Name": 1},
    }
    module: JsonValue = {"name": "m", "executable_path": "/bin/acme"}
    loaded = load_config({"components": [resource], "modules": [module]})
    assert loaded.diagnostics == ()
    assert loaded.result.config.components[0].attributes == {"Name": 1}


def test_setting_with_another_name_is_used() -> None:
    gamepad = {"name": "g", "type": "input_controller", "model": "gamepad"}
    loaded = load_plain({"components": [{**gamepad, "attributes": {"Dev_File": "/dev/x"}}]})
    (fault,) = loaded.diagnostics
    assert fault.diagnostic.code is codes.NOT_TAKEN_OVER
    at = ("components", 0, "attributes", "Dev_File")
    assert fault.diagnostic.fix == Fix(FixKind.RENAME, at, "device")
    settings = loaded.result.specs[0].settings
    assert isinstance(settings, GamepadAttributes)
    assert settings.device == "/dev/x"


SECRETS: dict[str, Any] = {
    "Remotes": [{"Name": "r", "Address": "r:8080", "Secret": "canary-1"}],
    "Cloud": {"Id": "x", "API_Key": {"Id": "y", "Key": "canary-2"}, "Location_Secret": "canary-3"},
    "AUTH": {"Handlers": [{"Type": "api-key", "Config": {"keys": ["k"], "k": "canary-4"}}]},
    "agent": {"additional_networks": {"n": {"PSK": "canary-5"}}},
    "Modules": [{"Name": "m", "Executable_Path": "/m", "Env": {"API_TOKEN": "canary-6"}}],
}


def test_secrets_under_keys_in_other_case_stay_masked() -> None:
    """Each fault is on the line of a secret, because the whole file is one line."""
    loaded = load_plain(SECRETS)
    shown = "\n".join(diagnostic_format.as_text(each, "m.json") for each in loaded.diagnostics)
    reported = json.dumps([diagnostic_format.as_json(each, "m") for each in loaded.diagnostics])
    assert "canary" not in shown + reported
    values = {f"canary-{number}" for number in range(1, 7)}
    assert values <= loaded.secrets
    assert values <= load_value(SECRETS, CONTEXT).secrets


def test_wrong_secret_under_a_key_in_other_case_is_not_quoted() -> None:
    loaded = load_plain({"Remotes": [{"name": "r", "address": "x:1", "Secret": ["canary"]}]})
    shown = "\n".join(diagnostic_format.as_text(each, "m.json") for each in loaded.diagnostics)
    assert "expected a string" in shown
    assert "canary" not in shown


@pytest.mark.parametrize(
    ("pointer", "is_hidden"),
    [
        (("Auth", "handlers", 0, "config", "id"), True),
        (("Cloud",), True),
        (("modules", 0, "ENV", "API_KEY"), True),
        (("modules", 0, "ENV", "MODE"), False),
        (("remotes", 0, "AUTH"), True),
        (("components", 0, "attributes", "PassWord"), True),
    ],
)
def test_masking_ignores_the_letter_case(pointer: Pointer, is_hidden: bool) -> None:
    assert is_masked(pointer) == is_hidden
    assert is_secret(pointer)


@pytest.mark.parametrize(
    "pointer",
    [
        ("Auth", "Handlers", 0, "Type"),
        ("Auth", "Handlers", 0, "Config", "keys", 0),
        ("AUTH", "handlers", 0, "Roles", "id"),
        ("Auth", "handlers", 0, "Names", "id"),
        ("cloud", "API_Key", "ID"),
    ],
)
def test_ids_names_and_roles_of_keys_are_not_secret_in_any_letter_case(pointer: Pointer) -> None:
    """They are common words, and the log would be masked wherever it contains them."""
    assert not is_secret(pointer)
