"""Starting the server on an empty machine, beside a process that only imports the engines.

Each round starts, one after the other: a Python that imports what the server stands on and prints a
line; the server from this environment; and the executable, if `make server` has built it. It takes
the time from the spawn to the line, and the memory once the process is idle.

    python benchmarks/start.py [--rounds 15]
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

MOST = 1.6
DEADLINE = 30.0
SETTLE = 0.3
SERVING = b"serving\t"
BARE = """
import sys
import grpc.aio, pydantic, uvloop
import viam.components.sensor.service, viam.gen.robot.v1.robot_grpc
print("serving", "nothing", sep="\\t", flush=True)
sys.stdin.read()
"""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Start:
    seconds: float
    resident: int
    own: int
    """Memory that no other process shares."""


@dataclass(slots=True)
class Program:
    command: list[str]
    starts: list[Start] = field(default_factory=list)

    def beside(self, other: Program, attribute: str) -> float:
        """The median of the ratios within a round: neighbours share the weather."""
        pairs = zip(self.starts, other.starts, strict=True)
        return float(
            statistics.median(getattr(a, attribute) / getattr(b, attribute) for a, b in pairs)
        )


def executable() -> Path:
    machine = platform.machine()
    system = f"{platform.system().lower()}-{ARCHITECTURES.get(machine, machine)}"
    return Path(__file__).parents[1] / "bin" / system / "cogwork-server"


def programs(config: Path) -> dict[str, Program]:
    server = ["-config", str(config)]
    found = {
        "bare imports": Program([sys.executable, "-c", BARE]),
        "server": Program([sys.executable, "-m", "cogwork.server.main", *server]),
    }
    if executable().exists():
        found["executable"] = Program([str(executable()), *server])
    return found


def surroundings(home: Path) -> dict[str, str]:
    """With byte code, as an installed wheel has it, whether or not the caller writes any."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "COGWORK_HOME": str(home), "PYTHONPYCACHEPREFIX": str(home / "bytecode")}


async def start(command: list[str], environment: Mapping[str, str]) -> Start:
    spawned = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
    )
    try:
        async with asyncio.timeout(DEADLINE):
            await until_serving(process)
            seconds = time.perf_counter() - spawned
            await asyncio.sleep(SETTLE)
            memory = psutil.Process(process.pid).memory_full_info()
            process.terminate()
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Start(seconds, memory.rss, memory.uss)


async def until_serving(process: Process) -> None:
    assert process.stdout is not None
    while not (line := await process.stdout.readline()).startswith(SERVING):
        assert line, "it ended before it served"


async def measure(rounds: int, home: Path) -> tuple[dict[str, Program], dict[str, Start]]:
    """What was measured, and before it one start of each that fills the caches."""
    config = home / "empty.json"
    config.write_text('{"network": {"bind_address": "localhost:0"}}', encoding="utf-8")
    environment = surroundings(home)
    measured = programs(config)
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
    ratio = server.beside(bare, "seconds")
    print(f"{'start of the server':28} {ratio:.3f}x bare imports (at most {MOST})")
    print(f"{'resident memory when idle':28} {server.beside(bare, 'resident'):.3f}x bare imports")
    print(f"{'own memory when idle':28} {server.beside(bare, 'own'):.3f}x bare imports")
    if (packed := measured.get("executable")) is not None:
        print(f"{'start of the executable':28} {packed.beside(server, 'seconds'):.3f}x the server")
        unpacking = first["executable"].seconds - statistics.median(
            start.seconds for start in packed.starts
        )
        print(f"{'unpacking, the first time':28} {unpacking:.3f} s")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
