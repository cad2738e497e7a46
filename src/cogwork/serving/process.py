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
"""Seconds for which a computing thread may block the event loop at a time. It is short, because
one call may be delayed several times, and the delays add up."""
STDIN, STDOUT, STDERR = range(3)

_log = logging.getLogger("rdk.stack_traces")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Set up the process. Call this before grpc is imported."""
    _ensure_standard_streams()
    _exit_on_early_signal()
    # Prevent a warning of grpc on stderr for every child process.
    environment["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # Silence grpc: it reports errors to its callers, and its output ignores the log settings.
    environment.setdefault("GRPC_VERBOSITY", "NONE")
    # Use the resolver of the system: grpc's own resolver ignores parts of its settings.
    environment.setdefault("GRPC_DNS_RESOLVER", "native")
    # Prevent pydantic from searching every installed package for plug-ins.
    environment.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    tune_malloc()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    _raise_file_limit()


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run the coroutine, on uvloop if that is installed, and return its result."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def start_again() -> NoReturn:
    """Replace this process by a new one with the same PID, so that supervisors do not see it
    end."""
    is_bundled = getattr(sys, "frozen", False)
    arguments = sys.argv[1:] if is_bundled else sys.orig_argv[1:]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - it starts itself


def dump_stacks_on_signal() -> None:
    """On SIGUSR1, log the stacks of all tasks and threads.

    Python code collects the stacks, because `faulthandler` reads the stacks of running threads and
    may crash. If the event loop is blocked, the watchdog logs its stack instead.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _log_stacks)


def _ensure_standard_streams() -> None:
    """Open closed standard streams. Otherwise, the next opened file would receive the log."""
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _exit_on_early_signal() -> None:
    """Until the server handles signals, exit immediately on one: there is nothing to close yet."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))


def _raise_file_limit() -> None:
    """Raise the limit of open files: a connection uses three, and the default is often 1,024."""
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
