"""The log levels of a module, and of resources while it provides them."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ResourceName
from cogwork.logs.levels import Level
from cogwork.logs.rules import LevelRules
from cogwork.modules.context import ModuleContext
from cogwork.modules.module_levels import ModuleLevels
from cogwork.subprocesses.host import ProgramHost

SCALE = ResourceName(Api.parse("rdk:component:sensor"), "scale")


class Log:
    """The log of a machine, whose rules change."""

    def __init__(self, directory: Path) -> None:
        self.rules = LevelRules(modules={"acme": Level.WARN})
        self.context = ModuleContext(
            ProgramHost(SystemClock()),
            directory,
            lambda name, _: contextlib.nullcontext(name),
            directory,
            {},
            lambda: self.rules,
            lambda: None,
        )
        self.levels = ModuleLevels("acme", self.context, logging.getLogger("acme"))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_module_that_should_log_more_must_be_restarted(log: Log) -> None:
    assert log.levels.choose_start_level() is Level.WARN
    assert not log.levels.apply()
    log.rules = LevelRules(modules={"acme": Level.ERROR})
    assert not log.levels.apply()
    log.rules = LevelRules(modules={"acme": Level.DEBUG})
    assert log.levels.apply()
    assert log.levels.choose_start_level() is Level.DEBUG
    assert not log.levels.apply()


def test_module_that_was_never_started_needs_no_restart(log: Log) -> None:
    assert not log.levels.apply()


def test_resource_has_the_level_of_its_module(log: Log) -> None:
    assert log.levels.level_of(SCALE) is Level.WARN


def test_module_of_a_resource_is_known_while_it_provides_it(log: Log) -> None:
    log.levels.on_provided(SCALE, True)
    assert log.context.resource_modules == {str(SCALE): "acme"}
    log.context.resource_modules[str(SCALE)] = "other"
    log.levels.on_provided(SCALE, False)
    assert log.context.resource_modules == {str(SCALE): "other"}
    log.levels.on_provided(SCALE, True)
    log.levels.on_provided(SCALE, False)
    assert log.context.resource_modules == {}


def test_level_of_a_resource_that_has_no_effect_is_a_warning(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.rules = replace(
        log.rules,
        resources={str(SCALE): Level.DEBUG},
        module_by_resource=log.context.resource_modules,
    )
    log.levels.on_provided(SCALE, True)
    assert caplog.messages == [
        f"log_configuration of {SCALE} has no effect: log_level of module acme takes precedence"
    ]
