"""Who may end the server, in a process of its own: a second signal ends that process."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, signal, sys, time
from cogwork.server.shutdown import SIGNAL_DEBOUNCE, Shutdown

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


def run(before: str, after: str = "", at_the_end: str = "") -> tuple[int, list[str]]:
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
def test_a_signal_is_a_reason(name: str) -> None:
    assert run(f"os.kill(os.getpid(), signal.{name})") == (0, [f"{name} False", "the end"])


def test_so_is_a_fault() -> None:
    assert run("stop.fail('nothing works')") == (0, ["nothing works True", "the end"])


def test_the_first_reason_counts() -> None:
    assert run("stop.request('a client'); stop.request('another')") == (
        0,
        ["a client False", "the end"],
    )


def test_a_signal_after_a_client_asked_is_not_the_second_one() -> None:
    """A supervisor may ask both ways, and wants a clean end."""
    after = "os.kill(os.getpid(), signal.SIGTERM); await asyncio.sleep(0)"
    assert run("stop.request('a client')", after) == (0, ["a client False", "the end"])


def test_a_signal_that_comes_too_late_is_no_trouble() -> None:
    late = "os.kill(os.getpid(), signal.SIGTERM)"
    assert run("stop.request('a client')", at_the_end=late) == (0, ["a client False", "the end"])


AGAIN = "sys.stdout.flush(); time.sleep(SIGNAL_DEBOUNCE); os.kill(os.getpid(), signal.SIGTERM)"


def test_a_second_signal_ends_it_at_once() -> None:
    assert run("os.kill(os.getpid(), signal.SIGINT)", AGAIN) == (1, ["SIGINT False"])


def test_what_must_be_done_is_done_even_then() -> None:
    acts = (
        "stop.on_forced_exit(lambda: 1 / 0); stop.on_forced_exit(lambda: print('done', flush=True))"
    )
    first = f"{acts}; os.kill(os.getpid(), signal.SIGINT)"
    assert run(first, AGAIN) == (1, ["SIGINT False", "done"])


def test_a_signal_that_somebody_passes_on_is_not_the_second_one() -> None:
    """Ctrl-C under a program that runs this one: both get it, and the program passes it on."""
    twice = "os.kill(os.getpid(), signal.SIGINT); os.kill(os.getpid(), signal.SIGINT)"
    assert run(twice) == (0, ["SIGINT False", "the end"])
