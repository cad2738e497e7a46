"""The server in its own process, with its own home directory."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil


@contextlib.contextmanager
def running_server(
    config: Mapping[str, Any], last_ready: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, psutil.Process]]:
    """Run the server, and yield its address and process when the named resource is ready."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "machine.json"
        file.write_text(json.dumps(config))
        output = Path(home) / "output"
        with (
            output.open("w") as out,
            subprocess.Popen(
                [sys.executable, "-m", "cogwork.server.main", "-config", str(file)],
                stdout=out,
                env={**os.environ, "COGWORK_HOME": home, **(environment or {})},
            ) as child,
        ):
            try:
                yield _wait_until_ready(output, last_ready, child), psutil.Process(child.pid)
            finally:
                child.terminate()


def _wait_until_ready(output: Path, last_ready: str, child: subprocess.Popen[bytes]) -> str:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.05)
            raise RuntimeError(f"the server exited:\n{output.read_text()}")
        lines = output.read_text().splitlines()
        if any(line.endswith(f"/{last_ready} is ready") for line in lines):
            serving = next(line for line in lines if line.startswith("serving"))
            alt: str = json.loads(serving.partition("\t")[2])["alt_url"]
            return alt.removeprefix("http://")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
