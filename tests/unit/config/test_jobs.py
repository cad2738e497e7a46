"""The jobs of a configuration: an invalid job affects only itself."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue
from tests.unit.config.workshop import codes_of, load_config

from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.loader import LoadedConfig
from cogwork.config.check.log_rules import build_level_rules
from cogwork.logs.levels import Level


def job(name: str = "j", **fields: JsonValue) -> dict[str, JsonValue]:
    return {"name": name, "schedule": "1h", "resource": "a", "method": "GetReadings", **fields}


def load_with_jobs(*jobs: Any, **sections: Any) -> LoadedConfig:
    sensor: JsonValue = {"name": "a", "api": "rdk:component:sensor", "model": "fake"}
    return load_config({"components": [sensor], "jobs": list(jobs), **sections})


def job_names(load: LoadedConfig) -> list[str]:
    return [each.name for each in load.result.config.jobs]


@pytest.mark.parametrize("schedule", ["10m", "*/15 * * * *", "0 */5 * * * *", "continuous"])
def test_every_kind_of_schedule_is_accepted(schedule: str) -> None:
    load = load_with_jobs(job(schedule=schedule))
    assert codes_of(load) == []
    assert load.result.config.jobs[0].schedule == schedule


def test_job_with_an_invalid_schedule_is_ignored_alone() -> None:
    load = load_with_jobs(job("first"), job("bad", schedule="61 * * * *"), job("last"))
    (found,) = load.result.diagnostics
    assert (found.code.id, found.effect) == ("E104", Effect.IGNORED)
    assert found.location.pointer == ("jobs", 1, "schedule")
    assert "invalid minute" in found.message
    assert job_names(load) == ["first", "last"]
    assert [spec.fault for spec in load.result.specs] == [None]


def test_first_of_two_jobs_with_the_same_name_is_kept() -> None:
    load = load_with_jobs(job(method="GetReadings"), job(method="DoCommand"))
    assert codes_of(load) == ["E202"]
    assert [each.method for each in load.result.config.jobs] == ["GetReadings"]


@pytest.mark.parametrize("resource", ["a", "rdk:component:sensor/a"])
def test_job_resource_may_be_a_short_or_full_name(resource: str) -> None:
    assert codes_of(load_with_jobs(job(resource=resource))) == []


@pytest.mark.parametrize(
    ("resource", "code", "words"),
    [
        ("b", "E301", '"b" is not configured'),
        ("rdk:component:camera/a", "E301", '"rdk:component:camera/a" is not configured'),
        ("camera/a", "E201", '"camera/a" is not a full resource name'),
    ],
)
def test_job_with_an_unknown_resource_is_reported(resource: str, code: str, words: str) -> None:
    load = load_with_jobs(job(resource=resource))
    (found,) = load.result.diagnostics
    assert (found.code.id, found.effect) == (code, Effect.IGNORED)
    assert found.location.pointer == ("jobs", 0, "resource")
    assert words in found.message


def test_job_with_an_ambiguous_resource_is_reported() -> None:
    vision = {"name": "a", "api": "rdk:service:generic", "model": "fake"}
    load = load_with_jobs(job(), services=[vision])
    (found,) = load.result.diagnostics
    assert (found.code.id, found.effect) == ("E302", Effect.IGNORED)
    assert found.message == (
        'job "j" depends on "a", which matches several resources: write "rdk:component:sensor/a" '
        'or "rdk:service:generic/a"'
    )


def test_job_log_level_overrides_log_patterns() -> None:
    load = load_with_jobs(
        job(log_configuration={"level": "debug"}),
        job("other"),
        log=[{"pattern": "rdk.job_manager.*", "level": "error"}],
    )
    rules = build_level_rules(load.result.config, {}, debug=False)
    assert rules.level_of("rdk.job_manager.j") is Level.DEBUG
    assert rules.level_of("rdk.job_manager.other") is Level.ERROR
