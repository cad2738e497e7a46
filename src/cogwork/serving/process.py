"""Process-wide setup: environment, signals, limits and the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Coroutine, Iterable, MutableMapping
from types import FrameType
from typing import Any, NoReturn

from cogwork.core.malloc import tune_malloc
from cogwork.logs.pipeline import EXTRA_LINES

_MAX_OPEN_FILES = 65536
_SWITCH_INTERVAL = 0.0005
"""Seconds that a computing thread may keep the loop waiting; a call waits several times."""
STDIN, STDOUT, STDERR = range(3)

_log = logging.getLogger("rdk.stack_traces")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Set up the process. Call it before grpc is imported."""
    _ensure_standard_streams()
    _exit_on_early_signal()
    # Otherwise grpc prints a warning to stderr for every child process that is started.
    environment["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # grpc reports errors to its callers; the lines that it prints ignore our log rules.
    environment.setdefault("GRPC_VERBOSITY", "NONE")
    # Otherwise pydantic searches every installed package for plug-ins.
    environment.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    tune_malloc()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    _raise_file_limit()


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run the coroutine, on uvloop if it is installed, and return its result."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def start_again() -> NoReturn:
    """Replace this process by a new one with the same ID, so that supervisors see no end."""
    is_bundled = getattr(sys, "frozen", False)
    arguments = sys.argv[1:] if is_bundled else sys.orig_argv[1:]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - it starts itself


def dump_stacks_on_signal() -> None:
    """On SIGUSR1, log the stacks of all tasks and threads.

    Python does it between two instructions, because `faulthandler` reads the stacks of threads
    while they change and may crash. The stack of a loop that is stuck is logged by the watchdog.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _log_stacks)


def _ensure_standard_streams() -> None:
    """Open standard streams that are closed, or the next opened file would receive the log."""
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _exit_on_early_signal() -> None:
    """Exit on signals at once: until the server handles them, there is nothing to close."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))


def _raise_file_limit() -> None:
    """Raise the limit: a connection takes three descriptors, and the default is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_MAX_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _log_stacks() -> None:
    for task in asyncio.all_tasks():
        _log_stack(f"task {task.get_name()}", task.get_stack())
    frames = sys._current_frames()  # noqa: SLF001 - no public API
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        stack = [each for each, _ in traceback.walk_stack(frame)] if frame is not None else []
        _log_stack(f"thread {thread.name}", stack[::-1])


def _log_stack(owner: str, stack: Iterable[FrameType]) -> None:
    lines = "".join(traceback.format_list([_summarize_frame(frame) for frame in stack]))
    _log.warning("%s:", owner, extra={EXTRA_LINES: lines.rstrip("\n")})


def _summarize_frame(frame: FrameType) -> traceback.FrameSummary:
    code = frame.f_code
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name)
