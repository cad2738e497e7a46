"""What the process as a whole needs before anything is imported or served."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import resource
import signal
import sys
import traceback
from collections.abc import Coroutine, MutableMapping
from typing import Any

from cogwork.core.memory import keep_large_blocks

_FILES = 65536
_TURN = 0.0005
"""Seconds that a thread which computes keeps the loop waiting, several times in every call."""
STDIN, STDOUT, STDERR = range(3)

_log = logging.getLogger("rdk.stack_traces")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Before grpc is imported."""
    _have_standard_streams()
    _stop_while_starting()
    # Its core would complain on stderr at every child process that is started.
    environment["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # What goes wrong inside it is told to whoever called; its own lines follow no log rule.
    environment.setdefault("GRPC_VERBOSITY", "NONE")
    # Which would look through every installed package for plug-ins of its own.
    environment.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    keep_large_blocks()
    sys.setswitchinterval(_TURN)
    _allow_many_files()


def run(main: Coroutine[Any, Any, int]) -> int:
    """On uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def show_stacks_on_signal() -> None:
    """SIGUSR1: what every task and every thread is doing. Threads also when the loop is stuck."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _log_tasks)
    faulthandler.register(signal.SIGUSR1, STDERR, all_threads=True, chain=True)


def _have_standard_streams() -> None:
    """One that was closed would be the next file that is opened, and get the log."""
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _stop_while_starting() -> None:
    """Until the server itself listens to signals, there is nothing to close."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))


def _allow_many_files() -> None:
    """A connection takes three descriptors, and many systems start with a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _log_tasks() -> None:
    for task in asyncio.all_tasks():
        frames = "".join(traceback.format_list([_summary(frame) for frame in task.get_stack()]))
        _log.warning("task %s:\n%s", task.get_name(), frames)


def _summary(frame: Any) -> traceback.FrameSummary:
    code = frame.f_code
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name)
