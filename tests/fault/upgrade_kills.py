"""Upgrades a cloud of version 0.1 in child processes, each of which is killed at another line.

Arguments: a directory of version 0.1, a directory for copies, and after how many lines to kill each
time. Prints how many children were killed.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from cogwork.cloud.control_plane import cloud_directory, upgrade
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.core.clock import SystemClock
from cogwork.core.files import atomic

KILLED = 9
FILES = {upgrade.__file__, cloud_directory.__file__, atomic.__file__}
"""Whose lines are counted."""


def main(template: Path, work: Path, every: int) -> None:
    killed = 0
    while True:
        copy = Path(shutil.copytree(template, work / str(killed)))
        if _run(copy, kill_at=killed * every + 1) == 0:
            break
        killed += 1
        assert _run(copy, kill_at=0) == 0, f"the upgrade of {copy} does not go on"
    print(killed)


def _run(directory: Path, kill_at: int) -> int:
    """Upgrade in a child process, and return its exit code. 0: do not kill it."""
    child = os.fork()
    if child == 0:
        try:
            if kill_at:
                sys.settrace(_Killer(kill_at).trace)
            found = CloudDirectory(directory)
            if found.needs_upgrade():
                upgrade.upgrade_directory(found, SystemClock())
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


class _Killer:
    def __init__(self, lines: int) -> None:
        self._left = lines

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            self._left -= 1
            if self._left == 0:
                os._exit(KILLED)  # without any cleanup
        return self.trace


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
