"""The log pipeline: redacts, truncates and deduplicates records, and passes them to the outputs.

Log calls never wait for an output.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cogwork.core.clock import Clock
from cogwork.logs.dedup import WINDOW, Dedup, RepeatSummary
from cogwork.logs.entry import Entry
from cogwork.logs.fields import limit_fields
from cogwork.logs.logger_names import MODULE_LOGGER_PREFIX, PROCESS_LOGGER_PREFIX
from cogwork.logs.redactor import Redactor
from cogwork.logs.truncation import NAME_LIMIT, truncate

Output = Callable[[Entry], None]
"""A function that accepts an entry without blocking."""

ACTIVITY_LOGGER = "rdk.activity"
"""Logger of machine-wide events, which are never suppressed."""
EXTRA_LINES = "lines"
"""Key in the `extra` of a log call for additional text. Unlike a message, this text keeps its line
breaks."""
_PROGRAM_PREFIXES = (MODULE_LOGGER_PREFIX, PROCESS_LOGGER_PREFIX)
_EXEMPT_SUFFIX = ".StdErr"
"""Messages of a module or a process are never deduplicated if its logger has this suffix."""
_EXCERPT_LENGTH = 256
"""Number of characters to keep from a message, to report its repeats."""


class MessageKey(NamedTuple):
    """The identity of a message: messages with equal keys are repeats."""

    logger: str
    level: int
    excerpt: str
    digest: bytes
    """Digest of the whole message if the message is longer than the excerpt."""


class Pipeline(logging.Handler):
    def __init__(
        self,
        clock: Clock,
        outputs: Iterable[Output],
        on_close: Callable[[], None] = lambda: None,
        redactor: Redactor | None = None,
    ) -> None:
        """Create a pipeline. `on_close` flushes the outputs."""
        super().__init__()
        self._on_close = on_close
        self._clock = clock
        self._outputs = tuple(outputs)
        self._dedup: Dedup[MessageKey] | None = _make_dedup()
        self._redact = (redactor or Redactor()).redact

    def set_deduplication(self, wanted: bool) -> None:
        with self._locked():
            if wanted and self._dedup is None:
                self._dedup = _make_dedup()
            elif not wanted and self._dedup is not None:
                self._emit_summaries(self._dedup.close())
                self._dedup = None

    def emit(self, record: logging.LogRecord) -> None:
        entry = make_entry(record, self._redact)
        if self._dedup is None or _is_exempt(record):
            self._emit_entry(entry)
            return
        key = _make_key(entry)
        verdict = self._dedup.decide(key, self._clock.monotonic())
        if verdict.suppressed:
            self._emit_summary(RepeatSummary(key, verdict.suppressed))
        if verdict.should_print:
            self._emit_entry(entry)
        elif verdict.is_first_suppressed:
            self._emit_notice(key, f"repeated; suppressing for {WINDOW:g}s: {key.excerpt}")
        while (evicted := self._dedup.evict_oldest()) is not None:
            if evicted.suppressed:
                self._emit_summary(evicted)

    async def flush_periodically(self) -> None:
        """Report suppressed messages that have stopped repeating. Run until cancelled."""
        while True:
            await self._clock.sleep(1.0)
            self.flush_due()

    def flush_due(self) -> None:
        with self._locked():
            if self._dedup is not None:
                self._emit_summaries(self._dedup.take_due(self._clock.monotonic()))

    def close(self) -> None:
        with self._locked():
            if self._dedup is not None:
                self._emit_summaries(self._dedup.close())
        self._on_close()
        super().close()

    def _emit_summaries(self, summaries: Iterable[RepeatSummary[MessageKey]]) -> None:
        for summary in tuple(summaries):
            self._emit_summary(summary)

    def _emit_summary(self, summary: RepeatSummary[MessageKey]) -> None:
        repeats = "1 repeat" if summary.suppressed == 1 else f"{summary.suppressed} repeats"
        self._emit_notice(summary.key, f"suppressed {repeats} of: {summary.key.excerpt}")

    def _emit_notice(self, key: MessageKey, message: str) -> None:
        self._emit_entry(Entry(self._clock.time(), key.level, key.logger, "dedup", message))

    def _emit_entry(self, entry: Entry) -> None:
        for output in self._outputs:
            output(entry)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the handler. Records are also emitted under this lock."""
        self.acquire()
        try:
            yield
        finally:
            self.release()


def _is_exempt(record: logging.LogRecord) -> bool:
    return (
        record.levelno <= logging.DEBUG
        or record.exc_info is not None
        or record.name == ACTIVITY_LOGGER
        or (record.name.startswith(_PROGRAM_PREFIXES) and record.name.endswith(_EXEMPT_SUFFIX))
    )


def _format_message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        # Invalid arguments in a log call must not prevent the message from being logged.
        return f"{record.msg} {record.args}"


def make_entry(record: logging.LogRecord, redact: Callable[[str], str]) -> Entry:
    """Convert a record to an entry, with all texts redacted and truncated."""
    place = f"{record.filename}:{record.lineno}" if record.lineno else record.filename or ""
    trace = _format_trace(record)
    return Entry(
        record.created,
        record.levelno,
        truncate(record.name, redact, NAME_LIMIT),
        truncate(place, redact, NAME_LIMIT),
        truncate(_format_message(record), redact),
        limit_fields(getattr(record, "fields", None) or {}, redact),
        truncate(trace, redact) if trace else None,
    )


def _make_dedup() -> Dedup[MessageKey]:
    return Dedup(size_of=_size_of)


def _make_key(entry: Entry) -> MessageKey:
    message = entry.message
    if entry.fields:
        fields = json.dumps(entry.fields, ensure_ascii=False, default=str)
        message = f"{message} {fields}" if message else fields
    if len(message) <= _EXCERPT_LENGTH:
        return MessageKey(entry.logger, entry.level, message, b"")
    digest = hashlib.blake2b(message.encode(errors="surrogatepass"), digest_size=16).digest()
    return MessageKey(entry.logger, entry.level, f"{message[:_EXCERPT_LENGTH]}…", digest)


def _size_of(key: MessageKey) -> int:
    return sum(map(sys.getsizeof, key))


_formatter = logging.Formatter()


def _format_trace(record: logging.LogRecord) -> str | None:
    parts = [str(lines)] if (lines := getattr(record, EXTRA_LINES, None)) else []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append(_formatter.formatException(record.exc_info))
    elif record.stack_info:
        parts.append(_formatter.formatStack(record.stack_info))
    return "\n".join(parts) or None
