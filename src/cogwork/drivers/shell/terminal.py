"""An interactive program in a pseudoterminal."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psutil

from cogwork.core.workers import Workers
from cogwork.drivers.shell import child_process

_READ_SIZE = 1 << 16
_MAX_FINAL_OUTPUT = 1 << 20
"""Maximum bytes to read after the program has ended: background jobs might write endlessly."""
_HANGUP_GRACE = 1.0
"""Grace period in seconds between SIGHUP and SIGKILL."""
_POLL_INTERVAL = 0.05
"""Seconds between two checks for remaining processes."""
# The first terminal that the leader of a session opens becomes its controlling terminal. The shell
# opens the terminal before it executes the command. Python code between fork and exec is unsafe
# with threads.
_LAUNCH_COMMAND = ("/bin/sh", "-c", 'exec 0<>"$0" 1>&0 2>&0 && exec "$@"')


class PtyTerminal:
    """A program in a pseudoterminal.

    Output is not buffered: a program whose output is not read blocks. Closing the terminal ends
    every process of its session, including processes that ignore SIGHUP. A process that should
    survive needs its own session, for example from `setsid`.
    """

    def __init__(
        self,
        process: child_process.Process,
        controller: int,
        tty: int,
        on_closed: Callable[[PtyTerminal], None],
    ) -> None:
        self._process = process
        self._controller = controller
        self._tty = tty
        """The program's side of the terminal. The server keeps it open, too, so that the terminal
        stays usable while no program has it open."""
        self._exited: asyncio.Future[Any] = asyncio.ensure_future(child_process.wait(process))
        self._final_output_left = _MAX_FINAL_OUTPUT
        self._on_closed = on_closed
        self._closing: asyncio.Future[None] | None = None
        self._is_released = False
        """Whether the descriptors are closed. Do not use them then: their numbers may belong to
        other files."""

    @classmethod
    async def start(
        cls,
        workers: Workers,
        command: tuple[str, ...],
        directory: Path,
        environment: Mapping[str, str],
        on_closed: Callable[[PtyTerminal], None],
    ) -> Self:
        """Start the command on one of the workers; `on_closed` is called after the terminal
        closes."""
        controller, tty = pty.openpty()
        try:
            os.set_blocking(controller, False)
            argv = (*_LAUNCH_COMMAND, os.ttyname(tty), *command)
            process = await child_process.start(workers, argv, directory, environment)
        except BaseException:
            os.close(controller)
            os.close(tty)
            raise
        return cls(process, controller, tty, on_closed)

    @property
    def pid(self) -> int:
        return self._process.pid

    def resize(self, columns: int, rows: int) -> None:
        if self._is_released:
            return
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._controller, termios.TIOCSWINSZ, size)

    async def read(self) -> bytes:
        """Return new output, or empty bytes after the end."""
        loop = asyncio.get_running_loop()
        while not (data := self._read_available()):
            if self._exited.done() or self._is_released:
                return b""
            await self._wait_ready(loop.add_reader, loop.remove_reader)
        if self._exited.done():
            self._final_output_left -= len(data)
        return data

    async def write(self, data: bytes) -> None:
        """Write all data. Return early if the program has ended."""
        loop, rest = asyncio.get_running_loop(), memoryview(data)
        while rest and not (self._exited.done() or self._is_released):
            try:
                rest = rest[os.write(self._controller, rest) :]
            except BlockingIOError:
                await self._wait_ready(loop.add_writer, loop.remove_writer)
            except OSError:
                return

    async def aclose(self) -> None:
        """Close the terminal and end its processes. Concurrent calls wait for the same shutdown."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._hang_up()
        finally:
            await self._signal_session(signal.SIGKILL)
            await self._signal_session(signal.SIGKILL)  # for processes started meanwhile
            self._release()
        await self._exited
        self._on_closed(self)

    async def _hang_up(self) -> None:
        """Send SIGHUP; return when no process is left or the grace period expires."""
        # Send SIGCONT, too: a stopped process handles SIGHUP only after it continues.
        await self._signal_session(signal.SIGHUP, signal.SIGCONT)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HANGUP_GRACE):
                await asyncio.wait({self._exited})
                while await self._signal_session():  # noqa: ASYNC110 - orphans send no notification
                    await asyncio.sleep(_POLL_INTERVAL)

    async def _signal_session(self, *numbers: signal.Signals) -> set[int]:
        """Signal every process of the session, including background jobs; return their PIDs."""
        members = await asyncio.to_thread(
            _session_members, self.pid, leader_exited=self._exited.done()
        )
        for number in numbers:
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        return members

    def _release(self) -> None:
        self._is_released = True
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._controller)
        loop.remove_writer(self._controller)
        os.close(self._controller)
        os.close(self._tty)

    def _read_available(self) -> bytes:
        """Read what is available, up to one chunk. Read repeatedly: a terminal delivers small
        pieces."""
        pieces: list[bytes] = []
        remaining = min(_READ_SIZE, self._final_output_left) if not self._is_released else 0
        while remaining > 0:
            try:
                data = os.read(self._controller, remaining)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                break  # no program has the terminal open
            if not data:
                break
            pieces.append(data)
            remaining -= len(data)
        return b"".join(pieces)

    async def _wait_ready(self, add: Callable[..., None], remove: Callable[[int], object]) -> None:
        """Wait until the terminal is ready or the program has ended."""
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        add(self._controller, _resolve_future, ready)
        try:
            await asyncio.wait({ready, self._exited}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._is_released:
                remove(self._controller)
            ready.cancel()


def _resolve_future(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)


def _session_members(leader: int, *, leader_exited: bool) -> set[int]:
    """Return the processes of the session. This call blocks."""
    pids = psutil.pids()
    if leader_exited and leader in pids:
        # Another process has the PID of the leader, so no process of the session is left.
        return set()
    return {pid for pid in pids if _session_id(pid) == leader}


def _session_id(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None  # the process has ended
