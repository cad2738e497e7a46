"""The environment variables that a configuration uses in secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.config.workshop import REGISTRY

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load, load_value

ENVIRONMENT = {name: f"value of {name.lower()}" for name in ("A", "B", "C", "PIN")}
LOAD_CONTEXT = LoadContext(REGISTRY, Path("/home"), ENVIRONMENT)


def machine(modules: Any = (), **attributes: Any) -> dict[str, Any]:
    component = {
        "name": "s",
        "api": "rdk:component:sensor",
        "model": "fake",
        "attributes": attributes,
    }
    return {"components": [component], "modules": list(modules)}


def module(**env: str) -> dict[str, Any]:
    return {"name": "m", "executable_path": "/m", "env": env}


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (machine(password="$A", host="$B"), {"A"}),
        (machine(password="${A:-none}-${environment.B}"), {"A", "B"}),
        (machine(secrets=["x", {"deep": "${C}"}]), {"C"}),
        (machine([module(MODE="$A", API_KEY="$B")]), {"B"}),
        (machine(host="$A", port="${environment.B}"), set()),
        (machine(password="plain"), set()),
    ],
)
def test_variables_in_secret_fields_are_found(config: dict[str, Any], names: set[str]) -> None:
    assert load(json.dumps(config), LOAD_CONTEXT).secret_variables == names


def test_unquoted_variable_in_a_secret_field_is_found() -> None:
    text = json.dumps(machine(password="PLACE")).replace('"PLACE"', "$PIN")
    context = LoadContext(REGISTRY, Path("/home"), {"PIN": "1234"})
    assert load(text, context).secret_variables == {"PIN"}


def test_load_value_finds_secret_variables() -> None:
    config = machine(password="${environment.A}", host="${environment.B}")
    assert load_value(config, LOAD_CONTEXT).secret_variables == {"A"}
