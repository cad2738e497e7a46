"""A configured process: started, restarted after an exit, and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Mapping

from cogwork.config.schema.process import ProcessConfig
from cogwork.core.shield import await_shielded
from cogwork.core.signals import parse_signal
from cogwork.logs.logger_names import PROCESS_LOGGER_PREFIX
from cogwork.logs.pipeline import EXTRA_LINES
from cogwork.processes.context import ProcessContext
from cogwork.processes.launch_spec import make_launch_spec
from cogwork.robot.hosts import ProcessState as State
from cogwork.robot.hosts import ProcessStatus
from cogwork.subprocesses.last_failure import LastFailure
from cogwork.subprocesses.output import OutputStream
from cogwork.subprocesses.output_log import OutputLog
from cogwork.subprocesses.process import CannotStop, Child, ExitStatus, StopTimeouts
from cogwork.subprocesses.run_errors import failing_on_errors

_GROUP_DELAY = 1 / 3
"""The share of the stop timeout after which the whole process group receives the signal."""


class SupervisedProcess:
    def __init__(self, config: ProcessConfig, context: ProcessContext) -> None:
        self.config = config
        self.was_killed = False
        """Whether the process did not end in time at the last stop."""
        self._context = context
        self._state = State.PENDING
        self._since = context.clock.time()
        self._failure = LastFailure(context.retry, context.redact)
        self._starts = 0
        self._pid: int | None = None
        self._child: Child | None = None
        self._run_task: asyncio.Task[None] | None = None
        self._log = logging.getLogger(f"{PROCESS_LOGGER_PREFIX}{config.id}")
        self._output = OutputLog(self._log)

    @property
    def id(self) -> str:
        return self.config.id

    @property
    def status(self) -> ProcessStatus:
        restarts = max(0, self._starts - 1)
        error = self._failure.text if self._state is State.UNHEALTHY else ""
        return ProcessStatus(self.id, self._state, self._since, error, restarts, self._pid)

    def start(self) -> None:
        self._run_task = asyncio.get_running_loop().create_task(
            self._run(), name=f"process {self.id}"
        )

    async def stop(self) -> None:
        self._set_state(State.STOPPING)
        if self._run_task is not None:
            self._run_task.cancel()
            await asyncio.gather(self._run_task, return_exceptions=True)

    async def kill(self) -> None:
        """Kill the process, even if it is being stopped and has time left."""
        if self._child is not None:
            # Ignore the error here: `_end` logs that the process survives.
            with contextlib.suppress(CannotStop):
                await self._child.kill()

    async def _run(self) -> None:
        while True:
            with failing_on_errors(f"process {self.id}", self._fail, self._log):
                self._on_exit(await self._run_once())
            if self._failure.retry_delay is None:
                return
            await self._context.clock.sleep(self._failure.retry_delay)

    async def _run_once(self) -> ExitStatus:
        """Start the process, and wait until it and all of its descendants have ended."""
        launch = await make_launch_spec(self.config, self._context)
        child = await Child.start(launch, self._log_output, self._context.programs)
        started = self._context.clock.monotonic()
        self._on_start(child)
        try:
            status = await asyncio.shield(child.exited)
        finally:
            self._pid = None
            await await_shielded(self._end(child))
            self._child = None
        self._failure.count_run(self._context.clock.monotonic() - started)
        return status

    def _on_start(self, child: Child) -> None:
        self._child, self._pid = child, child.pid
        self._starts += 1
        self._failure.retry_delay = None
        self._set_state(State.RUNNING)
        self._log.info("process %s started with PID %d", self.id, child.pid)
        for warning in child.warnings:
            self._log.warning("%s", warning)
        self._record("started", {"pid": child.pid})

    async def _end(self, child: Child) -> None:
        """End the process, unless it has exited by itself, and its descendants."""
        seconds, number = self.config.stop_timeout, parse_signal(self.config.stop_signal)
        timeouts = StopTimeouts(seconds * _GROUP_DELAY, seconds * (1 - _GROUP_DELAY))
        was_running = not child.exited.done()
        try:
            status = await child.stop(timeouts, number)
        except CannotStop as error:
            self._log.error("%s", error)
            self.was_killed = True
            return
        if was_running and status.code == -signal.SIGKILL != -number:
            self.was_killed = True
            self._log.warning("process %s did not stop in time and was killed", self.id)

    def _on_exit(self, status: ExitStatus) -> None:
        if self.config.one_shot and status.code == 0:
            self._set_state(State.FINISHED)
            self._log.info("process %s finished", self.id)
            self._record("finished", {})
            return
        self._fail(status.description, status, can_retry=not self.config.one_shot)

    def _fail(self, why: str, status: ExitStatus | None = None, *, can_retry: bool = True) -> None:
        failure = self._failure
        failure.record(why, status.last_lines if status is not None else (), can_retry=can_retry)
        self._set_state(State.UNHEALTHY)
        # Do not repeat output that was already logged.
        shown = () if self.config.log else failure.last_lines
        self._log.log(
            logging.WARNING if status is not None and status.code == 0 else logging.ERROR,
            "process %s %s",
            *(self.id, failure.sentence),
            extra={EXTRA_LINES: "\n".join(shown)} if shown else None,
        )
        self._record("failed", failure.details)

    def _log_output(self, stream: OutputStream, line: str) -> None:
        if self.config.log:
            self._output.write(stream, line)

    def _record(self, state: str, details: Mapping[str, object]) -> None:
        self._context.record_event("process", {"process": self.id, "state": state, **details})

    def _set_state(self, state: State) -> None:
        if self._state is not State.STOPPING:
            self._state = state
            self._since = self._context.clock.time()
