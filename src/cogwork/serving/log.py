"""The log of the server: the levels of its loggers, and its outputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from cogwork.config.check.loader import LoadedConfig
from cogwork.config.check.log_rules import build_level_rules
from cogwork.config.text.secrets import secret_variable_values
from cogwork.config.text.text_diff import diff_masked, diff_revealed
from cogwork.core.clock import Clock
from cogwork.logs.console import console_format, descriptor_writer
from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.loggers import LoggerLevels
from cogwork.logs.pipeline import EXTRA_LINES, Pipeline
from cogwork.logs.redactor import Redactor
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.logs.rotating_file import RotatingFile, Rotation
from cogwork.logs.rules import LevelRules
from cogwork.logs.sink import Sink
from cogwork.logs.truncation import truncate

_log = logging.getLogger("rdk.config")


class ServerLog:
    def __init__(
        self,
        clock: Clock,
        stdout: int,
        environment: Mapping[str, str],
        *,
        debug: bool = False,
        file: Path | None = None,
        reveal_diffs: bool = False,
    ) -> None:
        """Set up the outputs.

        With `file`, standard output receives only the lines of `print_line`. With `reveal_diffs`,
        changes of the configuration are logged including secrets.
        """
        self._clock = clock
        self.ring = RingBuffer()
        self.redactor = Redactor()
        self._environment = environment
        self._debug = debug
        self._console = Sink("console", descriptor_writer(stdout))
        self._file = (
            RotatingFile(file, Rotation(), clock, self._report_file_error)
            if file is not None
            else None
        )
        self._file_sink = Sink("log-file", self._file.write) if self._file is not None else None
        self._write_locally = (
            _make_line_writer(self._console, console_format(stdout, environment))
            if file is None or self._file_sink is None
            else _make_line_writer(self._file_sink, _choose_file_format(file))
        )
        """Function that writes an entry to standard output or the log file, but not to clients or
        the cloud."""
        self.uplink: Callable[[Entry], None] | None = None
        """Function that sends an entry to the cloud; None without a cloud."""
        outputs = (self.ring.put, self._write_locally, self._put_uplink)
        self.pipeline = Pipeline(clock, outputs, self._close_sinks, self.redactor)
        self.resource_modules: dict[str, str] = {}
        """The name of the module that provides each resource, by the resource's full name."""
        self._rules = LevelRules(debug=debug)
        self._loggers = LoggerLevels()
        self._reveal_diffs = reveal_diffs
        self._last_text: str | None = None

    def open(self) -> None:
        # Do not let logging report its own errors to stderr, which is usually the output that
        # failed.
        logging.raiseExceptions = False
        logging.getLogger().addHandler(self.pipeline)
        self._loggers.install()
        self._loggers.apply(self._rules)
        if self._reveal_diffs:
            _log.warning(
                "-reveal-sensitive-config-diffs is set: when the configuration changes, its "
                "secrets are written to %s; do not share it, and remove the option when you are "
                "done",
                "standard output" if self._file_sink is None else "the log file",
            )

    def rules(self) -> LevelRules:
        return self._rules

    def level_of(self, logger: str, module: str | None) -> int:
        return self._rules.level_of(logger, module)

    def apply(self, loaded: LoadedConfig) -> None:
        """Apply the log settings of a configuration to existing and future loggers."""
        config = loaded.result.config
        self.redactor.add_secrets(
            {*loaded.secrets, *secret_variable_values(loaded.text, self._environment)}
        )
        self.pipeline.set_deduplication(not config.disable_log_deduplication)
        self._rules = build_level_rules(config, self.resource_modules, debug=self._debug)
        self._loggers.apply(self._rules)
        self._log_diff(loaded.text)

    def _report_file_error(self, error: str | None) -> None:
        """Report an error of the log file on standard output too, because the file cannot show
        it."""
        message = error or "the log file is writable again"
        self.print_line(message)
        _log.warning("%s", message)

    def _log_diff(self, text: str) -> None:
        before, self._last_text = self._last_text, text
        if before is None or before == text:
            return
        message = "the configuration changed"
        if self._reveal_diffs:
            # Bypass the pipeline: it would redact the secrets, and would store the entry for
            # clients.
            diff = truncate(diff_revealed(before, text))
            now = self._clock.time()
            self._write_locally(
                Entry(now, logging.INFO, _log.name, "", f"{message} (with secrets)", trace=diff)
            )
        elif _log.isEnabledFor(logging.DEBUG):
            diff = diff_masked(before, text, self.redactor.redact)
            _log.debug(message, extra={EXTRA_LINES: diff})

    def print_line(self, line: str) -> None:
        """Print a line on standard output, even if the log goes to a file."""
        self._console.put(f"{line}\n".encode(errors="backslashreplace"))

    def _put_uplink(self, entry: Entry) -> None:
        if (uplink := self.uplink) is not None:
            uplink(entry)

    def close(self) -> None:
        logging.getLogger().removeHandler(self.pipeline)
        self._loggers.uninstall()
        self.pipeline.close()

    def _close_sinks(self) -> None:
        for sink in (self._file_sink, self._console):
            if sink is not None:
                sink.close()
        if self._file is not None:
            self._file.close()


def _make_line_writer(sink: Sink, render: Callable[[Entry], str]) -> Callable[[Entry], None]:
    return lambda entry: sink.put(f"{render(entry)}\n".encode(errors="backslashreplace"))


def _choose_file_format(file: Path) -> Callable[[Entry], str]:
    return as_json if file.suffix in (".json", ".jsonl") else as_text
