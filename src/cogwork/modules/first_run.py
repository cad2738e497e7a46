"""The first-run script, which a module's meta.json names. It runs once before the first start."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import run_in_thread
from cogwork.modules.meta import read_meta
from cogwork.subprocesses.executable_check import CannotStart
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.limits import CannotLimit
from cogwork.subprocesses.output import OutputStream
from cogwork.subprocesses.process import Child, ExitStatus, LaunchSpec

T = TypeVar("T")

DEFAULT_TIMEOUT = 3600.0
_MARKER = ".first_run_succeeded"
_PROGRESS_INTERVAL = 5.0
_DISK_TIMEOUT = 10.0


class FirstRunFailed(CogworkError):
    """The first-run script of a module failed."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The script to run, and the marker file that records its success."""

    script: Path
    marker: Path


async def perform_first_run(
    name: str,
    module: LaunchSpec,
    log: Callable[[str], None],
    host: ProgramHost,
    *,
    timeout: float = DEFAULT_TIMEOUT,
) -> bool:
    """Run the script unless it has already succeeded. Return whether it was run.

    The script runs like the module, in the folder VIAM_MODULE_ROOT or, if this is not set, in the
    folder of the program. Raise FirstRunFailed or BadMeta.
    """
    program_folder = Path(module.argv[0]).parent
    root = Path(module.environment.get("VIAM_MODULE_ROOT") or program_folder)
    run = await _run_disk_work(name, _find_script, root, program_folder)
    if run is None:
        return False
    launch = replace(module, argv=(str(run.script),), directory=root)
    await _run_script(name, launch, log, host, timeout if timeout > 0 else DEFAULT_TIMEOUT)
    if error := await _run_disk_work(name, _write_marker, run.marker):
        log(f"first run of {name}: will run again at the next start: {error}")
    return True


async def _run_disk_work(name: str, work: Callable[..., T], *arguments: Any) -> T:
    try:
        return await run_in_thread(f"first run of {name}", _DISK_TIMEOUT, work, *arguments)
    except TimeoutError:
        raise FirstRunFailed(
            f'the disk of module "{name}" did not respond for {_DISK_TIMEOUT:g} s; check the disk'
        ) from None


def _find_script(root: Path, program_folder: Path) -> FirstRun | None:
    """Return the script and its marker; None if there is no script or it has already succeeded."""
    # Do not use `with_name`, which fails for the root directory.
    marker = Path(f"{program_folder}{_MARKER}")
    for folder in dict.fromkeys((root, program_folder)):
        if (meta := read_meta(folder)) is not None:
            script = meta.resolve_file("first_run")
            return FirstRun(script, marker) if script is not None and not marker.exists() else None
    return None


async def _run_script(
    name: str,
    launch: LaunchSpec,
    log: Callable[[str], None],
    host: ProgramHost,
    timeout: float,
) -> None:
    def on_line(_: OutputStream, text: str) -> None:
        for line in text.split("\n"):
            log(f"first run of {name}: {line}")

    log(f"first run of {name}: running {launch.argv[0]}")
    try:
        child = await Child.start(launch, on_line, host)
    except (CannotStart, CannotLimit) as error:
        raise FirstRunFailed(f'the first run of module "{name}" failed: {error}') from error
    try:
        status = await _wait_for_exit(name, child, log, host.clock, timeout)
    finally:
        # After a cancellation, the script may still be running.
        await child.stop()
    _check_exit(name, status, timeout)


async def _wait_for_exit(
    name: str, child: Child, log: Callable[[str], None], clock: Clock, timeout: float
) -> ExitStatus | None:
    """Return the exit status; None if the script exceeded the timeout."""
    started = clock.monotonic()
    while (elapsed := clock.monotonic() - started) < timeout:
        await clock.wait({child.exited}, min(_PROGRESS_INTERVAL, timeout - elapsed))
        if child.exited.done():
            return child.exited.result()
        log(f"first run of {name}: still running after {clock.monotonic() - started:.0f}s")
    await child.stop()
    return None


def _check_exit(name: str, status: ExitStatus | None, timeout: float) -> None:
    if status is None:
        raise FirstRunFailed(
            f'the first run of module "{name}" timed out after {duration.render(timeout)}; '
            'raise its "first_run_timeout"'
        )
    if status.code:
        lines = "".join(f"\n{line}" for line in status.last_lines)
        raise FirstRunFailed(
            f'the first run of module "{name}" failed: its script {_describe_exit(status)}; '
            "fix the problem that the script reports, and it runs again"
            f"{':' if lines else ''}{lines}"
        )


def _describe_exit(status: ExitStatus) -> str:
    return ExitStatus(status.code, exceeded_limit=status.exceeded_limit).description


def _write_marker(marker: Path) -> str:
    """Write the marker. Return an error text, which is empty on success."""
    try:
        # Do not follow links: if another user can write here, root must not create files elsewhere.
        os.close(os.open(marker, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
    except OSError as error:
        return str(error)
    return ""
