"""Run `systemctl`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

RUNNING: Final = Path("/run/systemd/system")
"""The directory that exists while systemd runs; sd_booted(3) tests for it, too."""

_DEADLINE = 11 * 60.0
"""Timeout in seconds; `restart` waits up to ten minutes until the server is ready."""


class SystemctlFailed(CogworkError):
    """`systemctl` failed."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Systemctl:
    root: Path = Path("/")
    """The root directory. With a root other than /, only commands that edit files work
    (`enable`)."""
    program: str = "systemctl"

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.program) is not None

    def run(self, *arguments: str) -> str:
        """Run a command and return its output. Raise SystemctlFailed, with the printed error, if it
        fails."""
        root = () if self.root == Path("/") else (f"--root={self.root}",)
        command = [self.program, *root, *arguments]
        shown = " ".join(command)
        try:
            done = subprocess.run(  # noqa: S603 - fixed words
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_DEADLINE,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SystemctlFailed(
                f"`{shown}` did not end within {_DEADLINE:.0f}s; see: journalctl -u {arguments[-1]}"
            ) from error
        except OSError as error:
            raise SystemctlFailed(f"cannot run `{shown}`: {os_reason(error)}") from error
        if done.returncode != 0:
            raise SystemctlFailed(f"`{shown}` failed: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        """Return the given properties of a unit."""
        output = self.run("show", "--property", ",".join(properties), unit)
        return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
