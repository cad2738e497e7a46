"""What a module does once before it first starts: the script that its meta.json names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import in_a_thread
from cogwork.modules.limits import CannotLimit, Limits
from cogwork.modules.meta import meta_in
from cogwork.modules.output import Stream
from cogwork.modules.process import Child, Exit, Launch
from cogwork.modules.program import CannotStart

T = TypeVar("T")

LONGEST = 3600.0
_MARKER = ".first_run_succeeded"
_PROGRESS = 5.0
_DISK = 10.0


class FirstRunFailed(CogworkError):
    """A module that could not set itself up."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What is to be done, and where it is noted that it was."""

    script: Path
    marker: Path


async def first_run(
    name: str,
    executable: Path,
    environment: Mapping[str, str],
    say: Callable[[str], None],
    clock: Clock,
    *,
    timeout: float = LONGEST,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
) -> bool:
    """Whether there was anything to do. Raises FirstRunFailed and BadMeta.

    The environment is the module's own; in its VIAM_MODULE_ROOT, if it has one, is the meta.json.
    """
    root = Path(environment.get("VIAM_MODULE_ROOT") or executable.parent)
    run = await _on_disk(name, _find, root, executable.parent)
    if run is None:
        return False
    launch = Launch((str(run.script),), environment, root, limits)
    await _carried_out(name, launch, say, clock, timeout if timeout > 0 else LONGEST)
    if trouble := await _on_disk(name, _note, run.marker):
        say(f"first run of {name}: it will be done again at the next start: {trouble}")
    return True


async def _on_disk(name: str, work: Callable[..., T], *arguments: Any) -> T:
    try:
        return await in_a_thread(f"first run of {name}", _DISK, work, *arguments)
    except TimeoutError:
        raise FirstRunFailed(
            f'the disk of module "{name}" did not answer for {_DISK:g} s; check the disk'
        ) from None


def _find(root: Path, beside: Path) -> FirstRun | None:
    """None: nothing is asked for, or it was done."""
    marker = beside.with_name(beside.name + _MARKER)
    for folder in dict.fromkeys((root, beside)):
        if (meta := meta_in(folder)) is not None:
            script = meta.named("first_run")
            return FirstRun(script, marker) if script is not None and not marker.exists() else None
    return None


async def _carried_out(
    name: str, launch: Launch, say: Callable[[str], None], clock: Clock, timeout: float
) -> None:
    def on_line(_: Stream, line: str) -> None:
        say(f"first run of {name}: {line}")

    say(f"first run of {name}: {launch.argv[0]}")
    try:
        child = await Child.start(launch, on_line, clock)
    except (CannotStart, CannotLimit) as error:
        raise FirstRunFailed(f'the first run of module "{name}" failed: {error}') from error
    try:
        ended = await _watched(name, child, say, clock, timeout)
    finally:
        # It may be in the middle of installing something.
        await child.stop()
    _judge(name, ended, timeout)


async def _watched(
    name: str, child: Child, say: Callable[[str], None], clock: Clock, timeout: float
) -> Exit | None:
    """None: it took too long."""
    began = clock.monotonic()
    while (passed := clock.monotonic() - began) < timeout:
        await clock.wait({child.exited}, min(_PROGRESS, timeout - passed))
        if child.exited.done():
            return child.exited.result()
        say(f"first run of {name}: {clock.monotonic() - began:.0f} s")
    await child.stop()
    return None


def _judge(name: str, ended: Exit | None, timeout: float) -> None:
    if ended is None:
        raise FirstRunFailed(
            f'the first run of module "{name}" took more than {duration.render(timeout)} and was '
            'stopped; raise its "first_run_timeout"'
        )
    if ended.code:
        said = "".join(f"\n{line}" for line in ended.last_lines)
        raise FirstRunFailed(
            f'the first run of module "{name}" failed: it {_without_lines(ended)}; correct what it '
            f"complains of, and it is tried again{':' if said else ''}{said}"
        )


def _without_lines(ended: Exit) -> str:
    return Exit(ended.code, blame=ended.blame).words


def _note(marker: Path) -> str:
    """What kept it from being noted."""
    try:
        marker.touch()
    except OSError as error:
        return str(error)
    return ""
