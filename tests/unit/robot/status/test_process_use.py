from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cogwork.robot.status.process_use import read_process_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HOLD = "held = bytearray({size}); held[::4096] = b'x' * len(held[::4096])"
WAIT = "print('ready', flush=True); import sys; sys.stdin.read()"
MIB = 1 << 20


def start(program: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_memory_of_a_process_includes_its_descendants() -> None:
    child = f"{HOLD.format(size=64 * MIB)}; {WAIT}"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with start(parent) as process:
        use = read_process_tree(process.pid)
        process.kill()
    assert use is not None
    assert use.memory_bytes > 64 * MIB
    assert 0 <= use.uptime_seconds < 60
    assert use.cpu_seconds > 0


def test_excluded_descendants_do_not_count() -> None:
    with start(f"{HOLD.format(size=64 * MIB)}; {WAIT}") as process:
        everything = read_process_tree(os.getpid())
        others = read_process_tree(os.getpid(), [process.pid])
        process.kill()
    assert everything is not None
    assert others is not None
    assert everything.memory_bytes - others.memory_bytes > 50 * MIB


def test_process_that_is_gone_uses_nothing() -> None:
    with start(WAIT) as process:
        process.kill()
    assert read_process_tree(process.pid) is None
