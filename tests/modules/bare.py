"""A module by itself: its process, and a parent that answers what modules ask of one.

For tests of the peers, and as what a server that runs modules is measured against.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf.json_format import ParseDict
from tests.support.machine.running import DEADLINE, Output

from cogwork.graph.name import Api, ResourceName
from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.services.api_methods import load_methods
from cogwork.wire.clients.channel import SdkChannel
from cogwork.wire.table.grpc_services import add_standard_services
from cogwork.wire.table.handlers import HandlerTable, Stream, methods_from_service
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.v1.robot_pb2 import ComponentConfig  # noqa: E402
from viam.gen.common.v1.common_pb2 import LogEntry  # noqa: E402
from viam.gen.module.v1.module_grpc import ModuleServiceStub  # noqa: E402
from viam.gen.module.v1.module_pb2 import (  # noqa: E402
    AddResourceRequest,
    ReadyRequest,
    ReadyResponse,
    ReconfigureResourceRequest,
    RemoveResourceRequest,
    ValidateConfigRequest,
    ValidateConfigResponse,
)
from viam.gen.robot.v1.robot_grpc import UnimplementedRobotServiceBase  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import LogResponse, ResourceNamesResponse  # noqa: E402
from viam.resource.base import ResourceBase  # noqa: E402


@dataclass
class Parent:
    """Where it serves, and what it was told."""

    address: str
    resources: tuple[ResourceBase, ...] = ()
    logs: list[LogEntry] = field(default_factory=list)
    asked: int = 0
    """How many times for the names of its resources."""

    async def logged(self, words: str, level: str) -> LogEntry:
        async with asyncio.timeout(DEADLINE):
            while True:
                for each in self.logs:
                    if words in each.message and each.level == level:
                        return each
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def parent(directory: Path, *resources: ResourceBase) -> AsyncIterator[Parent]:
    """Serves RobotService's ResourceNames and Log, reflection, and these resources."""
    serving = Parent(str(directory / "parent.sock"), resources)
    server = grpc_server(_table(serving))
    server.add_insecure_port(f"unix:{serving.address}")
    await server.start()
    try:
        yield serving
    finally:
        await server.stop(None)


def _table(serving: Parent) -> HandlerTable:
    table = HandlerTable()
    table.add("viam.robot.v1.RobotService", lambda: methods_from_service(_RobotService(serving)))
    named = {ResourceName(_api(each), each.name): each for each in serving.resources}
    apis = {_api(each) for each in serving.resources}
    for api in apis:
        load = partial(load_methods, PUBLIC_APIS[api], named.__getitem__)
        table.add(SERVICE_BY_API[api], load)
    add_standard_services(table)
    return table


def _api(resource: ResourceBase) -> Api:
    return Api.parse(str(resource.API))


class _RobotService(UnimplementedRobotServiceBase):
    def __init__(self, serving: Parent) -> None:
        self._serving = serving

    async def ResourceNames(self, stream: Stream) -> None:  # type: ignore[override]  # noqa: N802
        self._serving.asked += 1
        names = [type(each).get_resource_name(each.name) for each in self._serving.resources]
        await stream.send_message(ResourceNamesResponse(resources=names))

    async def Log(self, stream: Stream) -> None:  # type: ignore[override]  # noqa: N802
        self._serving.logs.extend(stream.request.logs)
        await stream.send_message(LogResponse())


@dataclass
class Bare:
    """One module that runs."""

    process: asyncio.subprocess.Process
    address: str
    carrier: grpc.aio.Channel
    out: Output
    err: Output

    @property
    def channel(self) -> Any:
        """For the SDK's clients of what it serves."""
        return SdkChannel(self.carrier)

    @property
    def said(self) -> str:
        return f"{self.out.text}\n{self.err.text}"

    async def ready(self, parent: Parent, within: float = DEADLINE) -> ReadyResponse:
        request = ReadyRequest(parent_address=parent.address)
        await self.serves(within)
        answer: ReadyResponse = await self._stub.Ready(request, timeout=within)
        return answer

    async def serves(self, within: float = DEADLINE) -> None:
        """Its socket is there a moment before it listens: gRPC, once refused, waits a second."""
        async with asyncio.timeout(within):
            while not self._listens():
                assert self.process.returncode is None, f"it exited:\n{self.said}"
                await asyncio.sleep(0.001)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as attempt:
            return attempt.connect_ex(self.address) == 0

    async def validate(self, config: ComponentConfig) -> ValidateConfigResponse:
        request = ValidateConfigRequest(config=config)
        answer: ValidateConfigResponse = await self._stub.ValidateConfig(request, timeout=DEADLINE)
        return answer

    async def add(
        self, config: ComponentConfig, dependencies: Iterable[str] = (), within: float = DEADLINE
    ) -> None:
        request = AddResourceRequest(config=config, dependencies=dependencies)
        await self._stub.AddResource(request, timeout=within)

    async def reconfigure(
        self, config: ComponentConfig, dependencies: Iterable[str] = (), within: float = DEADLINE
    ) -> None:
        request = ReconfigureResourceRequest(config=config, dependencies=dependencies)
        await self._stub.ReconfigureResource(request, timeout=within)

    async def remove(self, config: ComponentConfig, within: float = DEADLINE) -> None:
        request = RemoveResourceRequest(name=f"{config.api}/{config.name}")
        await self._stub.RemoveResource(request, timeout=within)

    async def exit_code(self, within: float = DEADLINE) -> int:
        """Looked at, not awaited: asyncio waits for those too who hold its output open."""
        try:
            async with asyncio.timeout(within):
                while (code := self.process.returncode) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        except TimeoutError:
            raise AssertionError(f"it still runs after {within:g} s:\n{self.said}") from None
        return code

    async def stop(self, within: float = DEADLINE) -> int:
        """Hung up on first: the SDK on Python 3.12 stays for as long as anybody is connected.

        An error keeps the call that it came from, and a call its connection.
        """
        await self.carrier.close()
        gc.collect()
        self.process.send_signal(signal.SIGTERM)
        return await self.exit_code(within)

    @property
    def _stub(self) -> ModuleServiceStub:
        return ModuleServiceStub(self.channel)


@contextlib.asynccontextmanager
async def module(
    executable: Path,
    directory: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Bare]:
    """Started as a server starts one; ended with everything it started, when it is not over."""
    address = str(directory / f"{executable.name}.sock")
    process = await asyncio.create_subprocess_exec(
        executable,
        address,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
        limit=1 << 24,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = Output(), Output()
    loop = asyncio.get_running_loop()
    readers = [
        loop.create_task(out.follow(process.stdout)),
        loop.create_task(err.follow(process.stderr)),
    ]
    try:
        async with grpc.aio.insecure_channel(f"unix:{address}") as carrier:
            yield Bare(process, address, carrier, out, err)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        # Whoever it started may hold its output open.
        await asyncio.wait_for(asyncio.gather(*readers), DEADLINE)
        # Its transport closes its pipes a turn of the loop later.
        await asyncio.sleep(0)


def config(
    name: str, api: str, model: str, attributes: Mapping[str, Any] | None = None
) -> ComponentConfig:
    """As a server sends it."""
    namespace, kind, _ = api.split(":")
    made = ComponentConfig(name=name, namespace=namespace, type=kind, api=api, model=model)
    ParseDict(dict(attributes or {}), made.attributes)
    return made
