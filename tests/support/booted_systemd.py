"""A real systemd for tests: it boots in namespaces of its own, on a copy of this computer or of
another root directory.

The copy is an overlay. Whatever is installed or written there is gone at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.waiting import block_until

SYSTEMD = Path("/lib/systemd/systemd")
DEADLINE = 60.0
"""Seconds that it may take to boot, or a command to end."""

needs_systemd = pytest.mark.skipif(
    os.geteuid() != 0 or not SYSTEMD.exists() or shutil.which("unshare") is None,
    reason="needs root, systemd and unshare",
)

# Kernel settings are not part of a namespace, so they are read-only there. The network is empty.
_BOOT = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t tmpfs tmpfs sys
mkdir -p sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount --rbind /dev dev
mount -t tmpfs tmpfs run
# They would hide or delete what tests have in /tmp, or create devices here.
for unit in tmp.mount systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done
ip link set lo up || true
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
  /lib/systemd/systemd --system --unit=basic.target --show-status=no --log-target=null
"""


@dataclass(frozen=True)
class BootedSystem:
    init: int
    """The ID of the first process, as this computer sees it."""

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.init}/root")

    def run(
        self, *command: str, check: bool = True, within: float = DEADLINE
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["nsenter", "--target", str(self.init), "--all", "--root", "--wdns=/", *command],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def run_outside(self, *command: str, within: float = DEADLINE) -> str:
        """Run a program of this computer in the network of the system, and return its output."""
        return subprocess.run(
            ["nsenter", "--target", str(self.init), "--net", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=within,
            check=True,
        ).stdout

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def wait_for_sign_of_life(self, unit: str) -> None:
        """Wait until systemd gets the next one of those that its watchdog expects."""
        before = self.show(unit, "WatchdogTimestampMonotonic")
        block_until(lambda: self.show(unit, "WatchdogTimestampMonotonic") != before, every=0.1)


@contextlib.contextmanager
def boot_systemd(directory: Path, root: Path = Path("/")) -> Iterator[BootedSystem]:
    """Boot a copy of a root directory, in an empty directory, and skip the test where that fails.

    Without a root, it is a copy of this computer.
    """
    namespaces = ("--mount", "--pid", "--cgroup", "--uts", "--ipc", "--net")
    script = ["sh", "-c", _BOOT, "boot", str(directory), str(root)]
    with subprocess.Popen(
        ["unshare", *namespaces, "--fork", "--kill-child", *script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as unshare:
        try:
            yield _wait_until_running(unshare)
        finally:
            # With it, the kernel ends every process there.
            unshare.kill()


def _wait_until_running(unshare: subprocess.Popen[str]) -> BootedSystem:
    def has_ended_or_runs() -> bool:
        return unshare.poll() is not None or _find_running(unshare) is not None

    with contextlib.suppress(pytest.fail.Exception):
        block_until(has_ended_or_runs, DEADLINE, every=0.1)
    if system := _find_running(unshare):
        return system
    unshare.kill()
    pytest.skip(f"systemd does not boot here: {unshare.communicate()[0]}")


def _find_running(unshare: subprocess.Popen[str]) -> BootedSystem | None:
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
    with contextlib.suppress(OSError, ValueError):
        system = BootedSystem(int(children.read_text()))
        if _is_running(system):
            return system
    return None


def _is_running(system: BootedSystem) -> bool:
    # Until systemd runs there, its root directory is that of this computer, where no test may act.
    if Path(f"/proc/{system.init}/comm").read_text() != "systemd\n":
        return False
    state = system.run("systemctl", "is-system-running", check=False).stdout.strip()
    return state in ("running", "degraded")
