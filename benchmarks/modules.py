"""Fifty modules with ten resources each: start-up, and a change of one resource.

Each round measures in sequence: 50 bare module processes, started at once, until each has replied
to Ready from a minimal parent; and the server with a configuration of the same 50 modules, from the
start of its process until the last of 500 resources is ready. Then one attribute of one resource is
changed repeatedly, against the module's own remove and add, and no other resource may be affected.

    python -m benchmarks.modules [--rounds 3] [--edits 20] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psutil
from viam.gen.app.v1.robot_pb2 import ComponentConfig
from viam.gen.module.v1 import module_pb2 as messages
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.files import atomic

MAX_RATIO = 1.5
RESOURCES_PER_MODULE = 10
"""Number of resources per module."""
DEADLINE = 300.0
POLL_INTERVAL = 0.02
OPTIONS = (
    # The socket file exists shortly before the module listens; after a refusal, gRPC would back off
    # for a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 100),
)
API = "rdk:component:generic"
MODULE = Path(__file__).parent / "parts" / "sdk_module.py"
MODULE_SERVICE = "/viam.module.v1.ModuleService"
ROBOT_SERVICE = "/viam.robot.v1.RobotService"


@dataclass(slots=True)
class Times:
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    """Seconds to remove and add a resource by calling the module directly."""
    edit: list[float] = field(default_factory=list)
    """Seconds from saving the file until the resource is ready."""
    applied: list[float] = field(default_factory=list)
    """The part of `edit` after the file was detected and read, in seconds."""
    cpu_seconds: list[float] = field(default_factory=list)
    """CPU time of the server until all resources were ready."""
    resident: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="run a short version")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.modules, arguments.rounds, arguments.edits = 8, 1, 3
    with tempfile.TemporaryDirectory() as directory:
        program = _write_launcher(Path(directory))
        times = asyncio.run(measure(program, arguments.modules, arguments.rounds, arguments.edits))
    kept = print_report(times, arguments.modules)
    # With a few modules, the start of the server itself dominates.
    return 0 if kept or arguments.quick else 1


async def measure(program: Path, modules: int, rounds: int, edits: int) -> Times:
    times = Times()
    async with _running_server({}) as server:
        times.empty.append(server.memory)
    async with _start_bare_modules(program, 1) as (
        _,
        channels,
    ):  # load the imports into the disk cache
        times.own = [await _remove_and_add(channels[0]) for _ in range(max(edits, 3))]
    for _ in range(rounds):
        async with _start_bare_modules(program, modules) as (seconds, _):
            times.bare.append(seconds)
        await _measure_server(times, program, modules, edits)
    return times


async def _measure_server(times: Times, program: Path, modules: int, edits: int) -> None:
    config = build_config(program, modules)
    async with _running_server(config) as server:
        await server.wait_until_ready({each["name"] for each in config["components"]})
        times.ours.append(time.perf_counter() - server.started)
        times.cpu_seconds.append(server.cpu_seconds)
        times.resident.append(server.memory)
        before = await server.fetch_status()
        edited = config["components"][modules * RESOURCES_PER_MODULE // 2]
        for number in range(edits):
            edited["attributes"] = {"number": number}
            saved = time.perf_counter()
            server.save({**config, "revision": f"edit-{number}"})
            times.applied.append(await server.wait_until_applied(f"edit-{number}"))
            times.edit.append(time.perf_counter() - saved)
        _check_others_untouched(before, await server.fetch_status(), edited["name"])


def build_config(program: Path, modules: int) -> dict[str, Any]:
    names = [f"module-{number}" for number in range(modules)]
    return {
        "network": {"bind_address": "127.0.0.1:0"},
        "modules": [{"name": name, "executable_path": str(program)} for name in names],
        "components": [
            {"name": f"{name}-thing-{number}", "api": API, "model": f"acme:bench:{name}"}
            for name in names
            for number in range(RESOURCES_PER_MODULE)
        ],
    }


def _check_others_untouched(
    before: robot.GetMachineStatusResponse, after: robot.GetMachineStatusResponse, edited: str
) -> None:
    """Check that no other resource and no process changed."""
    changed = {
        new.name.name
        for old, new in zip(before.resources, after.resources, strict=True)
        if new.last_updated != old.last_updated
    }
    assert changed == {edited}, f"expected only {edited} to change, not {sorted(changed)}"


def print_report(times: Times, modules: int) -> bool:
    ratio = statistics.median(a / b for a, b in zip(times.ours, times.bare, strict=True))
    print(
        f"{modules} modules with {modules * RESOURCES_PER_MODULE} resources, {os.cpu_count()} cores"
    )
    print(
        f"bare processes {_format_seconds(times.bare)}; server with all resources "
        f"{_format_seconds(times.ours)}, "
        f"of which CPU time {_format_seconds(times.cpu_seconds)}: {ratio:.2f} (at most "
        f"{MAX_RATIO})"
    )
    print(
        f"one attribute changed: {_format_ms(times.edit)} from saved to ready, "
        f"of which {_format_ms(times.applied)} "
        f"to apply; the module's own remove and add {_format_ms(times.own)}; nothing else changed"
    )
    grown = statistics.median(times.resident) - times.empty[0]
    print(
        f"memory of the server: {statistics.median(times.resident) / 1e6:.0f} MB, of which "
        f"{grown / modules / 1e6:.2f} MB per module with its resources"
    )
    return ratio <= MAX_RATIO


def _format_seconds(seconds: list[float]) -> str:
    return ", ".join(f"{each:.1f}" for each in seconds) + " s"


def _format_ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.1f} ms"


def _write_launcher(directory: Path) -> Path:
    program = directory / "module"
    words = shlex.join([sys.executable, "-I", str(MODULE)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return program


@contextlib.asynccontextmanager
async def _start_bare_modules(
    program: Path, modules: int
) -> AsyncIterator[tuple[float, list[Any]]]:
    """Start the modules and yield the seconds until all were ready, and their channels."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as children:
        parent = f"{directory}/parent.sock"
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_make_parent_handler(),))
        server.add_insecure_port(f"unix:{parent}")
        await server.start()
        addresses = [f"{directory}/module-{number}.sock" for number in range(modules)]
        began = time.perf_counter()
        for number, address in enumerate(addresses):
            children.enter_context(_start_child([str(program), address], f"module-{number}"))
        async with contextlib.AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(
                    grpc.aio.insecure_channel(f"unix:{address}", OPTIONS)
                )
                for address in addresses
            ]
            asking = map(_wait_until_ready, channels, addresses, [parent] * modules)
            async with asyncio.timeout(DEADLINE):
                await asyncio.gather(*asking)
            yield time.perf_counter() - began, channels
        await server.stop(None)


def _make_parent_handler() -> grpc.GenericRpcHandler:
    async def nothing(_: bytes, __: Any) -> bytes:
        return b""

    answered = ("ResourceNames", "Log")
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(nothing) for name in answered
    }
    return grpc.method_handlers_generic_handler(ROBOT_SERVICE.lstrip("/"), handlers)


@contextlib.contextmanager
def _start_child(command: list[str], name: str) -> Iterator[None]:
    environment = {**os.environ, "VIAM_MODULE_NAME": name}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        try:
            yield
        finally:
            child.kill()


async def _wait_until_ready(channel: grpc.aio.Channel, address: str, parent: str) -> None:
    while not Path(address).exists():  # noqa: ASYNC110, ASYNC240 - a child makes it
        await asyncio.sleep(POLL_INTERVAL)
    request = messages.ReadyRequest(parent_address=parent)
    reply = await _call_module(channel, "Ready", request, messages.ReadyResponse)
    assert reply.ready


async def _remove_and_add(channel: grpc.aio.Channel) -> float:
    config = ComponentConfig(
        name="thing", namespace="rdk", type="generic", api=API, model="acme:bench:module-0"
    )
    add = messages.AddResourceRequest(config=config)
    await _call_module(channel, "AddResource", add, messages.AddResourceResponse)
    began = time.perf_counter()
    remove = messages.RemoveResourceRequest(name=f"{API}/thing")
    await _call_module(channel, "RemoveResource", remove, messages.RemoveResourceResponse)
    await _call_module(channel, "AddResource", add, messages.AddResourceResponse)
    took = time.perf_counter() - began
    await _call_module(channel, "RemoveResource", remove, messages.RemoveResourceResponse)
    return took


async def _call_module(channel: grpc.aio.Channel, method: str, request: Any, reply: Any) -> Any:
    """Call a module and retry while it does not listen yet."""
    call: Any = channel.unary_unary(
        f"{MODULE_SERVICE}/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return await call(request, wait_for_ready=True, timeout=DEADLINE)


@dataclass(slots=True)
class MeasuredServer:
    file: Path
    output: Path
    process: psutil.Process
    started: float

    @property
    def memory(self) -> int:
        return int(self.process.memory_info().rss)

    @property
    def cpu_seconds(self) -> float:
        spent = self.process.cpu_times()
        return float(spent.user + spent.system)

    def lines(self) -> list[str]:
        return self.output.read_text().splitlines()

    def save(self, config: dict[str, Any]) -> None:
        atomic.write(self.file, json.dumps(config).encode())

    async def wait_until_ready(self, names: set[str]) -> None:
        """Wait until the log reports the resources ready; polling would add load."""
        waiting = {f"{API}/{name} is ready" for name in names}
        async with asyncio.timeout(DEADLINE):
            while waiting:
                await asyncio.sleep(POLL_INTERVAL)
                waiting -= {line.split("\t")[-1] for line in self.lines()}

    async def wait_until_applied(self, revision: str) -> float:
        """Wait until everything is ready and return the duration that the server reports."""
        words = rf"configuration {revision} applied in ([0-9.e-]+)s: [0-9]+ ready, 0 not"
        async with asyncio.timeout(DEADLINE):
            while True:
                if found := re.search(words, self.output.read_text()):
                    return float(found[1])
                await asyncio.sleep(POLL_INTERVAL / 10)

    async def fetch_status(self) -> robot.GetMachineStatusResponse:
        serving = next(line for line in self.lines() if line.startswith("serving"))
        address = json.loads(serving.partition("\t")[2])["alt_url"].removeprefix("http://")
        async with grpc.aio.insecure_channel(address) as channel:
            call: Any = channel.unary_unary(
                f"{ROBOT_SERVICE}/GetMachineStatus",
                request_serializer=robot.GetMachineStatusRequest.SerializeToString,
                response_deserializer=robot.GetMachineStatusResponse.FromString,
            )
            found: robot.GetMachineStatusResponse = await call(robot.GetMachineStatusRequest())
        found.resources.sort(key=lambda each: each.name.name)
        return found


@contextlib.asynccontextmanager
async def _running_server(config: dict[str, Any]) -> AsyncIterator[MeasuredServer]:
    with tempfile.TemporaryDirectory() as home, _start_server(Path(home), config) as server:
        async with asyncio.timeout(DEADLINE):
            while not any(line.startswith("serving") for line in server.lines()):  # noqa: ASYNC110
                await asyncio.sleep(POLL_INTERVAL)
        yield server


@contextlib.contextmanager
def _start_server(home: Path, config: dict[str, Any]) -> Iterator[MeasuredServer]:
    file, output = home / "machine.json", home / "output"
    file.write_text(json.dumps({"network": {"bind_address": "127.0.0.1:0"}, **config}))
    command = [sys.executable, "-m", "cogwork.server.main", "-config", str(file)]
    environment = {**os.environ, "COGWORK_HOME": str(home)}
    began = time.perf_counter()
    with (
        output.open("w") as out,
        subprocess.Popen(command, stdout=out, env=environment) as child,
    ):
        try:
            yield MeasuredServer(file, output, psutil.Process(child.pid), began)
        finally:
            child.terminate()


if __name__ == "__main__":
    sys.exit(main())
