"""Shutdown requests, tested in a child process because a second signal kills it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, signal, sys, time
from cogwork.serving.shutdown import SIGNAL_DEBOUNCE, Shutdown

async def main():
    stop = Shutdown()
    stop.install_signal_handlers()
    {before}
    print(await stop.requested, stop.failed)
    {after}
    stop.limit_exit_time()

asyncio.run(main())
{at_the_end}
print("the end")
"""


def run_program(before: str, after: str = "", at_the_end: str = "") -> tuple[int, list[str]]:
    program = PROGRAM.format(before=before, after=after, at_the_end=at_the_end)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Traceback (most recent call last)" not in done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_signal_requests_the_shutdown(name: str) -> None:
    assert run_program(f"os.kill(os.getpid(), signal.{name})") == (0, [f"{name} False", "the end"])


def test_fail_requests_the_shutdown() -> None:
    assert run_program("stop.fail('nothing works')") == (0, ["nothing works True", "the end"])


def test_first_shutdown_reason_counts() -> None:
    assert run_program("stop.request('a client'); stop.request('another')") == (
        0,
        ["a client False", "the end"],
    )


def test_signal_after_a_client_request_counts_as_the_first() -> None:
    """A supervisor may request and signal, and expects a clean shutdown."""
    after = "os.kill(os.getpid(), signal.SIGTERM); await asyncio.sleep(0)"
    assert run_program("stop.request('a client')", after) == (0, ["a client False", "the end"])


def test_signal_after_the_shutdown_is_tolerated() -> None:
    late = "os.kill(os.getpid(), signal.SIGTERM)"
    assert run_program("stop.request('a client')", at_the_end=late) == (
        0,
        ["a client False", "the end"],
    )


SECOND_SIGNAL = (
    "sys.stdout.flush(); time.sleep(SIGNAL_DEBOUNCE); os.kill(os.getpid(), signal.SIGTERM)"
)


def test_second_signal_exits_at_once() -> None:
    assert run_program("os.kill(os.getpid(), signal.SIGINT)", SECOND_SIGNAL) == (
        1,
        ["SIGINT False"],
    )


def test_forced_exit_runs_its_callbacks() -> None:
    acts = (
        "stop.on_forced_exit(lambda: 1 / 0); stop.on_forced_exit(lambda: print('done', flush=True))"
    )
    first = f"{acts}; os.kill(os.getpid(), signal.SIGINT)"
    assert run_program(first, SECOND_SIGNAL) == (1, ["SIGINT False", "done"])


def test_forwarded_signal_does_not_count_as_the_second() -> None:
    """With Ctrl-C, a parent program and the server get the signal, and the parent forwards it."""
    twice = "os.kill(os.getpid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)"
    assert run_program(twice) == (0, ["SIGINT False", "the end"])
