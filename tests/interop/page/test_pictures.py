"""Pictures of every view, for the documentation: COGWORK_PAGE_PICTURES is where they are kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page
from tests.interop.test_vision import DEMO, camera, service, vision_with_model
from tests.modules.make import stub
from tests.support.control_page import needs_browser, open_page, open_view
from tests.support.machine.running import Config, run_server
from tests.support.waiting import pass_time

pytestmark = [needs_browser, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

KEPT = os.environ.get("COGWORK_PAGE_PICTURES")
QUALITY = 82
WAIT = 4.0 if KEPT else 0.8
"""Seconds for values to arrive."""


def component(name: str, api: str, model: str = "fake", **more: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{api}", "model": model, **more}


def machine(directory: Path) -> Config:
    """A machine with something in every view."""
    return {
        "network": {"fqdn": "press-4.example", "bind_address": "localhost:0"},
        "components": [
            camera("belt", "fake", scene="conveyor", seed=4, width=640, height=480),
            camera("gate", "ffmpeg", video_path="rtsp://127.0.0.1:9/gate"),
            component("table", "gantry", frame={"parent": "world", "translation": {"x": 600}}),
            component("picker", "arm", frame={"parent": "table"}),
            component("hand", "gripper", frame={"parent": "picker"}),
            component("drive", "motor"),
            component("cart", "base"),
            component(
                "oven",
                "sensor",
                attributes={"readings": {"temperature": 212.4, "humidity": 11, "door": "closed"}},
            ),
            component("supply", "power_sensor"),
            component("compass", "movement_sensor"),
            component("sorter", "switch", attributes={"labels": ["left", "right"]}),
            component("io", "board", attributes={"analogs": [{"name": "pressure"}]}),
        ],
        "services": [
            *vision_with_model(
                "inspector",
                "onnx_cpu",
                DEMO / "conveyor.onnx",
                camera_name="belt",
                default_minimum_confidence=0.5,
            ),
            service("route", "navigation", "fake"),
        ],
        "jobs": [
            {
                "name": "read-oven",
                "schedule": "1s",
                "resource": "oven",
                "method": "GetReadings",
            }
        ],
        "modules": [{"name": "acme", "type": "local", "executable_path": str(stub(directory))}],
    }


PINS = [
    "rdk:component:motor/drive",
    "rdk:component:base/cart",
    "rdk:component:sensor/oven",
    "rdk:component:switch/sorter",
    "rdk:component:camera/belt",
    "rdk:component:power_sensor/supply",
]
HIDE_PATHS = """() => {
  const PATH = /\\/\\S*\\/machine\\.json/;
  const USUAL = '/etc/press-4/machine.json';
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    texts.currentNode.data = texts.currentNode.data.replace(PATH, USUAL);
}"""
"""Shows a usual path instead of the temporary one of a test."""
VIEWS: dict[str, dict[str, Any]] = {
    "overview": {},
    "control": {"pin": PINS},
    "vision": {"camera": "belt", "service": "inspector", "mode": "live"},
    "configure": {},
    "graph": {},
    "logs": {},
    "modules": {},
    "frames": {},
    "jobs": {},
    "diagnose": {},
}

SERIES: list[tuple[str, Literal["light", "dark"], int, int, list[str]]] = [
    ("", "light", 1280, 800, list(VIEWS)),
    ("-dark", "dark", 1280, 800, ["vision"]),
    ("-phone", "light", 390, 780, ["vision", "control"]),
]
"""The suffix of their names, the theme, the size of the screen, and the views."""


async def take_picture(page: Page, name: str, directory: Path) -> None:
    path = directory / f"page-{name}.jpg"
    await page.evaluate(HIDE_PATHS)
    await page.screenshot(path=path, type="jpeg", quality=QUALITY)
    assert path.stat().st_size > 8000


@pytest.mark.soak
async def test_every_view_has_a_picture(browser: Browser, tmp_path: Path) -> None:
    directory = Path(KEPT).resolve() if KEPT else tmp_path
    text = json.dumps(machine(tmp_path), indent=2)
    async with run_server(text, tmp_path) as server:
        for suffix, scheme, width, height, views in SERIES:
            async with open_page(browser, width=width, height=height, scheme=scheme) as page:
                await open_view(page, server.url)
                draft = text.replace('"width": 640', '"width": 800, "framerate": 30')
                reply = await page.request.get(f"{server.url}/configuration.json")
                kept = json.dumps({"text": draft, "checksum": (await reply.json())["checksum"]})
                await page.evaluate("(kept) => sessionStorage.setItem('cogwork.draft', kept)", kept)
                for view in views:
                    await open_view(page, server.url, view, **VIEWS[view])
                    await pass_time(WAIT)
                    await take_picture(page, f"{view}{suffix}", directory)
