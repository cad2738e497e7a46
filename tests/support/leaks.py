"""Detects what a test leaves behind: threads, children, descriptors and temporary files."""

import asyncio
import contextlib
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.waiting import block

PATIENCE = 10.0
"""How many seconds something that is just finishing gets before it counts as leaked."""


@dataclass(frozen=True, slots=True)
class Held:
    """One thing the process holds; its label may change while it stays the same thing."""

    key: Hashable
    label: str = field(compare=False)


Snapshot = frozenset[Held]


def snapshot() -> Snapshot:
    held = [*_threads(), *_temporary_files()]
    if sys.platform == "linux":
        held += [*_children(), *_descriptors()]
    return frozenset(held)


def leaked_since(before: Snapshot, *, loop_goes_on: bool = False) -> Snapshot:
    """Return what appeared since then and does not go away by itself.

    If the event loop goes on, so do the threads of its default executor.
    """
    if loop_goes_on:
        before |= {each for each in snapshot() if each.label.startswith('thread "asyncio_')}
    deadline = time.monotonic() + PATIENCE
    if snapshot() - before:
        # An error refers to the frames it came through, and to what they had open. Unreferenced
        # objects are garbage, not a leak; Python itself warns if they were open.
        gc.collect()
    while (left := snapshot() - before) and time.monotonic() < deadline:
        block(0.005)
    return left


async def leaked_tasks() -> Snapshot:
    """Return the tasks of the running loop, other than the caller's, that do not end."""
    deadline = time.monotonic() + PATIENCE
    while (tasks := _other_tasks()) and (remaining := deadline - time.monotonic()) > 0:
        await asyncio.wait(tasks, timeout=remaining)
    return frozenset(Held(task, _task_label(task)) for task in tasks)


def sentence(leaked: Iterable[Held]) -> str:
    labels = sorted(held.label for held in leaked)
    return f"the test left behind: {', '.join(labels)}; end or close what a test starts"


def _other_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def _task_label(task: asyncio.Task[object]) -> str:
    coroutine = task.get_coro()
    return f'task "{task.get_name()}" ({getattr(coroutine, "__qualname__", coroutine)})'


def _threads() -> Iterator[Held]:
    # The key is the object: idents are reused once a thread has ended.
    return (Held(thread, f'thread "{thread.name}"') for thread in threading.enumerate())


def _temporary_files() -> Iterator[Held]:
    directory = tempfile.gettempdir()
    return (
        Held(f"{directory}/{name}", f"temporary file {directory}/{name}")
        for name in os.listdir(directory)  # noqa: PTH208 — three times as fast as iterdir
    )


def _children() -> Iterator[Held]:
    # Reading all of /proc takes milliseconds; most tests have no child process.
    if not _has_children():
        return
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pid, name, state, parent = _parse_stat(stat.read_text(errors="replace"))
            if parent == os.getpid():
                zombie = ", a zombie" if state == "Z" else ""
                yield Held(("child", pid), f'child process {pid} ("{name}"{zombie})')


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _parse_stat(stat: str) -> tuple[int, str, str, int]:
    # The name is chosen by the program, so it may contain spaces and brackets.
    pid, _, rest = stat.partition(" (")
    name, _, fields = rest.rpartition(") ")
    state, parent, *_ = fields.split()
    return int(pid), name, state, int(parent)


def _descriptors() -> Iterator[Held]:
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 — three times as fast as iterdir
        # The descriptor that listed the directory is already closed.
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 — likewise
            kind = "socket" if target.startswith("socket:") else "file descriptor"
            yield Held(("descriptor", number, target), f"{kind} {number} ({target})")
