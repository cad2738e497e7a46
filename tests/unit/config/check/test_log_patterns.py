"""Patterns of the `log` section that match nothing are reported, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.config.workshop import codes_of, load_config

from cogwork.config.check import log_patterns

MACHINE: dict[str, Any] = {
    "components": [{"name": "m1", "api": "rdk:component:sensor", "model": "fake"}],
    "modules": [{"name": "acme", "executable_path": "/bin/true"}],
    "jobs": [{"name": "poll", "schedule": "1h", "resource": "m1", "method": "GetReadings"}],
}


def report(*patterns: str, **sections: Any) -> list[str]:
    log: Any = [{"pattern": pattern, "level": "debug"} for pattern in patterns]
    found = codes_of(load_config({**MACHINE, **sections, "log": log}))
    return [code for code in found if code == "W401"]


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "rdk.resource_manager.*",
        "rdk:component:sensor/m1",
        "m1",
        "rdk.components.*",
        "rdk.components.sensor",
        "acme",
        "ac.*",
        "rdk.modmanager.acme.StdErr",
        "rdk.modmanager.acme.some.logger",
        "rdk.job_manager.poll",
        "rdk.networking",
        "asyncio",
    ],
)
def test_pattern_that_matches_something_is_not_reported(pattern: str) -> None:
    assert report(pattern) == []


@pytest.mark.parametrize(
    "pattern", ["m2", "rdk.services.*", "rdk.components.arm", "other", "rdk.modmanager.other.x"]
)
def test_pattern_that_matches_nothing_is_reported(pattern: str) -> None:
    assert report("*", pattern) == ["W401"]


def test_resources_of_a_remote_are_unknown() -> None:
    assert report("m2", remotes=[{"name": "far", "address": "far:8080"}]) == []


def test_too_many_patterns_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_patterns, "MAX_COMPARISONS", 10)
    assert report("m2") == []
