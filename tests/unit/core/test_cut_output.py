from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAMS = (
    "cogwork.server.main -help",
    "cogwork.server.main -version",
    "cogwork.cli.main --help",
    "cogwork.cli.main completion bash",
    "cogwork.cloud.main --help",
    "cogwork.cloud.main serve --help",
    "cogwork.agent.main --help",
)


@pytest.mark.parametrize("command", PROGRAMS)
def test_command_ends_quietly_when_nobody_reads_it(command: str) -> None:
    """As behind `| head`."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            check=False,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr.decode()) == (0, "")
