"""Camera images for browsers, tested without a network."""

from __future__ import annotations

import asyncio
import html
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.support.media.foreign_camera import ForeignCamera
from tests.support.media.pictures import encode_pixels
from tests.support.models.vision_models import CAMERA, Still, solid
from tests.unit.control.asgi import send_request
from tests.unit.robot.bench import NO_LOGIN, NO_SITE

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.schema.fields import Attributes
from cogwork.control import camera_images
from cogwork.control.http import MachineApp
from cogwork.control.page import render_page
from cogwork.core.clock import SystemClock
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import ModelName
from cogwork.graph.provider import Providers
from cogwork.logs.ring_buffer import RingBuffer
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry
from cogwork.robot.event_journal import EventJournal
from cogwork.robot.machine import Machine
from cogwork.robot.status.server_load import ServerLoad
from cogwork.robot.status.server_report import ServerReport
from cogwork.robot.status.update_file import UpdateFile
from cogwork.wire.table.handlers import HandlerTable

Build = Callable[[], Any]


@asynccontextmanager
async def run_machine(**cameras: Build) -> AsyncIterator[Machine]:
    """Run a machine with cameras of these names."""

    async def construct(name: Any, *_: Any) -> Any:
        return cameras[name.name]()

    registry = Registry([Model(CAMERA, ModelName.parse("made"), Attributes, construct)])
    machine = Machine(
        Providers({"built in": registry}),
        SystemClock(),
        limits=GraphLimits(),
        observe=lambda _: None,
    )
    components = [{"name": name, "api": str(CAMERA), "model": "made"} for name in cameras]
    text = json.dumps({"components": components})
    try:
        await machine.apply(load(text, LoadContext(registry, Path("/home"), {})))
        yield machine
    finally:
        await machine.aclose()


async def get_path(machine: Machine, path: str) -> tuple[int, dict[str, str], bytes]:
    clock = SystemClock()
    with tempfile.TemporaryDirectory() as directory:
        journal = EventJournal(Path(directory) / "journal.jsonl", clock)
        try:
            answer = await send_request(
                MachineApp(
                    machine,
                    ServerReport(ServerLoad(clock), UpdateFile({})),
                    clock,
                    RingBuffer(),
                    journal,
                    NO_LOGIN,
                    HandlerTable(),
                    NO_SITE,
                ),
                path,
            )
        finally:
            journal.close()
    return answer.status, answer.headers, answer.body


def make_camera() -> Still:
    depth = np.ones((10, 20), np.uint16)
    return Still("eye", depth=depth, color=solid(200, 10, 10, 20, 10))


async def test_newest_color_image_is_served() -> None:
    async with run_machine(eye=make_camera) as machine:
        status, headers, body = await get_path(machine, "/camera/eye")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert headers["cache-control"] == "no-store"
    seen = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)
    assert seen is not None
    assert seen.shape == (10, 20, 3)
    assert np.abs(seen.astype(int) - (10, 10, 200)).max() < 10


async def test_image_of_a_foreign_camera_is_passed_on() -> None:
    data = encode_pixels(".png", solid(1, 2, 3))
    async with run_machine(theirs=lambda: ForeignCamera("theirs", one=data)) as machine:
        status, headers, body = await get_path(machine, "/camera/theirs")
    assert (status, body) == (200, data)
    # The camera says that it is a JPEG.
    assert headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    "data",
    [
        b"<html><script>alert(1)</script>",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"",
        encode_pixels(".png", solid(1, 2, 3))[:40],
    ],
)
async def test_invalid_image_bytes_are_not_passed_on(data: bytes) -> None:
    async with run_machine(theirs=lambda: ForeignCamera("theirs", one=data)) as machine:
        status, headers, body = await get_path(machine, "/camera/theirs")
    assert (status, headers["content-type"]) == (502, "text/plain; charset=utf-8")
    assert body.startswith(b'camera "theirs" returned an invalid image: the image ')
    assert b"script" not in body


async def test_concurrent_requests_share_one_camera_call() -> None:
    camera = ForeignCamera("theirs", one=encode_pixels(".png", solid(1, 2, 3)))
    camera.held = asyncio.Event()
    async with run_machine(theirs=lambda: camera) as machine:
        shared = camera_images.CameraImages(machine, SystemClock())
        first = asyncio.ensure_future(shared.get_newest("theirs"))
        await camera.wait_for_requests(1)
        others = [asyncio.ensure_future(shared.get_newest("theirs")) for _ in range(20)]
        camera.held.set()
        async with asyncio.timeout(60):
            answers = await asyncio.gather(first, *others)
        assert {answer.status_code for answer in answers} == {200}
        assert len(camera.asked) == 2
        for number in range(100):
            assert (await shared.get_newest(f"none{number}")).status_code == 404
        assert list(shared._cameras) == ["theirs"]


@pytest.mark.parametrize("name", ["bel", "<b>", "%00", "x" * 5000])
async def test_unknown_camera_is_not_found(name: str) -> None:
    async with run_machine(belt=lambda: Still("belt", color=solid(1, 2, 3))) as machine:
        status, headers, body = await get_path(machine, f"/camera/{name}")
    assert status == 404
    assert headers["content-type"].startswith("text/plain")
    assert body


def raise_lens_cap() -> Any:
    raise RuntimeError("the lens cap is on")


class FailingCamera(ForeignCamera):
    async def get_images(self, **_: Any) -> Any:
        raise ZeroDivisionError("of theirs")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (raise_lens_cap, b"the lens cap is on"),
        (lambda: ForeignCamera("c"), b'camera "c" returned no images\n'),
        (lambda: FailingCamera("c"), b"ZeroDivisionError: of theirs\n"),
    ],
)
async def test_missing_image_is_answered_with_the_reason(build: Build, words: bytes) -> None:
    async with run_machine(c=build) as machine:
        status, headers, body = await get_path(machine, "/camera/c")
    assert status == 503
    assert headers["content-type"].startswith("text/plain")
    assert words in body


async def test_slow_camera_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera_images, "_TIMEOUT", 0.05)
    slow = ForeignCamera("slow")
    slow.held = asyncio.Event()
    async with run_machine(slow=lambda: slow) as machine:
        status, _, body = await get_path(machine, "/camera/slow")
    assert (status, body) == (504, b'camera "slow" took too long\n')


async def test_page_shows_only_ready_cameras() -> None:
    async with run_machine(eye=make_camera, dark=raise_lens_cap) as machine:
        _, _, body = await get_path(machine, "/")
    assert re.findall(r"<img src='([^']*)'", body.decode()) == ["/camera/eye"]
    assert "the lens cap is on" in html.unescape(body.decode())


def view(*names: str, kind: str = "rdk:component:camera") -> dict[str, Any]:
    resources = [
        {"name": f"{kind}/{name}", "model": "m", "state": "ready", "reason": None, "since": 0.0}
        for name in names
    ]
    return {"state": "running", "revision": "", "resources": resources}


def test_camera_names_are_escaped() -> None:
    name = "<script>'\"&/ü"
    shown = render_page(view(name), 1.0)
    assert "<script>'" not in shown
    assert shown.count("<figure>") == 1
    assert "src='/camera/%3Cscript%3E%27%22%26/%C3%BC'" in shown
    assert "<figcaption>&lt;script&gt;&#x27;&quot;&amp;/ü</figcaption>" in shown


def test_number_of_figures_is_limited() -> None:
    assert "<figure>" not in render_page(view("s", kind="rdk:component:sensor"), 1.0)
    assert render_page(view(*(f"c{number}" for number in range(50))), 1.0).count("<figure>") == 8
