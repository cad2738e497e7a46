"""A complete machine on a local port, for the duration of a test."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.core.clock import SystemClock
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Providers
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry, entry_point_models
from cogwork.resource.sdk import clean_import as sdk
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.machine import Machine
from cogwork.robot.status.health import health_of
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from grpclib.client import Channel  # noqa: E402
from grpclib.const import Cardinality  # noqa: E402
from grpclib.metadata import Deadline  # noqa: E402

if TYPE_CHECKING:
    from cogwork.wire.transports.webrtc_peers import WebRtcPeers

Config = Mapping[str, Any]

CALL_TIMEOUT = 30.0
"""Maximum seconds for a call. The longest motion of a contract takes several seconds."""


class TimeoutChannel(Channel):
    """A channel whose calls time out, so that a missing reply does not hang the test."""

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
            timeout = CALL_TIMEOUT
        return super().request(
            name,
            cardinality,
            request_type,
            reply_type,
            timeout=timeout,
            deadline=deadline,
            metadata=metadata,
        )


class Harness:
    """The machine under test, and a client connection to it."""

    def __init__(self, machine: Machine, registry: Registry, channel: Channel, port: int) -> None:
        self.machine = machine
        self.channel = channel
        self.port = port
        self._registry = registry

    async def run(self, *resources: Config) -> None:
        """Apply a configuration with these resources and wait until it has been applied."""
        sections: dict[str, list[Config]] = {"components": [], "services": []}
        for resource in resources:
            sections[f"{str(resource['api']).split(':')[1]}s"].append(resource)
        loaded = load(json.dumps(sections), LoadContext(self._registry, Path.home(), {}))
        complaints = [located.diagnostic.message for located in loaded.diagnostics]
        assert not loaded.has_errors, f"invalid configuration: {'; '.join(complaints)}"
        await self.machine.apply(loaded)

    def assert_ready(self, name: ResourceName) -> None:
        health = health_of(self.machine.nodes[name])
        assert health.reason is None, f"{name} is not ready: {health.reason}"


@contextlib.asynccontextmanager
async def running_harness(
    models: Sequence[Model] = (), find_peers: Callable[[], WebRtcPeers | None] | None = None
) -> AsyncIterator[Harness]:
    """Run a machine with these models, the built-in models and the models of installed packages.

    `find_peers` returns the WebRTC clients; None disables WebRTC.
    """
    clock = SystemClock()
    neighbours = MachineAccess()
    registry = Registry([*models, *builtin_models(neighbours), *entry_point_models()])
    machine = Machine(Providers({"built in": registry}), clock)
    machine.bind(neighbours)
    table = build_handler_table(machine, clock, lambda _: None, find_peers=find_peers)
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = TimeoutChannel("127.0.0.1", port)
    watches = [
        asyncio.ensure_future(watch)
        for watch in (machine.operations.watch(), machine.sessions.watch())
    ]
    try:
        yield Harness(machine, registry, channel, port)
    finally:
        channel.close()
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        unfinished = await machine.aclose()
        await server.stop(None)
        assert not unfinished, f"{', '.join(map(str, unfinished))} did not close"
