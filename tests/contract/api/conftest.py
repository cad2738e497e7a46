"""Runs the contracts over WebRTC instead of gRPC, with COGWORK_CONTRACT_TRANSPORT=webrtc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import grpc.aio
import pytest

from cogwork.contracts.harness import Harness, running_harness
from cogwork.core.clock import SystemClock
from cogwork.resource.model import Model

if os.environ.get("COGWORK_CONTRACT_TRANSPORT") == "webrtc":

    @pytest.fixture(autouse=True)
    def over_webrtc(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cogwork.contracts.contract.running_harness", harness_over_webrtc)


@contextlib.asynccontextmanager
async def harness_over_webrtc(models: Sequence[Model] = ()) -> AsyncIterator[Harness]:
    from benchmarks.parts.webrtc_client import WebRtcClient
    from tests.webrtc_channel import WebRtcChannel

    from cogwork.server.webrtc import WebRtc

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
