"""The log of the server: who logs at which level, and where the lines go."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from cogwork.config.load import Loaded
from cogwork.config.log_rules import rules_of
from cogwork.config.secrets import without_secrets
from cogwork.core.clock import Clock
from cogwork.logs.console import console_format, descriptor_writer
from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.file import RotatingFile, Rotation
from cogwork.logs.loggers import Loggers
from cogwork.logs.pipeline import Pipeline
from cogwork.logs.ring import Ring
from cogwork.logs.rules import Rules
from cogwork.logs.sink import Sink

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
        show_diffs: bool = False,
    ) -> None:
        """With a file, standard output carries nothing but what is said there on purpose."""
        self.ring = Ring()
        self._debug = debug
        self._console = Sink("console", descriptor_writer(stdout))
        self._file = (
            RotatingFile(file, Rotation(), clock, self._tell_trouble) if file is not None else None
        )
        self._file_sink = Sink("log-file", self._file.write) if self._file is not None else None
        outputs: list[Callable[[Entry], None]] = [self.ring.put]
        if file is None or self._file_sink is None:
            outputs.append(_lines_to(self._console, console_format(stdout, environment)))
        else:
            outputs.append(_lines_to(self._file_sink, _file_format(file)))
        self.pipeline = Pipeline(clock, outputs, self._write_the_rest)
        self.provided: dict[str, str] = {}
        """By the full name of a resource that lives in a module: the module."""
        self._rules = Rules(debug=debug)
        self._loggers = Loggers()
        self._show_diffs = show_diffs
        self._text: str | None = None

    def open(self) -> None:
        # Where it would complain is the same place more often than not.
        logging.raiseExceptions = False
        logging.getLogger().addHandler(self.pipeline)
        self._loggers.take_over()
        self._loggers.apply(self._rules)

    def rules(self) -> Rules:
        return self._rules

    def apply(self, loaded: Loaded) -> None:
        """At once, for loggers that exist and for those that come."""
        config = loaded.checked.config
        self.pipeline.hide(loaded.secrets)
        if self._show_diffs:
            self._show_diff(loaded.text)
        self.pipeline.deduplicate(not config.disable_log_deduplication)
        self._rules = rules_of(config, self.provided, debug=self._debug)
        self._loggers.apply(self._rules)

    def _tell_trouble(self, trouble: str | None) -> None:
        """Where it can still be read: the file is what the trouble is about."""
        self.say(trouble or "the log file is written again")
        _log.warning("%s", trouble or "the log file is written again")

    def _show_diff(self, text: str) -> None:
        shown = without_secrets(text)
        before, self._text = self._text, shown
        if before is not None and before != shown:
            lines = difflib.unified_diff(
                before.splitlines(), shown.splitlines(), "before", "after", lineterm=""
            )
            _log.info("the configuration changed:\n%s", "\n".join(lines))

    def say(self, line: str) -> None:
        """On standard output, wherever the log goes."""
        self._console.put(f"{line}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        logging.getLogger().removeHandler(self.pipeline)
        self._loggers.let_go()
        self.pipeline.close()

    def _write_the_rest(self) -> None:
        for sink in (self._file_sink, self._console):
            if sink is not None:
                sink.close()
        if self._file is not None:
            self._file.close()


def _lines_to(sink: Sink, render: Callable[[Entry], str]) -> Callable[[Entry], None]:
    return lambda entry: sink.put(f"{render(entry)}\n".encode(errors="backslashreplace"))


def _file_format(file: Path) -> Callable[[Entry], str]:
    return as_json if file.suffix in (".json", ".jsonl") else as_text
