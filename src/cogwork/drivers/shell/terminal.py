"""An interactive program in a terminal of its own, as its user at the other end sees it."""

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

_PIECE = 1 << 16
_LAST_WORDS = 1 << 20
"""Bytes that are read after the program has ended: what it left running may go on for ever."""
_MERCY = 1.0
"""Seconds from the hang-up until whoever is left is killed."""
_LOOK = 0.05
"""Seconds between two looks at who is left."""
# A session gets the first terminal that its leader opens. Opening it in the new process, ahead of
# the program, needs no code of ours between fork and exec, where threads make that unsafe.
_STARTER = ("/bin/sh", "-c", 'exec 0<>"$0" 1>&0 2>&0 && exec "$@"')


class Terminal:
    """Nothing is kept of what comes out: a program whose output nobody reads waits.

    With it ends all that was started in it, also what minds no hang-up. Whoever is to stay takes a
    session of its own, as `setsid` gives one.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        controller: int,
        inside: int,
        closed: Callable[[Terminal], None],
    ) -> None:
        self._process = process
        self._controller = controller
        self._inside = inside
        """Keeps the terminal alive between two programs that have it open."""
        self._exited: asyncio.Future[Any] = asyncio.ensure_future(process.wait())
        self._left = _LAST_WORDS
        self._closed = closed
        self._closing: asyncio.Future[None] | None = None
        self._gone = False
        """The terminal is closed, and its number may be another file's."""

    @classmethod
    async def start(
        cls,
        command: tuple[str, ...],
        directory: Path,
        environment: Mapping[str, str],
        closed: Callable[[Terminal], None],
    ) -> Self:
        """`closed` is told when it is."""
        controller, inside = pty.openpty()
        try:
            os.set_blocking(controller, False)
            process = await asyncio.create_subprocess_exec(
                *_STARTER,
                os.ttyname(inside),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(controller)
            os.close(inside)
            raise
        return cls(process, controller, inside, closed)

    @property
    def pid(self) -> int:
        return self._process.pid

    def resize(self, columns: int, rows: int) -> None:
        if self._gone:
            return
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._controller, termios.TIOCSWINSZ, size)

    async def read(self) -> bytes:
        """What has come out since, empty after the last of it."""
        loop = asyncio.get_running_loop()
        while not (data := self._output()):
            if self._exited.done() or self._gone:
                return b""
            await self._ready(loop.add_reader, loop.remove_reader)
        if self._exited.done():
            self._left -= len(data)
        return data

    async def write(self, data: bytes) -> None:
        """Returns when the terminal has taken all. A program that has ended takes nothing."""
        loop, rest = asyncio.get_running_loop(), memoryview(data)
        while rest and not (self._exited.done() or self._gone):
            try:
                rest = rest[os.write(self._controller, rest) :]
            except BlockingIOError:
                await self._ready(loop.add_writer, loop.remove_writer)
            except OSError:
                return

    async def aclose(self) -> None:
        """Hangs up. However often it is asked for, it is done once, and to its end."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._hang_up()
        finally:
            await self._signal(signal.SIGKILL)
            await self._signal(signal.SIGKILL)  # who was started meanwhile
            self._let_go()
        await self._exited
        self._closed(self)

    async def _hang_up(self) -> None:
        """Returns when nobody is left, or mercy ends."""
        # Programs may sleep through a hang-up while they are stopped.
        await self._signal(signal.SIGHUP, signal.SIGCONT)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_MERCY):
                await asyncio.wait({self._exited})
                while await self._signal():  # noqa: ASYNC110 - nobody tells when orphans end
                    await asyncio.sleep(_LOOK)

    async def _signal(self, *numbers: signal.Signals) -> set[int]:
        """Gets to everybody in the program's session, jobs in the background too; who that was."""
        members = await asyncio.to_thread(_session, self.pid, is_over=self._exited.done())
        for number in numbers:
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        return members

    def _let_go(self) -> None:
        self._gone = True
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._controller)
        loop.remove_writer(self._controller)
        os.close(self._controller)
        os.close(self._inside)

    def _output(self) -> bytes:
        """All that is there, up to a piece: a terminal hands it out in small ones."""
        pieces: list[bytes] = []
        room = min(_PIECE, self._left) if not self._gone else 0
        while room > 0:
            try:
                data = os.read(self._controller, room)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                break  # nobody has it open
            if not data:
                break
            pieces.append(data)
            room -= len(data)
        return b"".join(pieces)

    async def _ready(self, add: Callable[..., None], remove: Callable[[int], object]) -> None:
        """Or the program has ended."""
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        add(self._controller, _set, ready)
        try:
            await asyncio.wait({ready, self._exited}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._gone:
                remove(self._controller)
            ready.cancel()


def _set(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)


def _session(leader: int, *, is_over: bool) -> set[int]:
    """The processes in it. Blocks."""
    pids = psutil.pids()
    if is_over and leader in pids:
        # Its number is another's, which is only given away when nobody is left in the session.
        return set()
    return {pid for pid in pids if _session_of(pid) == leader}


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None  # it has ended
