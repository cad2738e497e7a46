"""From a record to the outputs: what is held back, counted, masked and never held back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from cogwork.core.clock import ManualClock
from cogwork.logs.entry import Entry
from cogwork.logs.pipeline import Pipeline


class JumpingClock(ManualClock):
    """Its wall time may jump; its other one never does."""

    jump = 0.0

    def time(self) -> float:
        return super().time() + self.jump


def loose_logger(name: str, level: int = logging.NOTSET) -> logging.Logger:
    """One that is in nobody's tree, so that no test changes another's."""
    return logging.Logger(name, level)  # noqa: LOG001


class Log:
    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.entries: list[Entry] = []
        self.pipeline = Pipeline(self.clock, [self.entries.append])
        self.logger = loose_logger("rdk.test", logging.DEBUG)
        self.logger.addHandler(self.pipeline)

    @property
    def lines(self) -> list[str]:
        return [entry.message for entry in self.entries]


@pytest.fixture
def log() -> Iterator[Log]:
    made = Log()
    yield made
    made.logger.removeHandler(made.pipeline)
    made.pipeline.close()


async def test_a_noisy_message(log: Log) -> None:
    for _ in range(3):
        log.logger.info("again %d", 1)
        await log.clock.advance(1)
    for _ in range(5):
        log.logger.info("again %d", 1)
    assert log.lines == [
        "again 1",
        "again 1",
        "again 1",
        "this repeats; for 10s it is only counted: again 1",
    ]
    await log.clock.advance(7)
    log.logger.info("again %d", 1)
    assert log.lines[4:] == ["came 5 times more: again 1", "again 1"]


async def test_the_count_comes_without_another_message(log: Log) -> None:
    for _ in range(5):
        log.logger.warning("drip")
    watching = asyncio.ensure_future(log.pipeline.watch())
    await log.clock.advance(9)
    assert len(log.lines) == 4
    await log.clock.advance(2)
    assert log.lines[4:] == ["came 2 times more: drip"]
    assert log.entries[-1].level == logging.WARNING
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def test_the_count_comes_at_the_end(log: Log) -> None:
    for _ in range(4):
        log.logger.info("last words")
    log.pipeline.close()
    assert log.lines[-1] == "came once more: last words"


def test_what_is_the_same_message(log: Log) -> None:
    other = loose_logger("rdk.other")
    other.addHandler(log.pipeline)
    for _ in range(3):
        log.logger.info("a")
        log.logger.error("a")
        log.logger.info("b")
        other.info("a")
    assert len(log.lines) == 12


async def test_wall_time_that_jumps_changes_nothing(log: Log) -> None:
    for jump in (0.0, 3600.0, -3600.0, 0.0):
        log.clock.jump = jump
        log.logger.info("jumps")
    assert log.lines.count("jumps") == 3
    await log.clock.advance(10)
    log.clock.jump = -7200.0
    log.logger.info("jumps")
    assert log.lines.count("jumps") == 4


def test_what_is_never_held_back(log: Log) -> None:
    standard_error = loose_logger("rdk.modmanager.acme.StdErr")
    story = loose_logger("rdk.activity")
    for logger in (standard_error, story):
        logger.addHandler(log.pipeline)
    for _ in range(5):
        log.logger.debug("debug")
        standard_error.error("Traceback")
        story.info("started")
        try:
            raise ValueError("ouch")
        except ValueError:
            log.logger.exception("failed")
    assert len(log.lines) == 20
    assert "ValueError: ouch" in (log.entries[-1].trace or "")


def test_it_is_switched_off_and_on_live(log: Log) -> None:
    for _ in range(4):
        log.logger.info("x")
    log.pipeline.deduplicate(False)
    assert log.lines[-1] == "came once more: x"
    for _ in range(5):
        log.logger.info("x")
    assert log.lines[-5:] == ["x"] * 5
    log.pipeline.deduplicate(True)
    for _ in range(5):
        log.logger.info("x")
    assert log.lines[-4:-1] == ["x"] * 3


def test_secrets_are_masked_wherever_they_are(log: Log) -> None:
    log.pipeline.hide(["hunter-22", "hunter-22-longer", "abc"])
    log.logger.info("the key is %s", "hunter-22")
    log.logger.info("and hunter-22-longer, abc")
    try:
        raise ValueError("hunter-22")
    except ValueError:
        log.logger.exception("hunter-22")
    assert log.lines == ["the key is ***", "and ***, abc", "***"]
    assert "hunter" not in (log.entries[-1].trace or "")


def test_a_mistake_in_a_log_call_takes_nothing_away(log: Log) -> None:
    log.logger.info("%d of %s", "three")
    assert log.lines == ["%d of %s ('three',)"]
