"""From a record to the outputs: suppression, counts, masking and truncation."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator

import pytest

from cogwork.core.clock import ManualClock
from cogwork.logs.entry import Entry
from cogwork.logs.pipeline import Pipeline
from cogwork.logs.redactor import Redactor


class JumpingClock(ManualClock):
    """A clock whose wall time may jump while its monotonic time does not."""

    jump = 0.0

    def time(self) -> float:
        return super().time() + self.jump


def detached_logger(name: str, level: int = logging.NOTSET) -> logging.Logger:
    """Return a logger outside the tree, so that tests do not affect each other."""
    return logging.Logger(name, level)  # noqa: LOG001


class Log:
    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.entries: list[Entry] = []
        self.redactor = Redactor()
        self.pipeline = Pipeline(self.clock, [self.entries.append], redactor=self.redactor)
        self.logger = detached_logger("rdk.test", logging.DEBUG)
        self.logger.addHandler(self.pipeline)

    @property
    def lines(self) -> list[str]:
        return [entry.message for entry in self.entries]


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    yield log
    log.logger.removeHandler(log.pipeline)
    log.pipeline.close()


async def test_repeated_message_is_suppressed_and_counted(log: Log) -> None:
    for _ in range(3):
        log.logger.info("again %d", 1)
        await log.clock.advance(1)
    for _ in range(5):
        log.logger.info("again %d", 1)
    assert log.lines == [
        "again 1",
        "again 1",
        "again 1",
        "repeated; suppressing for 10s: again 1",
    ]
    await log.clock.advance(7)
    log.logger.info("again %d", 1)
    assert log.lines[4:] == ["suppressed 5 repeats of: again 1", "again 1"]


async def test_suppressed_count_is_flushed_without_another_message(log: Log) -> None:
    for _ in range(5):
        log.logger.warning("drip")
    watching = asyncio.ensure_future(log.pipeline.flush_periodically())
    await log.clock.advance(9)
    assert len(log.lines) == 4
    await log.clock.advance(2)
    assert log.lines[4:] == ["suppressed 2 repeats of: drip"]
    assert log.entries[-1].level == logging.WARNING
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def test_suppressed_count_is_flushed_on_close(log: Log) -> None:
    for _ in range(4):
        log.logger.info("last words")
    log.pipeline.close()
    assert log.lines[-1] == "suppressed 1 repeat of: last words"


def test_messages_with_other_text_level_or_logger_are_distinct(log: Log) -> None:
    other = detached_logger("rdk.other")
    other.addHandler(log.pipeline)
    for _ in range(3):
        log.logger.info("a")
        log.logger.error("a")
        log.logger.info("b")
        other.info("a")
    assert len(log.lines) == 12


def test_messages_with_other_fields_are_distinct(log: Log) -> None:
    for number in range(10):
        log.logger.info("", extra={"fields": {"number": number}})
    for _ in range(5):
        log.logger.info("", extra={"fields": {"number": 0}})
    messages = [entry.message for entry in log.entries]
    assert messages.count("") == 12
    assert messages[-1] == 'repeated; suppressing for 10s: {"number": 0}'


async def test_wall_clock_jump_does_not_affect_suppression(log: Log) -> None:
    for jump in (0.0, 3600.0, -3600.0, 0.0):
        log.clock.jump = jump
        log.logger.info("jumps")
    assert log.lines.count("jumps") == 3
    await log.clock.advance(10)
    log.clock.jump = -7200.0
    log.logger.info("jumps")
    assert log.lines.count("jumps") == 4


def test_debug_stderr_activity_and_tracebacks_are_never_suppressed(log: Log) -> None:
    standard_error = detached_logger("rdk.modmanager.acme.StdErr")
    activity = detached_logger("rdk.activity")
    for logger in (standard_error, activity):
        logger.addHandler(log.pipeline)
    for _ in range(5):
        log.logger.debug("debug")
        standard_error.error("Traceback")
        activity.info("started")
        try:
            raise ValueError("ouch")
        except ValueError:
            log.logger.exception("failed")
    assert len(log.lines) == 20
    assert "ValueError: ouch" in (log.entries[-1].trace or "")


def test_deduplication_can_be_switched_at_runtime(log: Log) -> None:
    for _ in range(4):
        log.logger.info("x")
    log.pipeline.set_deduplication(False)
    assert log.lines[-1] == "suppressed 1 repeat of: x"
    for _ in range(5):
        log.logger.info("x")
    assert log.lines[-5:] == ["x"] * 5
    log.pipeline.set_deduplication(True)
    for _ in range(5):
        log.logger.info("x")
    assert log.lines[-4:-1] == ["x"] * 3


def test_secrets_are_masked_in_all_parts_of_an_entry(log: Log) -> None:
    log.redactor.add_secrets(["hunter-22", "hunter-22-longer", "abc"])
    log.logger.info("the key is %s", "hunter-22")
    log.logger.info("and hunter-22-longer, abc, abcd")
    try:
        raise ValueError("hunter-22")
    except ValueError:
        log.logger.exception("hunter-22")
    log.logger.info("fields", extra={"fields": {"a": {"b": ["hunter-22"]}}})
    named_logger = detached_logger("rdk.hunter-22")
    named_logger.addHandler(log.pipeline)
    named_logger.info("name")
    assert log.lines == ["the key is ***", "and ***, ***, abcd", "***", "fields", "name"]
    assert "hunter" not in str(log.entries)


def test_long_texts_are_truncated_with_a_mark(log: Log) -> None:
    long = "x" * (1 << 20)
    logger = detached_logger(long)
    logger.addHandler(log.pipeline)
    try:
        raise ValueError(long)
    except ValueError:
        logger.exception(long, extra={"fields": {"a": long, "b": [long], long: 1}})
    (entry,) = log.entries
    for text in (entry.message, entry.logger, entry.trace or "", *map(str, entry.fields.values())):
        assert len(text) < 33 << 10
    assert entry.message.endswith("… [cut 1,015,808 characters]")
    assert len(str(entry.fields)) < 34 << 10
    assert "cut 2 fields" in str(entry.fields)


def test_truncation_reveals_no_part_of_a_secret(log: Log) -> None:
    log.redactor.add_secrets(["planted-secret"])
    log.logger.info("%s", "x" * ((32 << 10) - 7) + "planted-secret" + "y" * 9000)
    assert "plant" not in log.lines[0]


def test_long_repeated_messages_are_counted_in_bounded_memory(log: Log) -> None:
    for number in range(100):
        for _ in range(5):
            log.logger.info("%05d%s", number, "x" * (1 << 20))
    dedup = log.pipeline._dedup
    assert dedup is not None
    assert len(log.lines) == 400
    assert sum(sys.getsizeof(part) for key in dedup._messages for part in key) < 100_000
    log.pipeline.close()
    assert log.lines[-1].startswith("suppressed 2 repeats of: 00099xxx")
    assert len(log.lines[-1]) < 400


def test_log_call_with_wrong_arguments_is_still_logged(log: Log) -> None:
    log.logger.info("%d of %s", "three")
    assert log.lines == ["%d of %s ('three',)"]
