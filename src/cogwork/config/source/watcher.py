"""Watch a configuration source: load each candidate, apply it and report the verdict."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from cogwork.config.check import diagnostic_format
from cogwork.config.check.diagnostic_collector import CheckCancelled
from cogwork.config.check.diagnostics import Diagnostic, Effect
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import (
    LoadedConfig,
    load,
    load_unreadable,
    load_value,
)
from cogwork.config.schema import codes
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.source.config_report import (
    MAX_REPORTED,
    ConfigReport,
    ConfigState,
    RunningConfig,
)
from cogwork.config.source.last_good import DamagedCopy, LastGood
from cogwork.config.source.sources import (
    RETRY,
    ConfigCandidate,
    ConfigRefused,
    ConfigSource,
    Verdict,
)
from cogwork.config.text.file import Unreadable
from cogwork.config.text.positions import Json, format_pointer
from cogwork.core.backoff import Backoff
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import write_reason
from cogwork.core.shield import await_shielded
from cogwork.core.workers import TooMuchWork, Workers, await_future, run_in_thread
from cogwork.graph.reconciler import Applied, Outcome, Superseded
from cogwork.logs.pipeline import EXTRA_LINES

Apply = Callable[[LoadedConfig, asyncio.Future[Verdict]], asyncio.Future[Outcome]]
"""Starts to apply a configuration immediately. It supersedes a configuration that is still being
applied. The verdict is done later than the outcome: when the configuration is also stored."""
PublishReport = Callable[[ConfigReport], None]

_STORE_TIMEOUT = 10.0
"""Seconds to store a configuration as the last good one, or in the history."""

_log = logging.getLogger("rdk.config")


class ProtectionMissing(CogworkError):
    """The file requires a login that is not possible, and the last good configuration requires no
    login."""


class ConfigWatcher:
    def __init__(
        self,
        source: ConfigSource,
        context: LoadContext,
        apply: Apply,
        last_good: LastGood | None = None,
        clock: Clock | None = None,
        publish: PublishReport = lambda _report: None,
        history: ConfigHistory | None = None,
    ) -> None:
        """`publish` is called with a report on each version of the configuration."""
        self._source = source
        self._context = context
        self._apply = apply
        self._last_good = last_good
        self._history = history
        self._store_lock = asyncio.Lock()
        """Keeps the order in which configurations were applied when they are stored."""
        self._newest: ConfigCandidate | None = None
        """The configuration that was applied last. Earlier ones need not be stored any more."""
        self._history_lock = asyncio.Lock()
        """The same for the history."""
        self._applying: set[asyncio.Task[None]] = set()
        self._clock = clock or SystemClock()
        # Two threads, so that the next check does not wait for a superseded one that is still
        # running.
        self._thread = Workers("config", threads=2)
        # One thread, so that a save that hangs is never completed after a later one.
        self._storing = Workers("last-good")
        self._has_loaded_first = False
        self._first: tuple[ConfigCandidate, LoadedConfig] | None = None
        self._publish = publish
        self._report: ConfigReport | None = None

    async def run(self) -> None:
        """Load and apply configurations until cancelled."""
        following: asyncio.Task[ConfigCandidate] | None = None
        try:
            await self.load_first()
            if self._first is not None:
                self._start_applying(*self._first)
                if self._report is None:
                    self._publish_report(*self._first, RunningConfig.THIS)
            while True:
                candidate = await (following or self._source.next())
                following = asyncio.create_task(self._source.next(), name="next configuration")
                await self._process(candidate, following)
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            await self.aclose()

    async def load_first(self) -> LoadedConfig | None:
        """Load the first configuration, so that its addresses are known before anything is built.

        Return None if there is no usable configuration; `run` still watches for later ones. Raise
        ProtectionMissing if the file asks for a login that cannot be provided and the last good
        configuration does not require a login.
        """
        if not self._has_loaded_first:
            self._has_loaded_first = True
            candidate = await self._source.next()
            loaded = await self._load_once(candidate)
            if loaded.is_refused:
                candidate.decide(ConfigRefused(loaded.diagnostics))
                _require_protection(loaded)
                self._first = await self._load_last_good(candidate)
                _require_login(loaded, self._first[1] if self._first is not None else None)
                running = RunningConfig.NONE if self._first is None else RunningConfig.LAST_GOOD
                self._publish_report(candidate, loaded, running)
            else:
                self._first = candidate, loaded
        return self._first[1] if self._first is not None else None

    async def _process(
        self, candidate: ConfigCandidate, following: asyncio.Task[ConfigCandidate]
    ) -> None:
        """Check the candidate and apply it, unless a newer one arrives during the check."""
        check = asyncio.create_task(self._load_with_retry(candidate), name="check configuration")
        try:
            await asyncio.wait({check, following}, return_when=asyncio.FIRST_COMPLETED)
            if not check.done():
                candidate.decide(Superseded(""))
                _log.info("skipping a configuration: a newer one arrived during the check")
                return
            loaded = check.result()
        finally:
            check.cancel()
            await asyncio.gather(check, return_exceptions=True)
        running = RunningConfig.THIS
        if loaded.is_refused:
            candidate.decide(ConfigRefused(loaded.diagnostics))
            _log.error("the changed configuration is refused; keeping the current configuration")
            before = self._report.running if self._report is not None else RunningConfig.NONE
            running = RunningConfig.EARLIER if before is RunningConfig.THIS else before
        else:
            self._start_applying(candidate, loaded)
        self._publish_report(candidate, loaded, running)

    def _publish_report(
        self, candidate: ConfigCandidate, loaded: LoadedConfig, running: RunningConfig
    ) -> None:
        self._report = _build_report(
            candidate.file, loaded, running, self._clock.time(), self._report
        )
        self._publish(self._report)

    async def _load_with_retry(self, candidate: ConfigCandidate) -> LoadedConfig:
        """Load a candidate; retry while memory or threads are exhausted."""
        backoff = Backoff(RETRY)
        while True:
            try:
                return await self._load(candidate)
            except (MemoryError, TooMuchWork) as error:
                if not backoff.failures:
                    _log.error(
                        "cannot check %s: %s; keeping the current configuration and retrying",
                        candidate.file or "the changed configuration",
                        str(error) or "not enough memory",
                    )
            await self._clock.sleep(backoff.next_delay())

    async def _load_last_good(
        self, refused: ConfigCandidate
    ) -> tuple[ConfigCandidate, LoadedConfig] | None:
        file = refused.file
        try:
            text = await self._thread.run(self._last_good.read) if self._last_good else None
        except DamagedCopy as error:
            _log.error("%s", error)
            text = None
        if text is None:
            _log.error(
                "there is no earlier configuration to run: fix %s; it reloads automatically",
                file or "the configuration",
            )
            return None
        candidate = ConfigCandidate(text, directory=refused.directory)
        loaded = await self._load_once(candidate)
        if loaded.is_refused:
            _log.error(
                "the last good configuration cannot be used either: "
                "fix %s; it reloads automatically",
                file or "the configuration",
            )
            return None
        _log.error(
            "RUNNING THE LAST GOOD CONFIGURATION because %s cannot be used: "
            "fix the file; it reloads automatically",
            file or "the current one",
        )
        return candidate, loaded

    def _start_applying(self, candidate: ConfigCandidate, loaded: LoadedConfig) -> None:
        try:
            outcome = self._apply(loaded, candidate.verdict)
        except Exception as error:
            _log.exception("applying the configuration failed")
            candidate.fail(error)
            return
        task = asyncio.get_running_loop().create_task(
            self._await_outcome(candidate, loaded, outcome)
        )
        self._applying.add(task)
        task.add_done_callback(self._applying.discard)

    async def _await_outcome(
        self, candidate: ConfigCandidate, loaded: LoadedConfig, outcome: asyncio.Future[Outcome]
    ) -> None:
        try:
            verdict = await outcome
        except asyncio.CancelledError:
            candidate.decide(Superseded(""))
            raise
        except Exception as error:
            _log.exception("applying the configuration failed")
            candidate.fail(error)
            return
        try:
            if isinstance(verdict, Applied):
                self._newest = candidate
                # Finish storing it even if the server stops: the next start must not run an earlier
                # configuration.
                await await_shielded(self._store(candidate, loaded))
        finally:
            candidate.decide(verdict)
        if isinstance(verdict, Applied) and self._history is not None and loaded.text:
            await self._record(self._history, loaded.text, verdict.revision)

    async def _store(self, candidate: ConfigCandidate, loaded: LoadedConfig) -> None:
        async with self._store_lock:
            if candidate is not self._newest:
                return
            if candidate.store is not None:
                await candidate.store()
            if self._last_good is not None:
                await self._save_last_good(
                    self._last_good, loaded.text or json.dumps(candidate.content)
                )

    async def _save_last_good(self, last_good: LastGood, text: str) -> None:
        try:
            async with asyncio.timeout(_STORE_TIMEOUT):
                await await_future(self._storing.submit(last_good.save, text))
        except TimeoutError:
            _log.warning("the disk is too slow to store the last good configuration")
        except (OSError, ValueError, TooMuchWork) as error:
            _log.warning("cannot store the last good configuration: %s", write_reason(error))

    async def _record(self, history: ConfigHistory, text: str, revision: str) -> None:
        now = self._clock.time()
        try:
            async with self._history_lock:
                await run_in_thread(
                    "config-history", _STORE_TIMEOUT, history.record, text, revision, now
                )
        except TimeoutError:
            _log.warning("the disk is too slow to store the configuration in the history")
        except (OSError, ValueError, MemoryError, TooMuchWork) as error:
            _log.warning("cannot store the configuration in the history: %s", write_reason(error))

    async def aclose(self) -> None:
        """Close a watcher that was never run. Cancel `run` to close any other watcher."""
        for task in self._applying:
            task.cancel()
        await asyncio.gather(*self._applying, return_exceptions=True)
        await self._source.aclose()
        self._thread.close()
        self._storing.close()

    async def _load_once(self, candidate: ConfigCandidate) -> LoadedConfig:
        try:
            return await self._load(candidate)
        except MemoryError:
            return load_unreadable(Unreadable("not enough memory to check the configuration"))

    async def _load(self, candidate: ConfigCandidate) -> LoadedConfig:
        """Load a candidate in a thread and log its faults. Raise MemoryError and TooMuchWork."""
        cancelled = threading.Event()
        try:
            result = await self._thread.run(
                _load_and_format, candidate, self._context, cancelled.is_set
            )
        finally:
            # Ask the thread to stop, because a thread cannot be cancelled, and would delay the
            # exit.
            cancelled.set()
        for level, text in result.log_lines:
            message, _, excerpt = text.partition("\n")
            _log.log(level, "%s", message, extra={EXTRA_LINES: excerpt})
        return result.loaded


class _LoadResult(NamedTuple):
    loaded: LoadedConfig
    log_lines: list[tuple[int, str]]
    """The log level and the text of each fault."""


def _load_and_format(
    candidate: ConfigCandidate, context: LoadContext, is_cancelled: Callable[[], bool]
) -> _LoadResult:
    context = replace(context, directory=candidate.directory)
    loaded = load_content(candidate.content, context, is_cancelled)
    log_lines = [
        (_log_level(fault.diagnostic), diagnostic_format.as_text(fault, candidate.file))
        for fault in loaded.diagnostics
    ]
    return _LoadResult(loaded, log_lines)


def _build_report(
    file: str | None,
    loaded: LoadedConfig,
    running: RunningConfig,
    now: float,
    before: ConfigReport | None,
) -> ConfigReport:
    if loaded.is_refused:
        state = ConfigState.REFUSED
    else:
        state = ConfigState.FAULTY if loaded.has_errors else ConfigState.VALID
    found = [
        fault for fault in loaded.diagnostics if fault.diagnostic.code is not codes.MORE_FAULTS
    ]
    errors = sum(fault.diagnostic.code.severity is codes.Severity.ERROR for fault in found)
    first = sorted(found, key=lambda fault: fault.diagnostic.rank)[:MAX_REPORTED]
    return ConfigReport(
        file,
        state,
        running,
        before.since if before is not None and before.state is state else now,
        errors,
        len(found) - errors,
        tuple(diagnostic_format.as_reported(first, loaded.result, file)),
    )


def _log_level(found: Diagnostic) -> int:
    return logging.ERROR if found.code.severity is codes.Severity.ERROR else logging.WARNING


def _require_protection(loaded: LoadedConfig) -> None:
    for fault in loaded.diagnostics:
        found = fault.diagnostic
        if found.code is codes.INCOMPLETE_PROTECTION:
            raise ProtectionMissing(f"refusing to start: {found.message}; {found.hint}")


def _require_login(refused: LoadedConfig, instead: LoadedConfig | None) -> None:
    """Raise ProtectionMissing if the `auth` section of the refused file has a mistake, and the
    configuration used instead, if any, requires no login."""
    if instead is not None and instead.result.config.auth.is_configured:
        return
    for fault in refused.diagnostics:
        found = fault.diagnostic
        if found.effect is Effect.REFUSED and found.location.pointer[:1] == ("auth",):
            raise ProtectionMissing(
                f"refusing to start without the login that the file requires: {found.message}"
                f" (at {format_pointer(found.location.pointer)}); fix the file"
            )


def load_content(
    content: str | dict[str, Json] | Unreadable,
    context: LoadContext,
    is_cancelled: Callable[[], bool],
) -> LoadedConfig:
    """Load a candidate, and catch every error of a plug-in. Raise MemoryError and
    CheckCancelled."""
    if isinstance(content, Unreadable):
        return load_unreadable(content)
    try:
        if isinstance(content, str):
            return load(content, context, is_cancelled)
        return load_value(content, context, is_cancelled)
    except (MemoryError, CheckCancelled):
        raise
    except (Exception, SystemExit) as error:
        # Refuse the configuration: a bug, here or in a plug-in, must not stop a running machine.
        _log.critical("checking a configuration failed", exc_info=error)
        return load_unreadable(Unreadable(f"checking it failed with {type(error).__name__}"))
