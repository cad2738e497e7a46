"""What of a configuration waits for its packages, and what keeps its former settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.config.workshop import load_config

from cogwork.config.check.checker import CheckResult
from cogwork.graph.name import ResourceName
from cogwork.graph.spec import Spec
from cogwork.packages.effective_config import Former, hold_back

EYE = ResourceName.parse("rdk:component:sensor/eye")


def check(version: str, *sensors: str, module: bool = False) -> CheckResult:
    """Sensors, and perhaps a module, that use the package `detector`, and one that does not."""
    config: dict[str, Any] = {
        "packages": [{"name": "detector", "package": "a/d", "version": version, "type": "archive"}],
        "components": [
            {
                "name": name,
                "api": "rdk:component:sensor",
                "model": "fake",
                "attributes": {
                    "readings": {
                        "file": "" if name == "free" else "${packages.archive.detector}/f",
                        "version": version,
                    }
                },
            }
            for name in ("free", *sensors)
        ],
    }
    if module:
        path = "${packages.archive.detector}/run"
        config["modules"] = [
            {"name": "m", "executable_path": path},
            {"name": "other", "executable_path": "/bin/acme"},
        ]
        config["processes"] = [
            {"id": "p", "name": path},
            {"id": "free", "name": "/bin/acme"},
        ]
    return load_config(config).result


def find_no_module(_spec: Spec) -> None:
    return None


def former_of(result: CheckResult) -> Former:
    return Former(
        {spec.name: spec for spec in result.specs},
        {module.name: module for module in result.config.modules},
        {process.id: process for process in result.config.processes},
    )


def test_nothing_is_held_if_everything_is_ready() -> None:
    old, new = check("1", "eye", module=True), check("2", "eye", module=True)
    found = hold_back(new, former_of(old), lambda _name: True, find_no_module)
    assert found.specs == new.specs
    assert found.modules == tuple(new.config.modules)
    assert found.processes == tuple(new.config.processes)
    assert (found.waiting_resources, found.waiting_modules, found.held_names) == ({}, {}, ())


def test_what_runs_keeps_its_settings_and_the_rest_waits() -> None:
    old, new = check("1", "eye", module=True), check("2", "eye", "young", module=True)
    found = hold_back(new, former_of(old), lambda _name: False, find_no_module)
    by_name = {spec.name.short: spec for spec in found.specs}
    assert by_name["eye"] is next(each for each in old.specs if each.name == EYE)
    assert by_name["free"] is next(each for each in new.specs if each.name.short == "free")
    assert [each.short for each in found.waiting_resources] == ["young"]
    assert [*found.waiting_resources.values()] == [{"detector"}]
    held, other = found.modules
    assert (held.name, other.name) == ("m", "other")
    assert Path(held.executable_path).parent.name == "a-d-1"
    process, free = found.processes
    assert Path(process.name).parent.name == "a-d-1"
    assert free.id == "free"
    assert found.held_names == (str(EYE), "module m", "process p")


def test_module_that_does_not_run_yet_waits() -> None:
    found = hold_back(check("1", module=True), Former(), lambda _name: False, find_no_module)
    assert found.waiting_modules == {"m": {"detector"}}
    assert [module.name for module in found.modules] == ["other"]
    assert found.waiting_processes == {"p": {"detector"}}
    assert [process.id for process in found.processes] == ["free"]


def test_resource_that_was_removed_does_not_come_back() -> None:
    found = hold_back(check("2"), former_of(check("1", "eye")), lambda _name: False, find_no_module)
    assert [spec.name.short for spec in found.specs] == ["free"]


def test_resources_change_together_with_their_module() -> None:
    old, new = check("1", module=True), check("2", "young", module=True)

    def find_module(spec: Spec) -> str:
        return "other" if spec.name == EYE else "m"

    found = hold_back(new, former_of(old), lambda _name: False, find_module)
    by_name = {spec.name.short: spec for spec in found.specs}
    assert by_name["free"] is next(each for each in old.specs if each.name.short == "free")
    assert [each.short for each in found.waiting_resources] == ["young"]
    assert found.held_names == ("rdk:component:sensor/free", "module m", "process p")
    found = hold_back(new, former_of(old), lambda _name: False, lambda _spec: "other")
    assert found.held_names == ("module m", "process p")
