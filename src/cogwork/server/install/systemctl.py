"""Runs `systemctl`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cogwork.server.install.errors import CannotInstall

_DEADLINE = 11 * 60.0
"""Seconds; `restart` waits until the server is ready, for up to ten minutes."""


@dataclass(frozen=True, slots=True)
class Systemctl:
    root: Path = Path("/")
    """With another root, only commands that change files work, such as `enable`."""
    program: str = "systemctl"

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.program) is not None

    def run(self, *arguments: str) -> None:
        """Raise CannotInstall with what `systemctl` printed if it fails."""
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
            raise CannotInstall(
                f"`{shown}` did not end within {_DEADLINE:.0f}s; see: journalctl -u cogwork-server"
            ) from error
        except OSError as error:
            raise CannotInstall(f"cannot run `{shown}`: {error.strerror}") from error
        if done.returncode != 0:
            raise CannotInstall(f"`{shown}` failed: {done.stderr.strip() or done.returncode}")
