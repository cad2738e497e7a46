"""Owns the server: starts it, restarts it after crashes, and switches its version."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from cogwork.agent.errors import SwitchFailed
from cogwork.agent.slots.disk import clean_up
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.store import StateStore
from cogwork.agent.supervision.crash_record import CrashRecord
from cogwork.agent.supervision.health import HealthRules, find_fault
from cogwork.agent.supervision.probe import ServerProbe
from cogwork.agent.supervision.server_process import ServerProcess
from cogwork.core.clock import Clock
from cogwork.core.versions.product import Product

_SERVER: Final = Product.SERVER
_MAX_TRIAL_STARTS: Final = 3
"""Maximum number of times that an interrupted trial is restarted. Then the trial fails, because the
version may make the computer hang."""
_FAILED_STOP_TIMEOUT: Final = 20.0
"""Seconds until a failed version is killed. Short, because the machine does not work until then."""

_log = logging.getLogger("agent.supervisor")


class Supervisor:
    def __init__(
        self,
        layout: Layout,
        states: StateStore,
        server: ServerProcess,
        probe: ServerProbe,
        clock: Clock,
        rules: HealthRules,
    ) -> None:
        self._layout = layout
        self._states = states
        self._server = server
        self._probe = probe
        self._clock = clock
        self._rules = rules
        self._crashes = CrashRecord()
        self._lock = asyncio.Lock()
        """Held while the server is started, stopped or on trial."""
        self._wake = asyncio.Event()
        """Set to end the back-off before a restart."""

    @property
    def version(self) -> str | None:
        """The current version."""
        return self._layout.current_version(_SERVER)

    async def run(self) -> None:
        """Keep the server running until this call is cancelled, which does not stop the server."""
        async with self._lock:
            await self._resume_trial()
        while True:
            if self.version is None:
                await self._pause(self._rules.start_timeout)
                continue
            async with self._lock:
                await self._start()
            how = await self._server.wait()
            async with self._lock:
                if self._server.process_id is not None:
                    continue  # `switch` has already started another version
                await self._handle_crash(how)
            await self._pause(self._crashes.delay(self._clock.monotonic()))

    async def switch(self, version: str) -> None:
        """Switch to another version, and wait until its trial ends.

        Raise SwitchFailed if the trial fails; the former version then runs again.
        """
        async with self._lock:
            self._crashes.clear()
            state = self._states[_SERVER]
            former = self.version
            self._states[_SERVER] = state.begin_trial(version, former, self._clock.time())
            await self._replace(version)
            await self._conclude_trial()
        self._wake.set()

    async def stop(self) -> None:
        """Stop the server. Call this method after `run` was cancelled."""
        await self._server.stop()

    async def _resume_trial(self) -> None:
        """Continue a trial that was interrupted."""
        state = self._states[_SERVER]
        if state.trial is None:
            return
        if state.trial.boots >= _MAX_TRIAL_STARTS:
            await self._roll_back("it was interrupted too often while it was on trial")
            return
        self._states[_SERVER] = state.count_boot()
        await self._start()
        try:
            await self._conclude_trial()
        except SwitchFailed as error:
            _log.error("%s", error)

    async def _conclude_trial(self) -> None:
        """Wait until the trial ends. If it fails, roll back and raise SwitchFailed."""
        state = self._states[_SERVER]
        assert state.trial is not None
        version = state.trial.version
        fault = await find_fault(self._server, self._probe, version, self._clock, self._rules)
        if fault is not None:
            await self._roll_back(fault)
            raise SwitchFailed(f"version {version} of the server failed: {fault}")
        self._states[_SERVER] = state = state.accept(version)
        _log.info("version %s of the server works", version)
        removed = await asyncio.to_thread(
            clean_up, self._layout, _SERVER, state.used, self._clock.time()
        )
        for each in removed:
            _log.info("removed version %s of the server", each)

    async def _roll_back(self, reason: str) -> None:
        """Return to the version before the trial, if it exists."""
        state = self._states[_SERVER]
        assert state.trial is not None
        version, fallback = state.trial.version, state.trial.fallback
        self._states[_SERVER] = state.reject(version, reason, self._clock.time())
        if fallback is None:
            _log.error(
                "version %s of the server failed, and no earlier one is installed: %s",
                version,
                reason,
            )
            return
        _log.error(
            "version %s of the server failed, returning to %s: %s", version, fallback, reason
        )
        await self._replace(fallback, _FAILED_STOP_TIMEOUT)

    async def _replace(self, version: str, stop_timeout: float | None = None) -> None:
        """Make the version current, and restart the server with it."""
        await asyncio.to_thread(self._layout.switch, _SERVER, version)
        await self._server.stop(stop_timeout)
        self._probe.forget()
        await self._start()

    async def _start(self) -> None:
        try:
            await self._server.start()
        except OSError as error:
            _log.error("the server cannot be started: %s", error)

    async def _handle_crash(self, how: str) -> None:
        now = self._clock.monotonic()
        self._crashes.add(now)
        _log.warning("the server ended: %s; starting it again", how)
        if not self._crashes.is_loop(now):
            return
        state, version = self._states[_SERVER], self.version
        previous = state.previous
        if version is None or previous in (None, version) or previous in state.failed:
            return  # there is no version to return to, so restart this one
        assert previous is not None
        self._crashes.clear()
        _log.error(
            "version %s of the server crashes repeatedly; returning to %s", version, previous
        )
        rejected = state.reject(version, f"it crashed again and again: {how}", self._clock.time())
        self._states[_SERVER] = rejected.accept(previous)
        await self._replace(previous)

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        woken = asyncio.ensure_future(self._wake.wait())
        try:
            await self._clock.wait({woken}, seconds)
        finally:
            woken.cancel()
