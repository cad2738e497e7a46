"""One child process: started, listened to, and ended with everything that it started itself."""

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

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import in_a_thread
from cogwork.modules import orphans, program
from cogwork.modules.limits import Confinement, Limits, confine, delegated_group
from cogwork.modules.output import Reader, Stream
from cogwork.modules.program import CannotStart

MARK = "COGWORK_CHILD"
"""The variable by which what a child leaves behind is found: a word for each child above it."""

_LOOK = 10.0
"""Seconds that the disk has to show the program."""
_POLL = 0.02
"""Seconds between two looks at a process, where the kernel (before 5.3) does not tell its end."""
_ENDING = 5.0
"""Seconds that those who were killed have to be gone: only a device or a disk keeps them."""
_LEEWAY = 1.0
_LONGEST_PAUSE = 0.05
_HOUSEKEEPING = 30.0
_TURNS = (0.005, 0.05)

OnLine = Callable[[Stream, str], None]


@dataclass(frozen=True, slots=True)
class Launch:
    argv: tuple[str, ...]
    """The program by its whole path, and its arguments."""
    environment: Mapping[str, str]
    """All of it, but for the mark."""
    directory: Path
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each step of stopping is given, in seconds."""

    process: float = 3.0
    """From SIGTERM for the process to SIGTERM for its group."""
    group: float = 3.0
    """From there to SIGKILL."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended."""

    code: int
    """Negative: the signal that killed it."""
    last_lines: tuple[str, ...] = ()
    """What it said last on stderr, or on stdout when it said nothing there."""
    blame: str = ""
    """The limit that it probably ran into."""

    @property
    def words(self) -> str:
        """To follow its name: `was killed by SIGSEGV`."""
        if self.code < 0:
            words = f"was killed by {_signal_name(-self.code)}"
        else:
            words = f"exited with code {self.code}"
        if self.blame:
            words += f": {self.blame}"
        return f"{words} (last line: {self.last_lines[-1]})" if self.last_lines else words


class CannotStop(CogworkError):
    """A process that outlives SIGKILL."""

    status = "DEADLINE_EXCEEDED"


class Child:
    """Whoever starts it stops it, also when it has exited by itself: then there is nothing to do.

    Times that a person set run on the clock; what only the kernel can be slow with, on real time.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        confinement: Confinement,
        mark: str,
        on_line: OnLine,
        clock: Clock,
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.pid = process.pid
        self.exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        """Done as soon as the process itself has exited, whatever it leaves behind."""
        self.notes = confinement.notes
        """Sentences: limits that do not hold here."""
        self._process = process
        self._confinement = confinement
        self._mark = mark
        self._clock = clock
        self._out = Reader(process.stdout, functools.partial(on_line, Stream.STDOUT), clock)
        self._err = Reader(process.stderr, functools.partial(on_line, Stream.STDERR), clock)
        self._merciful = False
        """Those whom the process leaves behind may still end by themselves."""
        self._group_gone = False
        """Nobody is left in the group, and its number may become another's."""
        self._survived = False
        self._stopping: asyncio.Task[None] | None = None
        self._over = asyncio.create_task(self._see_to_the_end(), name=f"child {self.pid}")

    @classmethod
    async def start(cls, launch: Launch, on_line: OnLine, clock: Clock) -> Self:
        """Raises CannotStart, or CannotLimit."""
        await _look(launch)
        mark = secrets.token_hex(8)
        confinement = _confine(launch, mark)
        try:
            process = _start(launch, confinement.argv, mark)
        except BaseException:
            if confinement.group is not None:
                confinement.group.remove()
            raise
        return cls(process, confinement, mark, on_line, clock)

    async def stop(self, patience: Patience = Patience()) -> Exit:  # noqa: B008 - it is frozen
        """Returns when nothing is left of it. However many ask, it is done once, as first asked."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(patience), name=f"stop {self.pid}")
        await asyncio.shield(self._stopping)
        return self.exited.result()

    async def kill(self) -> None:
        """The whole group at once."""
        self._merciful = False
        self._signal_group(signal.SIGKILL)
        await asyncio.wait({self._over}, timeout=_ENDING + _LEEWAY)
        if self._survived or not self._over.done():
            raise CannotStop(
                f"process {self.pid}, or one that it started, does not end even by SIGKILL: it "
                "waits for a device or a disk, or runs as another user; end it by hand, or restart "
                "the computer"
            )

    async def _stop(self, patience: Patience) -> None:
        if self._runs():
            self._merciful = True
            orphans.signal_process(self.pid, signal.SIGTERM)
            # One that is stopped hears nothing else.
            self._signal_group(signal.SIGCONT)
            await self._clock.wait({self.exited}, patience.process)
        if self._merciful and not self._group_gone:
            self._signal_group(signal.SIGTERM)
            self._signal_group(signal.SIGCONT)
            await self._clock.wait({self._over}, patience.group)
        await self.kill()

    async def _see_to_the_end(self) -> None:
        """The one task that waits for the process, and then for what it leaves behind."""
        try:
            code = await self._exit_code()
            for reader in (self._out, self._err):
                # Those who may still end by themselves may say something, too.
                reader.drain() if self._merciful else reader.close()
            lines = self._err.last_lines or self._out.last_lines
            blame = self._confinement.blame(lines) if code else ""
            self.exited.set_result(Exit(code, lines, blame))
            self._survived = not await self._end_the_rest()
            await _reap_forgotten()
        finally:
            self._abandon()

    async def _exit_code(self) -> int:
        exiting = _Exiting(self.pid, self._reap)
        try:
            await self._clock.wait({exiting.code}, _HOUSEKEEPING)
            while not exiting.code.done():
                await _reap_forgotten()
                await self._clock.wait({exiting.code}, _HOUSEKEEPING)
        finally:
            exiting.close()
        return exiting.code.result()

    def _reap(self) -> int:
        if not self._merciful:
            # While it is not reaped, the number of its group is surely its own.
            self._signal_group(signal.SIGKILL)
        return self._process.wait()

    def _runs(self) -> bool:
        return self._process.returncode is None

    async def _end_the_rest(self) -> bool:
        """Nobody whom it started outlives it: not in its group, and not where they ran to."""
        strays: set[int] = set()
        until, pause = time.monotonic() + _ENDING, 0.001
        while self._merciful or time.monotonic() < until:
            if not self._group_gone:
                orphans.reap_group(self.pid)
            self._signal_group(0 if self._merciful else signal.SIGKILL)
            if self._group_gone or not self._merciful:
                # Those of a stray itself are there to be found when it is gone.
                strays |= await self._strays()
                if not strays and self._group_gone and self._control_group_gone():
                    return True
                strays = {pid for pid in strays if not orphans.reap(pid)}
                for pid in strays:
                    orphans.signal_process(pid, signal.SIGKILL)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if self._merciful:
                until = time.monotonic() + _ENDING
        return False

    async def _strays(self) -> set[int]:
        if not orphans.adopts_orphans():
            return set()
        name = f"strays of {self.pid}"
        try:
            return await in_a_thread(name, _ENDING, orphans.strays, self.pid, self._mark)
        except TimeoutError:
            return set()

    def _control_group_gone(self) -> bool:
        group = self._confinement.group
        if group is None or group.remove():
            return True
        group.kill()
        return False

    def _signal_group(self, number: int) -> None:
        if self._group_gone:
            return
        left = orphans.signal_group(self.pid, number)
        self._group_gone = not left and not self._runs()

    def _abandon(self) -> None:
        """Kills only when the task was cancelled: the loop ends, and nobody stopped the child."""
        self._signal_group(signal.SIGKILL)
        self._out.close()
        self._err.close()
        if not self.exited.done():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LONGEST_PAUSE)
            self.exited.cancel()


class _Exiting:
    """Has a process reaped as soon as it has exited, not a turn of the loop later."""

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
            self._loop.add_reader(self._descriptor, self._exited)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        if self._timer is not None:
            self._timer.cancel()

    def _poll(self) -> None:
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._exited()
        else:
            self._timer = self._loop.call_later(_POLL, self._poll)

    def _exited(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
        if not self.code.done():
            self.code.set_result(self._reap())


async def _look(launch: Launch) -> None:
    executable = launch.argv[0]
    try:
        name = f"look at {executable}"
        await in_a_thread(name, _LOOK, program.look, executable, launch.directory)
    except TimeoutError:
        raise CannotStart(
            f"{executable} cannot be started: its disk did not answer for {_LOOK:g} s; "
            "check the disk, or put the program on another one"
        ) from None


def _confine(launch: Launch, mark: str) -> Confinement:
    if launch.limits == Limits():
        return Confinement(launch.argv, launch.limits)
    return confine(launch.argv, launch.limits, f"child-{mark}", delegated_group())


def _start(launch: Launch, argv: tuple[str, ...], mark: str) -> subprocess.Popen[bytes]:
    """Not by the loop: its way copies the page tables of the whole server, this one does not."""
    above = launch.environment.get(MARK)
    environment = {**launch.environment, MARK: f"{above} {mark}" if above else mark}
    try:
        return subprocess.Popen(  # noqa: S603 - what is configured is run
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
        raise program.refused(launch.argv[0], error) from error


async def _reap_forgotten() -> None:
    """Orphans that ended and that nobody waits for: where they came from cannot be told any more.

    What others start is reaped by them in the next turn of the loop.
    """
    if not orphans.adopts_orphans():
        return
    forgotten = orphans.zombies()
    for turn in _TURNS:
        if forgotten:
            await asyncio.sleep(turn)
            forgotten &= orphans.zombies()
    for pid in forgotten:
        orphans.reap(pid)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
