"""Ends the programs of a server that was killed.

A small separate process reads from a pipe. The kernel closes the pipe when the server dies, whether
by kill -9, the OOM killer or a crash. The reaper then sends SIGTERM to the programs, so that they
can stop motion, and a few seconds later SIGKILL.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from typing import Final

from cogwork.core.workers import run_in_thread
from cogwork.subprocesses.orphans import MARK_VARIABLE, process_identity

KILL_DELAY: Final = 3
"""Seconds from SIGTERM to SIGKILL."""

_SCRIPT: Final = f"""
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) groups="${{groups%%" $group "*}} ${{groups#*" $group "}}" ;;
    esac
done
end() {{
    for group in $groups; do kill -s "$1" -- "-$group"; done
    for file in $(grep -lsE "$0" /proc/[0-9]*/environ); do
        pid=${{file#/proc/}}
        kill -s "$1" "${{pid%/environ}}"
    done
}}
end TERM
end CONT
sleep {KILL_DELAY}
end KILL
"""
"""The script of the reaper. Its input adds and removes process groups with `+ 123` and `- 123`. Its
argument is a pattern that matches the environment of processes outside these groups."""
_CLOSE_TIMEOUT: Final = KILL_DELAY + 2.0
"""Timeout of `close` in seconds."""

_log = logging.getLogger("rdk.modmanager")


class Reaper:
    """Ends process groups when the server dies.

    The reaper process starts with the first group, because most machines run no programs.
    """

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Register a process group, to end it when the server dies."""
        self._groups.add(group)
        if self._process is None:
            self._start()
        else:
            self._send(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """Unregister an empty group, because its number may be reused."""
        if group in self._groups:
            self._groups.discard(group)
            self._send(f"- {group}\n")

    async def aclose(self) -> None:
        """End the registered groups."""
        with contextlib.suppress(TimeoutError):
            await run_in_thread("reaper", _CLOSE_TIMEOUT + 1, self.close)

    def close(self) -> None:
        """End the registered groups. Blocks."""
        process, self._process = self._process, None
        if process is not None:
            _stop_process(process, at_once=not self._groups)

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a constant script
                ("/bin/sh", "-c", _SCRIPT, _environ_pattern()),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # Do not pass our variables on: the pattern would match the reaper itself.
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        except OSError as error:
            _log.error(
                "cannot start /bin/sh: %s; if the server is killed, its programs keep running",
                error,
            )
            return
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        for group in sorted(self._groups):
            self._write(f"+ {group}\n")

    def _send(self, line: str) -> None:
        if self._process is None or self._write(line):
            return
        _log.warning("the reaper process has exited; starting another")
        _stop_process(self._process, at_once=True)
        self._start()

    def _write(self, line: str) -> bool:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            return self._process.stdin.write(line.encode()) == len(line)
        except OSError:
            return False


def _stop_process(process: subprocess.Popen[bytes], *, at_once: bool) -> None:
    if at_once:
        process.kill()
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_CLOSE_TIMEOUT)


def _environ_pattern() -> str:
    """Return a pattern that matches environments with the mark of this server.

    `[^=]*` stops at a `=`, so the pattern does not match the value of another variable.
    """
    return rf"{MARK_VARIABLE}=([^=]* )?{process_identity(os.getpid()).replace('.', '[.]')}[.]"
