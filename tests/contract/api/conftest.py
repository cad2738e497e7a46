"""Runs the contracts another way, if COGWORK_CONTRACT_TRANSPORT says so.

`webrtc`: over WebRTC instead of gRPC. `remote` and `remote of a remote`: through other machines.
`remote over webrtc`: through another machine, to which this one is connected over WebRTC.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self, cast

import grpc.aio
import pytest
from tests.support.waiting import wait_until

from cogwork.config.schema.machine import RemoteConfig
from cogwork.contracts.harness import Config, Harness, TimeoutChannel, running_harness
from cogwork.core.clock import SystemClock
from cogwork.graph.provider import Providers
from cogwork.remotes.manager import RemoteManager
from cogwork.resource.model import Model
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.machine import Machine
from cogwork.server.webrtc import WebRtc
from cogwork.wire.transports.grpc import grpc_server

TRANSPORT = os.environ.get("COGWORK_CONTRACT_TRANSPORT", "grpc")

if TRANSPORT != "grpc":

    @pytest.fixture(autouse=True)
    def other_transport(monkeypatch: pytest.MonkeyPatch) -> None:
        harnesses: dict[str, Any] = {
            "webrtc": harness_over_webrtc,
            "remote": functools.partial(harness_over_remotes, 1),
            "remote of a remote": functools.partial(harness_over_remotes, 2),
            "remote over webrtc": harness_over_webrtc_remote,
        }
        monkeypatch.setattr("cogwork.contracts.contract.running_harness", harnesses[TRANSPORT])


# It compares what runs in the process, where machines talk to each other meanwhile.
NOT_BY_REMOTES = "test_close_leaves_nothing_running"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if TRANSPORT.startswith("remote"):
        items[:] = [each for each in items if NOT_BY_REMOTES not in each.name]


class RemoteHarness(Harness):
    """The machine under test, and a connection to a machine of which it is a remote."""

    def __init__(self, inner: Harness, outer: Sequence[OuterMachine]) -> None:
        channel = TimeoutChannel("127.0.0.1", outer[-1].port)
        super().__init__(inner.machine, inner._registry, channel, outer[-1].port)
        self._outer = outer

    async def run(self, *resources: Config) -> None:
        await super().run(*resources)
        wanted = {(each["api"], each["name"]) for each in resources}
        await wait_until(lambda: all(wanted <= machine.list_ready() for machine in self._outer))


class OuterMachine:
    """A machine with a remote, and with nothing else."""

    def __init__(self, remote_port: int, webrtc: WebRtc | None = None) -> None:
        """`webrtc`: connect over it."""
        clock, providers = SystemClock(), Providers({})
        self._machine = Machine(providers, clock)
        self._remotes = RemoteManager(
            clock,
            providers.notify_changed,
            self._machine.set_discovered,
            webrtc.find_process if webrtc is not None else lambda: None,
            allow_plaintext=False,
        )
        providers.add("remotes", self._remotes)
        self._server = grpc_server(build_handler_table(self._machine, clock, lambda _: None))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._config = RemoteConfig.model_validate(
            {
                "name": "far",
                "address": f"127.0.0.1:{remote_port}",
                "managed_by": f"127.0.0.1:{remote_port}" if webrtc is not None else "",
                "insecure": True,
                "connection_check_interval": "20ms",
            }
        )

    def list_ready(self) -> set[tuple[str, str]]:
        return {
            (str(name.api), name.name)
            for name, node in self._machine.nodes.items()
            if node.usable is not None
        }

    async def __aenter__(self) -> Self:
        await self._server.start()
        self._remotes.apply([self._config])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert not await self._machine.aclose()
        await self._remotes.aclose()
        await self._server.stop(None)


@contextlib.asynccontextmanager
async def harness_over_remotes(hops: int, models: Sequence[Model] = ()) -> AsyncIterator[Harness]:
    async with running_harness(models) as inner, contextlib.AsyncExitStack() as stack:
        outer: list[OuterMachine] = []
        for _ in range(hops):
            port = outer[-1].port if outer else inner.port
            outer.append(await stack.enter_async_context(OuterMachine(port)))
        harness = RemoteHarness(inner, outer)
        try:
            yield harness
        finally:
            harness.channel.close()


@contextlib.asynccontextmanager
async def harness_over_webrtc_remote(models: Sequence[Model] = ()) -> AsyncIterator[Harness]:
    """Both machines share one WebRTC process, which knows nothing of them."""
    webrtc = WebRtc(lambda *_: None, SystemClock())
    try:
        async with (
            running_harness(models, webrtc.find_peers) as inner,
            OuterMachine(inner.port, webrtc) as outer,
        ):
            harness = RemoteHarness(inner, [outer])
            try:
                yield harness
            finally:
                harness.channel.close()
    finally:
        await webrtc.aclose()


@contextlib.asynccontextmanager
async def harness_over_webrtc(models: Sequence[Model] = ()) -> AsyncIterator[Harness]:
    from benchmarks.parts.webrtc_client import WebRtcClient
    from tests.support.network.webrtc_channel import WebRtcChannel

    webrtc = WebRtc(lambda *_: None, SystemClock())
    client = WebRtcClient()
    try:
        async with running_harness(models, webrtc.find_peers) as harness:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{harness.port}") as signaling:
                await client.connect(signaling, "machine")
            harness.channel = cast("Any", WebRtcChannel(client))
            yield harness
            await client.close()
    finally:
        await webrtc.aclose()
