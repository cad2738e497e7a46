"""What browsers see of a machine's cameras, without a network between."""

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
from tests.foreign_camera import ForeignCamera
from tests.pictures import written
from tests.unit.control.asgi import ask
from tests.vision_models import CAMERA, Still, solid

from cogwork.config.fields import Attributes
from cogwork.config.load_context import LoadContext
from cogwork.config.loader import load
from cogwork.control import camera_images
from cogwork.control.http import create_app
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

Build = Callable[[], Any]


@asynccontextmanager
async def machine(**cameras: Build) -> AsyncIterator[Machine]:
    """Cameras of these names."""

    async def construct(name: Any, *_: Any) -> Any:
        return cameras[name.name]()

    registry = Registry([Model(CAMERA, ModelName.parse("made"), Attributes, construct)])
    made = Machine(
        Providers({"built in": registry}),
        SystemClock(),
        limits=GraphLimits(),
        observe=lambda _: None,
    )
    components = [{"name": name, "api": str(CAMERA), "model": "made"} for name in cameras]
    text = json.dumps({"components": components})
    try:
        await made.apply(load(text, LoadContext(registry, Path("/home"), {})))
        yield made
    finally:
        await made.aclose()


async def get(machine: Machine, path: str) -> tuple[int, dict[str, str], bytes]:
    with tempfile.TemporaryDirectory() as directory:
        journal = EventJournal(Path(directory) / "journal.jsonl", SystemClock())
        try:
            answer = await ask(create_app(machine, SystemClock(), RingBuffer(), journal), path)
        finally:
            journal.close()
    return answer.status, answer.headers, answer.body


def eye() -> Still:
    depth = np.ones((10, 20), np.uint16)
    return Still("eye", depth=depth, color=solid(200, 10, 10, 20, 10))


async def test_the_newest_picture_in_colour() -> None:
    async with machine(eye=eye) as made:
        status, headers, body = await get(made, "/camera/eye")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert headers["cache-control"] == "no-store"
    seen = cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_COLOR)
    assert seen is not None
    assert seen.shape == (10, 20, 3)
    assert np.abs(seen.astype(int) - (10, 10, 200)).max() < 10


async def test_what_cameras_of_others_hand_over() -> None:
    data = written(".png", solid(1, 2, 3))
    async with machine(theirs=lambda: ForeignCamera("theirs", one=data)) as made:
        status, headers, body = await get(made, "/camera/theirs")
    assert (status, body) == (200, data)
    # The camera says that it is a JPEG.
    assert headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    "data",
    [
        b"<html><script>alert(1)</script>",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"",
        written(".png", solid(1, 2, 3))[:40],
    ],
)
async def test_bytes_that_are_not_a_picture_are_not_passed_on(data: bytes) -> None:
    async with machine(theirs=lambda: ForeignCamera("theirs", one=data)) as made:
        status, headers, body = await get(made, "/camera/theirs")
    assert (status, headers["content-type"]) == (502, "text/plain; charset=utf-8")
    assert body.startswith(b'camera "theirs" returned an invalid image: the image ')
    assert b"script" not in body


async def test_a_camera_is_asked_once_for_everybody() -> None:
    camera = ForeignCamera("theirs", one=written(".png", solid(1, 2, 3)))
    camera.held = asyncio.Event()
    async with machine(theirs=lambda: camera) as made:
        shared = camera_images.CameraImages(made, SystemClock())
        first = asyncio.ensure_future(shared.get_newest("theirs"))
        await camera.was_asked(1)
        others = [asyncio.ensure_future(shared.get_newest("theirs")) for _ in range(20)]
        camera.held.set()
        async with asyncio.timeout(10):
            answers = await asyncio.gather(first, *others)
        assert {answer.status_code for answer in answers} == {200}
        assert len(camera.asked) == 2
        for number in range(100):
            assert (await shared.get_newest(f"none{number}")).status_code == 404
        assert list(shared._cameras) == ["theirs"]


@pytest.mark.parametrize("name", ["bel", "<b>", "%00", "x" * 5000])
async def test_no_such_camera(name: str) -> None:
    async with machine(belt=lambda: Still("belt", color=solid(1, 2, 3))) as made:
        status, headers, body = await get(made, f"/camera/{name}")
    assert status == 404
    assert headers["content-type"].startswith("text/plain")
    assert body


def broken() -> Any:
    raise RuntimeError("the lens cap is on")


class Moody(ForeignCamera):
    async def get_images(self, **_: Any) -> Any:
        raise ZeroDivisionError("of theirs")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (broken, b"the lens cap is on"),
        (lambda: ForeignCamera("c"), b'camera "c" returned no images\n'),
        (lambda: Moody("c"), b"ZeroDivisionError: of theirs\n"),
    ],
)
async def test_no_picture_and_why(build: Build, words: bytes) -> None:
    async with machine(c=build) as made:
        status, headers, body = await get(made, "/camera/c")
    assert status == 503
    assert headers["content-type"].startswith("text/plain")
    assert words in body


async def test_no_picture_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera_images, "_TIMEOUT", 0.05)
    slow = ForeignCamera("slow")
    slow.held = asyncio.Event()
    async with machine(slow=lambda: slow) as made:
        status, _, body = await get(made, "/camera/slow")
    assert (status, body) == (504, b'camera "slow" took too long\n')


async def test_the_page_shows_those_that_are_ready() -> None:
    async with machine(eye=eye, dark=broken) as made:
        _, _, body = await get(made, "/")
    assert re.findall(r"<img src='([^']*)'", body.decode()) == ["/camera/eye"]
    assert "the lens cap is on" in html.unescape(body.decode())


def view(*names: str, kind: str = "rdk:component:camera") -> dict[str, Any]:
    resources = [
        {"name": f"{kind}/{name}", "model": "m", "state": "ready", "reason": None, "since": 0.0}
        for name in names
    ]
    return {"state": "running", "revision": "", "resources": resources}


def test_names_are_escaped() -> None:
    name = "<script>'\"&/ü"
    shown = render_page(view(name), 1.0)
    assert "<script>'" not in shown
    assert shown.count("<figure>") == 1
    assert "src='/camera/%3Cscript%3E%27%22%26/%C3%BC'" in shown
    assert "<figcaption>&lt;script&gt;&#x27;&quot;&amp;/ü</figcaption>" in shown


def test_no_figure_without_a_camera_and_few_with_many() -> None:
    assert "<figure>" not in render_page(view("s", kind="rdk:component:sensor"), 1.0)
    assert render_page(view(*(f"c{number}" for number in range(50))), 1.0).count("<figure>") == 8
