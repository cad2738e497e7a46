"""What the process as a whole needs before anything is imported or served."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import resource
import signal
import sys
import time
import traceback
from collections.abc import Coroutine, MutableMapping
from typing import Any

from cogwork.core.memory import keep_large_blocks

_FILES = 65536

_log = logging.getLogger("rdk.stack_traces")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Before grpc is imported."""
    # Its core would complain on stderr at every child process that is started.
    environment["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    # What goes wrong inside it is told to whoever called; its own lines follow no log rule.
    environment.setdefault("GRPC_VERBOSITY", "NONE")
    keep_large_blocks()
    _allow_many_files()


def run(main: Coroutine[Any, Any, int]) -> int:
    """On uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def log_to(stream: Any, *, debug: bool) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    for chatty in ("asyncio", "grpc", "grpc._cython.cygrpc", "uvicorn", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def show_stacks_on_signal() -> None:
    """SIGUSR1: what every task and every thread is doing. Threads also when the loop is stuck."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, _log_tasks)
    faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True, chain=True)


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


class _Lines(logging.Formatter):
    """Tab-separated, in UTC to the millisecond, as log readers of this API expect."""

    converter = time.gmtime  # type: ignore[assignment]

    def format(self, record: logging.LogRecord) -> str:
        moment = f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03}Z"
        place = f"{record.filename}:{record.lineno}"
        words = [moment, record.levelname, record.name, place, record.getMessage()]
        if record.exc_info:
            words.append("\n" + self.formatException(record.exc_info))
        return "\t".join(words)
