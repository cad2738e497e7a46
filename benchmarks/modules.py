"""Fifty modules with ten resources each: starting them, and changing one resource of one.

Each round measures, one after the other: 50 bare processes of the module, started at once, until
each has answered Ready to a parent that answers what modules ask; and the server with a
configuration of the same 50, from the start of its process until the last of 500 resources is
ready. Then one attribute of one resource is changed again and again, beside the module's own
remove and add, and nothing else may have been touched.

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

from cogwork.core import atomic

MOST = 1.5
EACH = 10
"""Resources of a module."""
DEADLINE = 300.0
LOOK = 0.02
OPTIONS = (
    # Its socket is there a moment before it listens: gRPC, once refused, would wait a second.
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
    """Remove and add, asked of the module itself."""
    edit: list[float] = field(default_factory=list)
    """From the file that is saved to the resource that is ready."""
    applied: list[float] = field(default_factory=list)
    """The part of it that is left when the file has been seen and read."""
    busy: list[float] = field(default_factory=list)
    """What the server itself computed until all were ready."""
    resident: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.modules, arguments.rounds, arguments.edits = 8, 1, 3
    with tempfile.TemporaryDirectory() as directory:
        program = _program(Path(directory))
        times = asyncio.run(measure(program, arguments.modules, arguments.rounds, arguments.edits))
    kept = report(times, arguments.modules)
    # Of a few modules, the start of the server itself is the most.
    return 0 if kept or arguments.quick else 1


async def measure(program: Path, modules: int, rounds: int, edits: int) -> Times:
    times = Times()
    async with _serving({}) as server:
        times.empty.append(server.memory)
    async with _bare(program, 1) as (_, channels):  # what it imports is in the disk's cache then
        times.own = [await _remove_and_add(channels[0]) for _ in range(max(edits, 3))]
    for _ in range(rounds):
        async with _bare(program, modules) as (seconds, _):
            times.bare.append(seconds)
        await _our_round(times, program, modules, edits)
    return times


async def _our_round(times: Times, program: Path, modules: int, edits: int) -> None:
    config = machine(program, modules)
    async with _serving(config) as server:
        await server.ready({each["name"] for each in config["components"]})
        times.ours.append(time.perf_counter() - server.started)
        times.busy.append(server.busy)
        times.resident.append(server.memory)
        before = await server.status()
        edited = config["components"][modules * EACH // 2]
        for number in range(edits):
            edited["attributes"] = {"number": number}
            saved = time.perf_counter()
            server.save({**config, "revision": f"edit-{number}"})
            times.applied.append(await server.applied(f"edit-{number}"))
            times.edit.append(time.perf_counter() - saved)
        _check_others_untouched(before, await server.status(), edited["name"])


def machine(program: Path, modules: int) -> dict[str, Any]:
    names = [f"module-{number}" for number in range(modules)]
    return {
        "network": {"bind_address": "127.0.0.1:0"},
        "modules": [{"name": name, "executable_path": str(program)} for name in names],
        "components": [
            {"name": f"{name}-thing-{number}", "api": API, "model": f"acme:bench:{name}"}
            for name in names
            for number in range(EACH)
        ],
    }


def _check_others_untouched(
    before: robot.GetMachineStatusResponse, after: robot.GetMachineStatusResponse, edited: str
) -> None:
    """Neither a resource, nor the process that it lives in."""
    changed = {
        new.name.name
        for old, new in zip(before.resources, after.resources, strict=True)
        if new.last_updated != old.last_updated
    }
    assert changed == {edited}, (
        f"others than {edited} were touched, or not even that: {sorted(changed)}"
    )


def report(times: Times, modules: int) -> bool:
    ratio = statistics.median(a / b for a, b in zip(times.ours, times.bare, strict=True))
    print(f"{modules} modules with {modules * EACH} resources, {os.cpu_count()} cores")
    print(
        f"bare processes {_all(times.bare)}; the server with all resources {_all(times.ours)}, "
        f"of which it computed {_all(times.busy)}: {ratio:.2f} (at most {MOST})"
    )
    print(
        f"one attribute changed: {_ms(times.edit)} from saved to ready, {_ms(times.applied)} of "
        f"them to apply; the module's own remove and add {_ms(times.own)}; nothing else touched"
    )
    grown = statistics.median(times.resident) - times.empty[0]
    print(
        f"memory of the server: {statistics.median(times.resident) / 1e6:.0f} MB, of which "
        f"{grown / modules / 1e6:.2f} MB for each module with its resources"
    )
    return ratio <= MOST


def _all(seconds: list[float]) -> str:
    return ", ".join(f"{each:.1f}" for each in seconds) + " s"


def _ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.1f} ms"


def _program(directory: Path) -> Path:
    program = directory / "module"
    words = shlex.join([sys.executable, "-I", str(MODULE)])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return program


@contextlib.asynccontextmanager
async def _bare(program: Path, modules: int) -> AsyncIterator[tuple[float, list[Any]]]:
    """How long it took until all were ready, and the channels to them."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as children:
        parent = f"{directory}/parent.sock"
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_parent(),))
        server.add_insecure_port(f"unix:{parent}")
        await server.start()
        addresses = [f"{directory}/module-{number}.sock" for number in range(modules)]
        began = time.perf_counter()
        for number, address in enumerate(addresses):
            children.enter_context(_child([str(program), address], f"module-{number}"))
        async with contextlib.AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(
                    grpc.aio.insecure_channel(f"unix:{address}", OPTIONS)
                )
                for address in addresses
            ]
            asking = map(_until_ready, channels, addresses, [parent] * modules)
            async with asyncio.timeout(DEADLINE):
                await asyncio.gather(*asking)
            yield time.perf_counter() - began, channels
        await server.stop(None)


def _parent() -> grpc.GenericRpcHandler:
    async def nothing(_: bytes, __: Any) -> bytes:
        return b""

    answered = ("ResourceNames", "Log")
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(nothing) for name in answered
    }
    return grpc.method_handlers_generic_handler(ROBOT_SERVICE.lstrip("/"), handlers)


@contextlib.contextmanager
def _child(command: list[str], name: str) -> Iterator[None]:
    environment = {**os.environ, "VIAM_MODULE_NAME": name}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        try:
            yield
        finally:
            child.kill()


async def _until_ready(channel: grpc.aio.Channel, address: str, parent: str) -> None:
    while not Path(address).exists():  # noqa: ASYNC110, ASYNC240 - a child makes it
        await asyncio.sleep(LOOK)
    request = messages.ReadyRequest(parent_address=parent)
    reply = await _asked(channel, "Ready", request, messages.ReadyResponse)
    assert reply.ready


async def _remove_and_add(channel: grpc.aio.Channel) -> float:
    config = ComponentConfig(
        name="thing", namespace="rdk", type="generic", api=API, model="acme:bench:module-0"
    )
    add = messages.AddResourceRequest(config=config)
    await _asked(channel, "AddResource", add, messages.AddResourceResponse)
    began = time.perf_counter()
    remove = messages.RemoveResourceRequest(name=f"{API}/thing")
    await _asked(channel, "RemoveResource", remove, messages.RemoveResourceResponse)
    await _asked(channel, "AddResource", add, messages.AddResourceResponse)
    took = time.perf_counter() - began
    await _asked(channel, "RemoveResource", remove, messages.RemoveResourceResponse)
    return took


async def _asked(channel: grpc.aio.Channel, method: str, request: Any, reply: Any) -> Any:
    """One that does not listen yet, is asked again."""
    call: Any = channel.unary_unary(
        f"{MODULE_SERVICE}/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return await call(request, wait_for_ready=True, timeout=DEADLINE)


@dataclass(slots=True)
class Server:
    file: Path
    output: Path
    process: psutil.Process
    started: float

    @property
    def memory(self) -> int:
        return int(self.process.memory_info().rss)

    @property
    def busy(self) -> float:
        spent = self.process.cpu_times()
        return float(spent.user + spent.system)

    def lines(self) -> list[str]:
        return self.output.read_text().splitlines()

    def save(self, config: dict[str, Any]) -> None:
        atomic.write(self.file, json.dumps(config).encode())

    async def ready(self, names: set[str]) -> None:
        """As its log says, which costs it nothing more."""
        waiting = {f"{API}/{name} is ready" for name in names}
        async with asyncio.timeout(DEADLINE):
            while waiting:
                await asyncio.sleep(LOOK)
                waiting -= {line.split("\t")[-1] for line in self.lines()}

    async def applied(self, revision: str) -> float:
        """With everything ready. How long it says that it took."""
        words = rf"configuration {revision} applied in ([0-9.e-]+)s: [0-9]+ ready, 0 not"
        async with asyncio.timeout(DEADLINE):
            while True:
                if found := re.search(words, self.output.read_text()):
                    return float(found[1])
                await asyncio.sleep(LOOK / 10)

    async def status(self) -> robot.GetMachineStatusResponse:
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
async def _serving(config: dict[str, Any]) -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory() as home, _started(Path(home), config) as server:
        async with asyncio.timeout(DEADLINE):
            while not any(line.startswith("serving") for line in server.lines()):  # noqa: ASYNC110
                await asyncio.sleep(LOOK)
        yield server


@contextlib.contextmanager
def _started(home: Path, config: dict[str, Any]) -> Iterator[Server]:
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
            yield Server(file, output, psutil.Process(child.pid), began)
        finally:
            child.terminate()


if __name__ == "__main__":
    sys.exit(main())
