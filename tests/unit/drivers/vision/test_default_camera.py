"""The default camera of a vision service is an optional dependency."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Status
from tests.support.media.pictures import encode_pixels
from tests.support.models.vision_models import solid
from viam.gen.service.vision.v1 import vision_pb2 as vision

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.core.clock import SystemClock
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.node import NodeState
from cogwork.graph.provider import Providers
from cogwork.resource.registry import Registry
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.machine import Machine
from cogwork.robot.unavailable import NotAvailable
from cogwork.wire.table.status import status_of
from cogwork.wire.transports.in_process_call import call

VISION = "/viam.service.vision.v1.VisionService"


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    config = {
        "components": [
            {
                "name": "dead",
                "api": "rdk:component:camera",
                "model": "image_file",
                "attributes": {"color_image_file_path": str(tmp_path / "missing.png")},
            },
            {"name": "alive", "api": "rdk:component:camera", "model": "fake"},
        ],
        "services": [
            {
                "name": "v",
                "api": "rdk:service:vision",
                "model": "fake",
                "attributes": {"camera_name": "dead"},
            }
        ],
    }
    registry = Registry(builtin_models())
    made = Machine(Providers({"built in": registry}), SystemClock(), observe=lambda _: None)
    await made.apply(load(json.dumps(config), LoadContext(registry, tmp_path, {})))
    yield made
    assert await made.aclose() == []


async def ask(machine: Machine, method: str, **fields: Any) -> Any:
    table = build_handler_table(machine, SystemClock(), lambda _: None)
    request = getattr(vision, f"{method}Request")(name="v", **fields)
    return await call(table, f"{VISION}/{method}", request, peer="test", timeout=10)


async def test_calls_that_do_not_need_a_dead_default_camera_work(machine: Machine) -> None:
    states = {name.short: node.state for name, node in machine.nodes.items()}
    assert states == {"dead": NodeState.UNHEALTHY, "alive": NodeState.READY, "v": NodeState.READY}
    image = encode_pixels(".png", solid(255, 0, 0))
    assert (await ask(machine, "GetDetections", image=image)).detections
    assert (await ask(machine, "GetDetectionsFromCamera", camera_name="alive")).detections
    assert (await ask(machine, "GetProperties")).default_camera == "dead"


async def test_calls_that_need_a_dead_default_camera_fail_with_its_reason(
    machine: Machine,
) -> None:
    with pytest.raises(NotAvailable) as raised:
        await ask(machine, "GetDetectionsFromCamera")
    status, words = status_of(raised.value, VISION)
    assert status is Status.UNAVAILABLE
    assert words.startswith("resource rdk:component:camera/dead not available; reason=")
    assert "missing.png" in words
