"""A child process: starts it, reads its output, and ends it with all of its descendants."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cogwork.core.errors import CogworkError
from cogwork.core.signals import signal_name
from cogwork.subprocesses import executable_check, orphans
from cogwork.subprocesses.executable_check import CannotStart
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.limits import Confinement, ProcessLimits, confine, find_delegated_cgroup
from cogwork.subprocesses.orphans import MARK_VARIABLE
from cogwork.subprocesses.output import OutputStream, PipeReader
from cogwork.subprocesses.user_account import UserAccount, switch_user_command

_CHECK_TIMEOUT = 10.0
"""Timeout in seconds for reading the program from the disk."""
_POLL_INTERVAL = 0.02
"""Seconds between two checks of a process on kernels without pidfd_open (before 5.3)."""
_KILL_TIMEOUT = 5.0
"""Timeout in seconds for killed processes to exit, which only a device or a disk can delay."""
_KILL_MARGIN = 1.0
_MAX_PAUSE = 0.05
_REAP_INTERVAL = 30.0

OnLine = Callable[[OutputStream, str], None]


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    argv: tuple[str, ...]
    """The absolute path of the program, and its arguments."""
    environment: Mapping[str, str]
    """The complete environment, without the mark."""
    directory: Path
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    account: UserAccount | None = None
    """The user to run the program as; None for the user of the server."""


@dataclass(frozen=True, slots=True)
class StopTimeouts:
    """The duration of each step of stopping, in seconds."""

    process: float = 3.0
    """From the signal for the process to the signal for its group."""
    group: float = 3.0
    """From the signal for the group to SIGKILL."""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """The result of a process that has ended."""

    code: int
    """The exit code; if negative, the signal that killed it."""
    last_lines: tuple[str, ...] = ()
    """The last lines of stderr, or of stdout if stderr is empty."""
    exceeded_limit: str = ""
    """The limit that the process probably exceeded; empty if none."""
    error_line: str = ""
    """The output line that explains the exit; empty if none was found."""

    @property
    def description(self) -> str:
        """A predicate that follows the name of the process, such as `was killed by SIGSEGV`."""
        if self.code < 0:
            text = f"was killed by {signal_name(-self.code)}"
        else:
            text = f"exited with code {self.code}"
        if self.exceeded_limit:
            text += f": {self.exceeded_limit}"
        if not self.last_lines:
            return text
        last = self.last_lines[-1]
        if self.code == 0 or self.error_line in ("", last):
            return f"{text} (last line: {last})"
        return f"{text} (error: {self.error_line})"


class CannotStop(CogworkError):
    """A process survives SIGKILL."""

    status = "DEADLINE_EXCEEDED"


class Child:
    """A child process. Always call `stop`, even if the process has exited by itself.

    Configurable timeouts use the given clock; waits for the kernel use real time.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        confinement: Confinement,
        mark: str,
        on_line: OnLine,
        host: ProgramHost,
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.pid = process.pid
        self.exited: asyncio.Future[ExitStatus] = asyncio.get_running_loop().create_future()
        """Done when the process itself has exited. Its descendants may still run."""
        self.warnings = confinement.warnings
        """Warnings about limits that cannot be enforced here."""
        self._process = process
        self._confinement = confinement
        self._mark = mark
        self._host = host
        self._clock = host.clock
        if host.reaper is not None:
            host.reaper.watch(self.pid)
        self._out, self._err = (
            PipeReader(pipe, functools.partial(on_line, stream), host.clock, host.output_budget)
            for pipe, stream in (
                (process.stdout, OutputStream.STDOUT),
                (process.stderr, OutputStream.STDERR),
            )
        )
        self._is_graceful = False
        """Whether descendants that outlive the process get time to end by themselves."""
        self._group_gone = False
        """Whether the group is empty, so that its number may be reused."""
        self._survived = False
        self._stopping: asyncio.Task[None] | None = None
        self._end_task = asyncio.create_task(self._supervise(), name=f"child {self.pid}")

    @classmethod
    async def start(cls, launch: LaunchSpec, on_line: OnLine, host: ProgramHost) -> Self:
        """Start the process. Raise CannotStart or CannotLimit."""
        await _check_executable(launch, host)
        mark = f"{orphans.process_identity(os.getpid())}.{secrets.token_hex(8)}"
        confinement = _confine(launch, mark)
        try:
            process = _spawn(launch, confinement.argv, mark)
        except BaseException:
            if confinement.cgroup is not None:
                confinement.cgroup.remove()
            raise
        return cls(process, confinement, mark, on_line, host)

    async def stop(
        self,
        timeouts: StopTimeouts = StopTimeouts(),  # noqa: B008 - it is frozen
        number: int = signal.SIGTERM,
    ) -> ExitStatus:
        """Stop the process and all of its descendants, and return its exit status.

        `number`: the signal that requests the stop. Repeated calls wait for the first one, and
        their arguments are ignored.
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(
                self._stop(timeouts, number), name=f"stop {self.pid}"
            )
        await asyncio.shield(self._stopping)
        return self.exited.result()

    async def kill(self) -> None:
        """Kill the whole group immediately. Raise CannotStop."""
        self._is_graceful = False
        self._signal_group(signal.SIGKILL)
        await asyncio.wait({self._end_task}, timeout=_KILL_TIMEOUT + _KILL_MARGIN)
        if self._survived or not self._end_task.done():
            raise CannotStop(
                f"process {self.pid}, or one that it started, survives SIGKILL: it waits for a "
                "device or a disk, or runs as another user; end it manually, or restart the "
                "computer"
            )

    async def _stop(self, timeouts: StopTimeouts, number: int) -> None:
        if self._is_running():
            self._is_graceful = True
            orphans.signal_process(self.pid, number)
            # Resume a suspended process, which would not handle any other signal.
            self._signal_group(signal.SIGCONT)
            await self._clock.wait({self.exited}, timeouts.process)
        if self._is_graceful and not self._group_gone:
            self._signal_group(number)
            self._signal_group(signal.SIGCONT)
            await self._clock.wait({self._end_task}, timeouts.group)
        await self.kill()

    async def _supervise(self) -> None:
        """Wait until the process exits, then end its descendants."""
        try:
            code = await self._wait_exit_code()
            await self._drain()
            lines = self._err.last_lines or self._out.last_lines
            limit = self._confinement.find_exceeded_limit(lines) if code else ""
            error = self._err.error_line or self._out.error_line
            self.exited.set_result(ExitStatus(code, lines, limit, error))
            self._survived = not await self._kill_descendants()
            await self._drain()
            if self._host.reaper is not None and self._group_gone:
                self._host.reaper.forget(self.pid)
            await self._host.reap_orphans()
        finally:
            self._abandon()

    async def _drain(self) -> None:
        for reader in (self._out, self._err):
            await reader.drain()
            # During a graceful stop, keep reading: descendants may still write output while they
            # end.
            if not self._is_graceful:
                reader.close()

    async def _wait_exit_code(self) -> int:
        watcher = _ExitWatcher(self.pid, self._reap)
        try:
            await self._clock.wait({watcher.code}, _REAP_INTERVAL)
            while not watcher.code.done():
                await self._host.reap_orphans()
                await self._clock.wait({watcher.code}, _REAP_INTERVAL)
        finally:
            watcher.close()
        return watcher.code.result()

    def _reap(self) -> int:
        if not self._is_graceful:
            # Signal the group before reaping the process: until then, the group's number cannot be
            # reused.
            self._signal_group(signal.SIGKILL)
        return self._process.wait()

    def _is_running(self) -> bool:
        return self._process.returncode is None

    async def _kill_descendants(self) -> bool:
        """Kill all descendants, inside and outside the group. Return whether all have ended."""
        strays: set[int] = set()
        until, pause = time.monotonic() + _KILL_TIMEOUT, 0.001
        while self._is_graceful or time.monotonic() < until:
            if not self._group_gone:
                orphans.reap_group(self.pid)
            self._signal_group(0 if self._is_graceful else signal.SIGKILL)
            if self._group_gone or not self._is_graceful:
                # When a stray ends, its children are adopted, and the next round finds them.
                strays |= await self._find_strays()
                if not strays and self._group_gone and self._remove_cgroup():
                    return True
                strays = {pid for pid in strays if not orphans.reap(pid)}
                for pid in strays:
                    orphans.signal_process(pid, signal.SIGKILL)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
            if self._is_graceful:
                until = time.monotonic() + _KILL_TIMEOUT
        return False

    async def _find_strays(self) -> set[int]:
        if not orphans.is_adopting_orphans():
            return set()
        name = f"strays of {self.pid}"
        try:
            return await self._host.run_in_thread(
                name, _KILL_TIMEOUT, orphans.find_strays, self.pid, self._mark
            )
        except TimeoutError:
            return set()

    def _remove_cgroup(self) -> bool:
        group = self._confinement.cgroup
        if group is None or group.remove():
            return True
        group.kill()
        return False

    def _signal_group(self, number: int) -> None:
        if self._group_gone:
            return
        left = orphans.signal_group(self.pid, number)
        self._group_gone = not left and not self._is_running()

    def _abandon(self) -> None:
        """Release everything. Kill the process if the task was cancelled without a call of
        `stop`."""
        self._signal_group(signal.SIGKILL)
        self._out.close()
        self._err.close()
        if not self.exited.done():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_MAX_PAUSE)
            self.exited.cancel()


class _ExitWatcher:
    """Reaps a process as soon as it has exited, instead of one loop iteration later."""

    def __init__(self, pid: int, reap: Callable[[], int]) -> None:
        self._pid = pid
        self._reap = reap
        self._loop = asyncio.get_running_loop()
        self.code: asyncio.Future[int] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._descriptor = -1
        try:
            self._descriptor = os.pidfd_open(pid)
        except (OSError, AttributeError):
            self._poll()
        else:
            self._loop.add_reader(self._descriptor, self._on_exit)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        if self._timer is not None:
            self._timer.cancel()

    def _poll(self) -> None:
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._on_exit()
        else:
            self._timer = self._loop.call_later(_POLL_INTERVAL, self._poll)

    def _on_exit(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
        if not self.code.done():
            self.code.set_result(self._reap())


async def _check_executable(launch: LaunchSpec, host: ProgramHost) -> None:
    executable = launch.argv[0]
    try:
        name = f"check {executable}"
        await host.run_in_thread(
            name, _CHECK_TIMEOUT, executable_check.check_executable, executable, launch.directory
        )
    except TimeoutError:
        raise CannotStart(
            f"{executable} cannot be started: its disk did not respond for {_CHECK_TIMEOUT:g} s; "
            "check the disk, or put the program on another disk"
        ) from None


def _confine(launch: LaunchSpec, mark: str) -> Confinement:
    argv = launch.argv
    if launch.account is not None:
        argv = (*switch_user_command(launch.account), *argv)
    if launch.limits == ProcessLimits():
        return Confinement(argv, launch.limits)
    return confine(argv, launch.limits, f"child-{mark}", find_delegated_cgroup())


def _spawn(launch: LaunchSpec, argv: tuple[str, ...], mark: str) -> subprocess.Popen[bytes]:
    """Start the process. Do not use asyncio, which would copy the page tables of the server."""
    inherited = launch.environment.get(MARK_VARIABLE)
    environment = {
        **launch.environment,
        MARK_VARIABLE: f"{inherited} {mark}" if inherited else mark,
    }
    try:
        return subprocess.Popen(  # noqa: S603 - runs what is configured
            argv,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=launch.directory,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise executable_check.explain_start_error(launch.argv[0], error) from error
