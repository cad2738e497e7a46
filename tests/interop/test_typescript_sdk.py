"""The public TypeScript SDK in a real browser, over gRPC-web and WebRTC."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine.login import KEYS, ROLES, config, key_of
from tests.support.machine.running import run_server
from tests.support.paths import TESTS

BROWSER = TESTS / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
is_installed = CHROMIUM is not None and (BROWSER / "node_modules").exists()
if not is_installed and not os.environ.get("CI"):
    pytest.skip("run `make browser` to install the SDK and Chromium", allow_module_level=True)


def fake(name: str, api: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:{api}", "model": "fake", "attributes": attributes}


COMPONENTS = [
    {**fake("arm", "component:arm"), "frame": {"parent": "world"}},
    fake("microphone", "component:audio_in"),
    fake("speaker", "component:audio_out"),
    fake("base", "component:base"),
    fake(
        "board",
        "component:board",
        analogs=[{"name": "a"}],
        digital_interrupts=[{"name": "i", "pin": "2"}],
    ),
    fake("button", "component:button"),
    fake("camera", "component:camera"),
    fake("encoder", "component:encoder"),
    fake("gantry", "component:gantry"),
    fake("thing", "component:generic"),
    fake("gripper", "component:gripper"),
    fake("gamepad", "component:input_controller"),
    fake("motor", "component:motor", position_reporting=True),
    fake("compass", "component:movement_sensor"),
    fake("tracker", "component:pose_tracker"),
    fake("battery", "component:power_sensor"),
    fake("sensor", "component:sensor"),
    fake("servo", "component:servo"),
    fake("switch", "component:switch"),
]
SERVICES = [
    fake("discovery", "service:discovery"),
    fake("helper", "service:generic"),
    fake("motion", "service:motion"),
    fake("navigation", "service:navigation"),
    fake("slam", "service:slam"),
    fake("vision", "service:vision"),
    fake("world", "service:world_state_store"),
]
ANSWERS = {
    "gRPC-web": re.compile(r"OK|code (3|5|9|12): .+", re.DOTALL),
    # This SDK reports every error as unknown.
    "webrtc": re.compile(r"OK|code 2: .+", re.DOTALL),
}
"""By transport: success, or what the fake itself says, that it lacks something or cannot do it."""


async def run_node(
    script: str, *arguments: str, prefix: Sequence[str] = (), **environment: str
) -> Any:
    """Run a script, and return what it prints as JSON. `prefix`: what the command begins with."""
    process = await asyncio.create_subprocess_exec(
        *(*prefix, "node", str(BROWSER / script), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "CHROMIUM": CHROMIUM or "", **environment},
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 100)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.parametrize("transport", ANSWERS)
async def test_every_client(tmp_path: Path, picture: bytes, transport: str) -> None:
    machine = {**config(*ROLES), "components": COMPONENTS, "services": SERVICES}
    async with run_server(machine, tmp_path) as server:
        await server.out.wait_for("applied in")
        outcomes: dict[str, str] = await run_node(
            "sdk.mjs",
            *(server.url, KEYS["owner"], key_of("owner"), transport),
            PICTURE=base64.b64encode(picture).decode(),
        )
    if transport == "webrtc":
        assert outcomes.pop("connection") == "connected"
    others = {name: outcome for name, outcome in outcomes.items() if outcome != "OK"}
    print(f"{len(outcomes)} methods: {len(outcomes) - len(others)} OK, {len(others)} refused")
    for name, outcome in others.items():
        print(f"  {name}: {outcome}")
    assert [name for name in outcomes if not ANSWERS[transport].fullmatch(outcomes[name])] == []
    assert len(outcomes) > 120
    assert len(outcomes) - len(others) > 85


@pytest.fixture
def picture() -> bytes:
    import cv2
    import numpy as np

    return cv2.imencode(".jpg", np.full((48, 64, 3), 128, np.uint8))[1].tobytes()
