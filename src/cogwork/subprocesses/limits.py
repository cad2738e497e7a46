"""Resource limits of child processes, and how to enforce them.

/bin/sh limits memory and open files of the process before it executes the program. If systemd
delegates a control group to the server (Delegate=yes and DelegateSubgroup=server in its unit),
memory and CPU time are limited for the child and all of its descendants together.
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

from cogwork.config.schema.module import ProgramLimits
from cogwork.core.errors import CogworkError

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
_CPU_PERIOD = 100_000
"""Microseconds of one accounting period of CPU time."""

_OUT_OF_MEMORY = ("memoryerror", "bad_alloc", "cannot allocate memory", "out of memory")
_OUT_OF_FILES = ("too many open files", "emfile")


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    memory_bytes: int | None = None
    """With a control group: maximum memory in use. Without one: maximum address space, although
    programs in Go, Java or Node reserve far more than they use."""
    cpu_cores: float | None = None
    open_files: int | None = None
    no_new_privileges: bool = False
    """Whether to disable sudo and other setuid programs."""


def make_limits(config: ProgramLimits | None) -> ProcessLimits:
    if config is None:
        return ProcessLimits()
    return ProcessLimits(
        memory_bytes=int(config.memory_mb * (1 << 20)) if config.memory_mb else None,
        cpu_cores=config.cpu_cores,
        open_files=config.open_files,
        no_new_privileges=config.no_new_privileges,
    )


class CannotLimit(CogworkError):
    """A limit cannot be enforced on this computer."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Confinement:
    """The method by which the limits of one process are enforced."""

    argv: tuple[str, ...]
    limits: ProcessLimits
    cgroup: Cgroup | None = None
    warnings: tuple[str, ...] = ()
    """Warnings about limits that cannot be enforced here."""

    def find_exceeded_limit(self, last_lines: tuple[str, ...]) -> str:
        """Return the limit that the process probably exceeded; empty if none."""
        limits, output = self.limits, "\n".join(last_lines).lower()
        memory = limits.memory_bytes
        if memory is not None and self.cgroup is not None and self.cgroup.ran_out_of_memory():
            return f"it exceeded its memory limit of {_format_size(memory)}"
        if memory is not None and any(text in output for text in _OUT_OF_MEMORY):
            return f"it probably exceeded its memory limit of {_format_size(memory)}"
        if limits.open_files is not None and any(text in output for text in _OUT_OF_FILES):
            return f"it probably exceeded its limit of {limits.open_files} open files"
        return ""


def confine(
    argv: tuple[str, ...], limits: ProcessLimits, name: str, delegated: Path | None
) -> Confinement:
    """Return the command line that applies the limits. Raise CannotLimit.

    `delegated`: the control group that systemd delegates to the server. If the limits need a
    control group, create one with this name in it.
    """
    if limits.no_new_privileges:
        argv = (_find_setpriv(), "--no-new-privs", "--", *argv)
    _check_open_files(limits.open_files)
    group = Cgroup.create(delegated, name, limits) if delegated is not None else None
    steps = [*_shell_steps(limits, group), 'exec "$0" "$@"']
    warnings: tuple[str, ...] = ()
    if limits.cpu_cores is not None and group is None:
        warnings = (
            f"it may use more than {limits.cpu_cores:g} CPU cores: the limit requires a control "
            "group; run the server under systemd with Delegate=yes and DelegateSubgroup=server",
        )
    return Confinement(("/bin/sh", "-c", " && ".join(steps), *argv), limits, group, warnings)


class Cgroup:
    """A control group of one child and all of its descendants, in any session."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, delegated: Path, name: str, limits: ProcessLimits) -> Cgroup | None:
        """Create the group; return None if it is not permitted or not needed."""
        settings = dict(_cgroup_settings(limits))
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
        """Remove the group. Return False if that fails, because it still contains processes."""
        try:
            self.path.rmdir()
        except OSError as error:
            return error.errno != errno.EBUSY
        return True


def find_delegated_cgroup(own: Path = _OWN_CGROUP, groups: Path = _CGROUP_ROOT) -> Path | None:
    """Return the control group that systemd delegates to the server; None if there is none.

    The delegated group is the parent of the server's own group.
    """
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            if not line.startswith("0::/"):
                continue
            parent = (groups / line.removeprefix("0::/")).parent
            if groups in (parent, *parent.parents) and os.getxattr(parent, "user.delegate") == b"1":
                return parent
    return None


def _find_setpriv() -> str:
    program = shutil.which("setpriv")
    if program is None:
        raise CannotLimit(
            'cannot deny new privileges: the program "setpriv" is missing; install util-linux'
        )
    return program


def _check_open_files(wanted: int | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted is not None and hard != resource.RLIM_INFINITY and wanted > hard:
        raise CannotLimit(
            f"cannot allow {wanted} open files: the limit of the server itself is {hard}; "
            "set a lower limit, or raise LimitNOFILE of the server"
        )


def _shell_steps(limits: ProcessLimits, group: Cgroup | None) -> Iterator[str]:
    if group is not None:
        yield f"echo $$ > {shlex.quote(str(group.path / 'cgroup.procs'))}"
    elif limits.memory_bytes is not None:
        yield f"ulimit -v {limits.memory_bytes >> 10}"
    if limits.open_files is not None:
        yield f"ulimit -n {limits.open_files}"


def _cgroup_settings(limits: ProcessLimits) -> Iterator[tuple[str, str]]:
    if limits.memory_bytes is not None:
        yield "memory.max", str(limits.memory_bytes)
    if limits.cpu_cores is not None:
        yield "cpu.max", f"{max(1000, round(limits.cpu_cores * _CPU_PERIOD))} {_CPU_PERIOD}"


def _format_size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} bytes"
