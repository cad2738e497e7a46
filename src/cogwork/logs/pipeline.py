"""From a record of the standard library to every output: judged, masked, handed on.

Whoever logs waits for none of the outputs.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator

from cogwork.core.clock import Clock
from cogwork.logs.dedup import WINDOW, Dedup, Summary
from cogwork.logs.entry import Entry
from cogwork.logs.mask import Mask

Output = Callable[[Entry], None]
"""Takes an entry and returns at once."""
Key = tuple[str, int, str]
"""Logger, level and text: what makes two messages the same one."""

STORY = "rdk.activity"
"""What happened to the machine as a whole is told every time."""
_MOST_SECRETS = 1000
_NEVER_NOISY = (".StdErr",)


class Pipeline(logging.Handler):
    def __init__(
        self, clock: Clock, outputs: Iterable[Output], at_end: Callable[[], None] = lambda: None
    ) -> None:
        """`at_end` lets the outputs write what they still have."""
        super().__init__()
        self._at_end = at_end
        self._clock = clock
        self._outputs = tuple(outputs)
        self._dedup: Dedup[Key] | None = Dedup()
        self._secrets: dict[str, None] = {}
        """The newest first."""
        self._mask = Mask()

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on, in every output. Those of before stay hidden: somebody may know them."""
        known = {**dict.fromkeys(secrets), **self._secrets}
        self._secrets = dict(itertools.islice(known.items(), _MOST_SECRETS))
        self._mask = Mask(self._secrets)

    def masked(self, text: str) -> str:
        return self._mask.hide(text)

    def deduplicate(self, wanted: bool) -> None:
        with self._guarded():
            if wanted and self._dedup is None:
                self._dedup = Dedup()
            elif not wanted and self._dedup is not None:
                self._tell_all(self._dedup.close())
                self._dedup = None

    def emit(self, record: logging.LogRecord) -> None:
        message = _message(record)
        if self._dedup is None or _is_never_noisy(record):
            self._hand_on(_entry(record, message))
            return
        key = (record.name, record.levelno, message)
        verdict = self._dedup.judge(key, self._clock.monotonic())
        if verdict.held_back:
            self._tell(Summary(key, verdict.held_back))
        if verdict.prints:
            self._hand_on(_entry(record, message))
        elif verdict.starts:
            self._say(key, f"this repeats; for {WINDOW:g}s it is only counted: {message}")
        crowded_out = self._dedup.crowded_out()
        if crowded_out is not None and crowded_out.held_back:
            self._tell(crowded_out)

    async def watch(self) -> None:
        """Account for what was held back and did not come again. Runs until cancelled."""
        while True:
            await self._clock.sleep(1.0)
            self.settle()

    def settle(self) -> None:
        with self._guarded():
            if self._dedup is not None:
                self._tell_all(self._dedup.due(self._clock.monotonic()))

    def close(self) -> None:
        with self._guarded():
            if self._dedup is not None:
                self._tell_all(self._dedup.close())
        self._at_end()
        super().close()

    def _tell_all(self, summaries: Iterable[Summary[Key]]) -> None:
        for summary in tuple(summaries):
            self._tell(summary)

    def _tell(self, summary: Summary[Key]) -> None:
        times = "once" if summary.held_back == 1 else f"{summary.held_back} times"
        self._say(summary.key, f"came {times} more: {summary.key[2]}")

    def _say(self, key: Key, message: str) -> None:
        logger, level, _ = key
        self._hand_on(Entry(self._clock.time(), level, logger, "dedup", message))

    def _hand_on(self, entry: Entry) -> None:
        entry.message = self._mask.hide(entry.message)
        if entry.trace:
            entry.trace = self._mask.hide(entry.trace)
        for output in self._outputs:
            output(entry)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """By the handler's own lock, under which records are emitted too."""
        self.acquire()
        try:
            yield
        finally:
            self.release()


def _is_never_noisy(record: logging.LogRecord) -> bool:
    return (
        record.levelno <= logging.DEBUG
        or record.exc_info is not None
        or record.name == STORY
        or record.name.endswith(_NEVER_NOISY)
    )


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        # A mistake in a log call must not take away what it wanted to say.
        return f"{record.msg} {record.args}"


def _entry(record: logging.LogRecord, message: str) -> Entry:
    return Entry(
        record.created,
        record.levelno,
        record.name,
        f"{record.filename}:{record.lineno}" if record.filename else "",
        message,
        getattr(record, "fields", None) or {},
        _trace(record),
    )


_formatter = logging.Formatter()


def _trace(record: logging.LogRecord) -> str | None:
    if record.exc_info and record.exc_info[0] is not None:
        return _formatter.formatException(record.exc_info)
    return _formatter.formatStack(record.stack_info) if record.stack_info else None
