"""What a child process may use at most, and how it is held to that here.

Memory and open files are limits of the process, which /bin/sh sets ahead of the program: nothing
of the program has run by then. Where systemd delegates a control group to the server (Delegate=yes
and DelegateSubgroup=server in its unit), memory and processor time are limits of all that the child
starts together.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cogwork.core.errors import CogworkError

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_PERIOD = 100_000
"""Microseconds over which processor time is shared out."""

_OUT_OF_MEMORY = ("memoryerror", "bad_alloc", "cannot allocate memory", "out of memory")
_OUT_OF_FILES = ("too many open files", "emfile")


@dataclass(frozen=True, slots=True)
class Limits:
    memory_bytes: int | None = None
    """In a control group: memory in use. Otherwise: addresses, of which programs in Go, Java or
    Node reserve far more than they use."""
    cpu_cores: float | None = None
    open_files: int | None = None
    no_new_privileges: bool = False
    """Whether sudo and the like do nothing for it."""


class CannotLimit(CogworkError):
    """A limit that this computer cannot hold a process to."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Confinement:
    """How one process is held to its limits."""

    argv: tuple[str, ...]
    limits: Limits
    group: ControlGroup | None = None
    notes: tuple[str, ...] = ()
    """Sentences: limits that do not hold here."""

    def blame(self, last_lines: tuple[str, ...]) -> str:
        """Which limit it probably ran into, empty for none."""
        limits, said = self.limits, "\n".join(last_lines).lower()
        memory = limits.memory_bytes
        if memory is not None and self.group is not None and self.group.ran_out_of_memory():
            return f"it needed more than its memory limit of {_size(memory)}"
        if memory is not None and any(words in said for words in _OUT_OF_MEMORY):
            return f"it probably needed more than its memory limit of {_size(memory)}"
        if limits.open_files is not None and any(words in said for words in _OUT_OF_FILES):
            return f"it probably needed more than its limit of {limits.open_files} open files"
        return ""


def confine(
    argv: tuple[str, ...], limits: Limits, name: str, delegated: Path | None
) -> Confinement:
    """Makes a control group of this name, if that is of use and one is `delegated`."""
    if limits.no_new_privileges:
        argv = (_setpriv(), "--no-new-privs", "--", *argv)
    _check_open_files(limits.open_files)
    group = ControlGroup.make(delegated, name, limits) if delegated is not None else None
    steps = [*_steps(limits, group), 'exec "$0" "$@"']
    notes: tuple[str, ...] = ()
    if limits.cpu_cores is not None and group is None:
        notes = (
            f"it may use more than {limits.cpu_cores:g} processor cores: the limit needs a control "
            "group; run the server by systemd with Delegate=yes and DelegateSubgroup=server",
        )
    return Confinement(("/bin/sh", "-c", " && ".join(steps), *argv), limits, group, notes)


class ControlGroup:
    """For one child and all that it starts, whatever session they run to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls, delegated: Path, name: str, limits: Limits) -> ControlGroup | None:
        """None: not permitted, or not needed."""
        settings = dict(_settings(limits))
        if not settings:
            return None
        path = delegated / name
        try:
            wanted = " ".join(f"+{setting.partition('.')[0]}" for setting in settings)
            (delegated / "cgroup.subtree_control").write_text(wanted)
            path.mkdir()
        except OSError:
            return None
        group = cls(path)
        try:
            for setting, value in settings.items():
                (path / setting).write_text(value)
        except OSError:
            group.remove()
            return None
        return group

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def ran_out_of_memory(self) -> bool:
        try:
            events = (self.path / "memory.events").read_text()
        except OSError:
            return False
        counts = dict(line.split(" ", 1) for line in events.splitlines() if " " in line)
        return counts.get("oom_kill", "0") != "0"

    def remove(self) -> bool:
        """Whether that is done: not while anybody is left in it."""
        try:
            self.path.rmdir()
        except OSError as error:
            return error.errno != errno.EBUSY
        return True


def delegated_group(own: Path = _OWN_GROUPS, groups: Path = _GROUPS) -> Path | None:
    """The control group that systemd leaves to the server, beside the one the server runs in."""
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            if not line.startswith("0::/"):
                continue
            parent = (groups / line.removeprefix("0::/")).parent
            if groups in (parent, *parent.parents) and os.getxattr(parent, "user.delegate") == b"1":
                return parent
    return None


def _setpriv() -> str:
    program = shutil.which("setpriv")
    if program is None:
        raise CannotLimit(
            'new privileges cannot be denied: the program "setpriv" is not here; install util-linux'
        )
    return program


def _check_open_files(wanted: int | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted is not None and hard != resource.RLIM_INFINITY and wanted > hard:
        raise CannotLimit(
            f"it cannot be given {wanted} open files: the server itself may have {hard}; "
            "ask for fewer, or raise LimitNOFILE of the server"
        )


def _steps(limits: Limits, group: ControlGroup | None) -> Iterator[str]:
    if group is not None:
        yield f"echo $$ > {shlex.quote(str(group.path / 'cgroup.procs'))}"
    elif limits.memory_bytes is not None:
        yield f"ulimit -v {limits.memory_bytes >> 10}"
    if limits.open_files is not None:
        yield f"ulimit -n {limits.open_files}"


def _settings(limits: Limits) -> Iterator[tuple[str, str]]:
    if limits.memory_bytes is not None:
        yield "memory.max", str(limits.memory_bytes)
    if limits.cpu_cores is not None:
        yield "cpu.max", f"{max(1000, round(limits.cpu_cores * _PERIOD))} {_PERIOD}"


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} bytes"
