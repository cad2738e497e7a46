from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from cogwork.logs.loggers import LoggerLevels
from cogwork.logs.rules import LevelRules


@pytest.fixture
def loggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoggerLevels]:
    """Install LoggerLevels in a separate logger tree."""
    manager = logging.Manager(logging.RootLogger(logging.WARNING))
    monkeypatch.setattr(logging.Logger, "manager", manager)
    monkeypatch.setattr(logging.Logger, "root", manager.root)
    monkeypatch.setattr(logging, "root", manager.root)
    levels = LoggerLevels()
    levels.install()
    yield levels
    levels.uninstall()


def test_levels_change_immediately(loggers: LoggerLevels) -> None:
    log = logging.getLogger("rdk.robot")
    assert not log.isEnabledFor(logging.DEBUG)
    loggers.apply(LevelRules(debug=True))
    assert log.isEnabledFor(logging.DEBUG)
    assert logging.getLogger("rdk.later").isEnabledFor(logging.DEBUG)
    loggers.apply(LevelRules())
    assert not log.isEnabledFor(logging.DEBUG)


def test_apply_takes_linear_time_in_the_number_of_loggers(loggers: LoggerLevels) -> None:
    def seconds(count: int) -> float:
        for number in range(count):
            logging.getLogger(f"resource{number}")
        start = time.process_time()
        loggers.apply(LevelRules())
        return time.process_time() - start

    few = max(seconds(1_000), 0.001)
    assert seconds(10_000) < 40 * few
