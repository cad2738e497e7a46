"""Start-up of the server with an empty configuration, relative to a process that only imports.

Each round starts in sequence: a Python process that imports the server's dependencies and prints a
line; the server from this environment; and the executable, if `make server` has built it. Measures
the time from spawn to the line, and the memory once the process is idle.

    python benchmarks/startup.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MAX_RATIO = 1.6
DEADLINE = 30.0
SETTLE = 0.3
SERVING = b"serving\t"
BARE_PROGRAM = """
import sys
import grpc.aio, pydantic, uvloop
import viam.components.sensor.service, viam.gen.robot.v1.robot_grpc
print("serving", "nothing", sep="\\t", flush=True)
sys.stdin.read()
"""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class StartSample:
    seconds: float
    resident: int
    own: int
    """Memory that is not shared with other processes."""


@dataclass(slots=True)
class Program:
    command: list[str]
    starts: list[StartSample] = field(default_factory=list)

    def median_ratio(self, other: Program, attribute: str) -> float:
        """Return the median of the ratios within a round, as adjacent runs have similar load."""
        pairs = zip(self.starts, other.starts, strict=True)
        return float(
            statistics.median(getattr(a, attribute) / getattr(b, attribute) for a, b in pairs)
        )


def executable_path() -> Path:
    machine = platform.machine()
    system = f"{platform.system().lower()}-{ARCHITECTURES.get(machine, machine)}"
    return Path(__file__).parents[1] / "bin" / system / "cogwork-server"


def find_programs(config: Path) -> dict[str, Program]:
    server = ["-config", str(config)]
    found = {
        "bare imports": Program([sys.executable, "-c", BARE_PROGRAM]),
        "server": Program([sys.executable, "-m", "cogwork.server.main", *server]),
    }
    if executable_path().exists():
        found["executable"] = Program([str(executable_path()), *server])
    return found


def make_environment(home: Path) -> dict[str, str]:
    """Return an environment that writes byte code, like an installed wheel."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "COGWORK_HOME": str(home), "PYTHONPYCACHEPREFIX": str(home / "bytecode")}


async def start(command: list[str], environment: Mapping[str, str]) -> StartSample:
    spawned = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
    )
    try:
        async with asyncio.timeout(DEADLINE):
            await wait_until_serving(process)
            seconds = time.perf_counter() - spawned
            await asyncio.sleep(SETTLE)
            memory = psutil.Process(process.pid).memory_full_info()
            process.terminate()
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return StartSample(seconds, memory.rss, memory.uss)


async def wait_until_serving(process: Process) -> None:
    assert process.stdout is not None
    while not (line := await process.stdout.readline()).startswith(SERVING):
        assert line, "the server exited before it was serving"


async def measure(rounds: int, home: Path) -> tuple[dict[str, Program], dict[str, StartSample]]:
    """Return the samples, and one initial start of each program that warms the caches."""
    config = home / "empty.json"
    config.write_text('{"network": {"bind_address": "localhost:0"}}', encoding="utf-8")
    environment = make_environment(home)
    measured = find_programs(config)
    first = {name: await start(one.command, environment) for name, one in measured.items()}
    for _ in range(rounds):
        for program in measured.values():
            program.starts.append(await start(program.command, environment))
    return measured, first


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    with tempfile.TemporaryDirectory() as home:
        measured, first = asyncio.run(measure(parser.parse_args().rounds, Path(home)))
    bare, server = measured["bare imports"], measured["server"]
    ratio = server.median_ratio(bare, "seconds")
    print(f"{'start of the server':28} {ratio:.3f}x bare imports (at most {MAX_RATIO})")
    print(
        f"{'resident memory when idle':28} {server.median_ratio(bare, 'resident'):.3f}x bare "
        "imports"
    )
    print(f"{'own memory when idle':28} {server.median_ratio(bare, 'own'):.3f}x bare imports")
    if (packed := measured.get("executable")) is not None:
        print(
            f"{'start of the executable':28} {packed.median_ratio(server, 'seconds'):.3f}x the "
            "server"
        )
        unpacking = first["executable"].seconds - statistics.median(
            start.seconds for start in packed.starts
        )
        print(f"{'unpacking, the first time':28} {unpacking:.3f} s")
    return 0 if ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
