"""A whole machine on a port of this computer, for as long as a test lasts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cogwork.config.load import load
from cogwork.config.surroundings import Surroundings
from cogwork.core.clock import SystemClock
from cogwork.drivers.table import builtin_models
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Providers
from cogwork.resource import sdk
from cogwork.resource.model import Model
from cogwork.resource.neighbours import Neighbours
from cogwork.resource.registry import Registry, plugged_in
from cogwork.robot.health import health_of
from cogwork.robot.machine import Machine
from cogwork.robot.table import handler_table
from cogwork.wire.grpc import grpc_server

assert sdk.VERSION  # it comes before anything else of the SDK
from grpclib.client import Channel  # noqa: E402
from grpclib.const import Cardinality  # noqa: E402
from grpclib.metadata import Deadline  # noqa: E402

Config = Mapping[str, Any]

LONGEST = 30.0
"""Seconds that a call may take: the longest motion of a contract takes some."""


class Impatient(Channel):
    """A call that nobody answers fails its test, and does not hang it."""

    def request(
        self,
        name: str,
        cardinality: Cardinality,
        request_type: Any,
        reply_type: Any,
        *,
        timeout: float | None = None,
        deadline: Deadline | None = None,
        metadata: Any = None,
    ) -> Any:
        if timeout is None and deadline is None:
            timeout = LONGEST
        return super().request(
            name,
            cardinality,
            request_type,
            reply_type,
            timeout=timeout,
            deadline=deadline,
            metadata=metadata,
        )


class Bench:
    """What a contract works at: the machine, and a client's connection to it."""

    def __init__(self, machine: Machine, registry: Registry, channel: Channel) -> None:
        self.machine = machine
        self.channel = channel
        self._registry = registry

    async def run(self, *resources: Config) -> None:
        """Until these are built, or known not to be. What else there was is closed."""
        sections: dict[str, list[Config]] = {"components": [], "services": []}
        for resource in resources:
            sections[f"{str(resource['api']).split(':')[1]}s"].append(resource)
        loaded = load(json.dumps(sections), Surroundings(self._registry, Path.home(), {}))
        complaints = [located.diagnostic.message for located in loaded.faults]
        assert not loaded.has_errors, f"the configuration is not sound: {'; '.join(complaints)}"
        await self.machine.apply(loaded)

    def assert_ready(self, name: ResourceName) -> None:
        health = health_of(self.machine.nodes[name])
        assert health.reason is None, f"{name} is not ready: {health.reason}"


@contextlib.asynccontextmanager
async def bench(models: Sequence[Model] = ()) -> AsyncIterator[Bench]:
    """With these models, beside those that are built in and those of installed packages."""
    clock = SystemClock()
    neighbours = Neighbours()
    registry = Registry([*models, *builtin_models(neighbours), *plugged_in()])
    machine = Machine(Providers({"built in": registry}), clock)
    machine.introduce(neighbours)
    server = grpc_server(handler_table(machine, clock, lambda _: None))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = Impatient("127.0.0.1", port)
    watches = [
        asyncio.ensure_future(watch)
        for watch in (machine.operations.watch(), machine.sessions.watch())
    ]
    try:
        yield Bench(machine, registry, channel)
    finally:
        channel.close()
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        unfinished = await machine.aclose()
        await server.stop(None)
        assert not unfinished, f"{', '.join(map(str, unfinished))} did not close"
