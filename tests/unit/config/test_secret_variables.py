"""Which environment variables a configuration puts into secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.config.workshop import REGISTRY

from cogwork.config.load_context import LoadContext
from cogwork.config.loader import load, load_value

ENVIRONMENT = {name: f"value of {name.lower()}" for name in ("A", "B", "C", "PIN")}
SURROUNDINGS = LoadContext(REGISTRY, Path("/home"), ENVIRONMENT)


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
def test_finds_their_names(config: dict[str, Any], names: set[str]) -> None:
    assert load(json.dumps(config), SURROUNDINGS).secret_variables == names


def test_also_outside_of_a_string() -> None:
    text = json.dumps(machine(password="PLACE")).replace('"PLACE"', "$PIN")
    surroundings = LoadContext(REGISTRY, Path("/home"), {"PIN": "1234"})
    assert load(text, surroundings).secret_variables == {"PIN"}


def test_of_one_that_never_was_text() -> None:
    config = machine(password="${environment.A}", host="${environment.B}")
    assert load_value(config, SURROUNDINGS).secret_variables == {"A"}
