r"""A foreign camera returns every kind of bad image, in the server's own process: its readers get
an error at once, and other clients are not affected."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
import pytest_asyncio
from grpclib import GRPCError
from grpclib.client import Channel
from tests.support.machine.running import Config, plug_in
from tests.support.machine.watched import LONGEST_TURN, MIB, Phase, WatchedServer, run_watched
from tests.support.media.pictures import (
    BAD_PICTURES,
    color_image,
    encode_pixels,
    jpeg,
    png,
    progressive,
)
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time

from cogwork.media.image_header import read_header
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONGEST = limit(1.0)
"""Seconds until a bad picture is refused."""
MOST_AT_ONCE = 400.0
"""MiB that the server may take for a bad picture while it looks at it."""
MOST_KEPT = 50.0
"""MiB that may be left of it."""
AT_ONCE = size(ci=30, full=200)

PLUG_IN = """
import asyncio
from pathlib import Path
from viam.components.camera import Camera
from viam.media.video import CameraMimeType, NamedImage
from viam.proto.common import ResponseMetadata
from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model


class Folder(Attributes):
    path: str


class FolderCamera(Camera):
    \"""Shows the file that it is told.\"""

    def __init__(self, name, path):
        super().__init__(name)
        self.path, self.data = Path(path), b""

    async def do_command(self, command, *, timeout=None, **kwargs):
        self.data = await asyncio.to_thread((self.path / command["show"]).read_bytes)
        return {}

    async def get_images(self, *, filter_source_names=None, extra=None, timeout=None, **kwargs):
        # Of no type that the SDK knows: it would look for a size, byte by byte on the loop.
        kind = CameraMimeType.CUSTOM("image/unknown")
        return [NamedImage("", self.data, kind)], ResponseMetadata()

    async def get_point_cloud(self, **kwargs):
        raise NotImplementedError

    async def get_properties(self, **kwargs):
        raise NotImplementedError


async def new(name, attributes, dependencies):
    return FolderCamera(name.name, attributes.path)


CAMERA = Model(Api.parse("rdk:component:camera"), ModelName.parse("acme:test:folder"), Folder, new)
"""


def config(folder: Path) -> Config:
    turn = [{"type": "rotate", "attributes": {"angle_degs": 90}}]
    shrink = [{"type": "resize", "attributes": {"width_px": 320, "height_px": 240}}]
    parts = (
        ("bad", "acme:test:folder", {"path": str(folder)}),
        ("turned", "transform", {"source": "bad", "pipeline": turn}),
        ("small", "transform", {"source": "bad", "pipeline": shrink}),
        ("fine", "fake", {"width": 320, "height": 240, "animated": True}),
        ("fine turned", "transform", {"source": "fine", "pipeline": turn}),
    )
    return {
        "components": [
            {
                "name": name.replace(" ", "-"),
                "api": "rdk:component:camera",
                "model": model,
                "attributes": attributes,
            }
            for name, model, attributes in parts
        ]
    }


@dataclass
class Neighbor:
    """A client that reads other cameras all the time, and measures the memory of the server."""

    cameras: list[CameraClient]
    server: WatchedServer
    longest: float = 0.0
    pictures: int = 0
    most: float = 0.0
    """MiB that the server took, at its peak."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def reset(self) -> None:
        self.longest = self.most = 0.0
        self.pictures = 0

    async def wait_for_images(self, pictures: int) -> None:
        async with asyncio.timeout(60):
            while self.pictures < pictures:
                self._news.clear()
                await self._news.wait()

    async def read_images(self) -> None:
        while True:
            for camera in self.cameras:
                began = time.monotonic()
                (image,), _ = await camera.get_images(timeout=60)
                self.longest = max(self.longest, time.monotonic() - began)
                self.pictures += 1
                self._news.set()
                assert read_header(image.data).width in (240, 320)
            await pass_time(0.01)

    async def measure_memory(self) -> None:
        while True:
            self.most = max(self.most, self.server.process.memory_info().rss / MIB)
            await pass_time(0.005)


@dataclass
class Scene:
    server: WatchedServer
    neighbor: Neighbor
    channel: Channel

    def camera(self, name: str) -> CameraClient:
        return CameraClient(name, self.channel)

    async def show(self, name: str) -> None:
        await self.camera("bad").do_command({"show": name}, timeout=60)

    async def attack(self, name: str, attack: Callable[[], Awaitable[None]]) -> Phase:
        """Attack while the neighbor reads its own cameras."""

        async def attack_beside_the_neighbor() -> None:
            self.neighbor.reset()
            await attack()
            await self.neighbor.wait_for_images(4)

        phase = await self.server.attack(name, attack_beside_the_neighbor)
        print(
            f"  peak {self.neighbor.most:6.1f} MiB; others: {self.neighbor.pictures} pictures, "
            f"the longest took {self.neighbor.longest * 1000:.0f} ms"
        )
        assert phase.busy < LONGEST_TURN, f"a turn of the loop took {phase.busy:.0f} ms"
        assert phase.bystander.failed == 0
        assert self.neighbor.longest < LONGEST
        return phase


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the pictures that the camera shows."""
    return tmp_path_factory.mktemp("pictures")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    directory = tmp_path_factory.mktemp("server")
    environment = plug_in(directory / "plugged-in", PLUG_IN, "camera = {module}:CAMERA")
    (folder / "good").write_bytes(encode_pixels(".jpg", color_image()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", environment["PYTHONPATH"])
        async with run_scene(directory, folder) as scene:
            yield scene


@contextlib.asynccontextmanager
async def run_scene(directory: Path, folder: Path) -> AsyncIterator[Scene]:
    async with run_watched(directory, config(folder)) as server:
        channel = Channel("127.0.0.1", server.server.port)
        fine = [CameraClient(name, channel) for name in ("fine", "fine-turned")]
        neighbor = Neighbor(fine, server)
        here = Scene(server, neighbor, channel)
        await here.show("good")
        for name in ("turned", "small"):  # what is loaded at the first use is no growth
            await here.camera(name).get_images(timeout=60)
        tasks = [
            asyncio.ensure_future(each)
            for each in (neighbor.read_images(), neighbor.measure_memory())
        ]
        try:
            yield here
            for task in tasks:
                assert not task.done(), task.exception()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            channel.close()


async def test_bad_images_are_refused_quickly_without_affecting_others(
    here: Scene, folder: Path
) -> None:
    first = await here.server.size()
    for kind, (make, words) in BAD_PICTURES.items():
        (folder / kind).write_bytes(make())
        await here.show(kind)
        before = await here.server.size()
        camera = here.camera("turned")
        phase = await here.server.attack(kind, partial(read_images, camera, words), longest=LONGEST)
        assert phase.took < LONGEST, kind
        await here.attack(f"{kind} at once", partial(expect_bad_images_at_once, camera, words))
        assert here.neighbor.most - before < MOST_AT_ONCE, kind
    await here.show("good")
    (image,), _ = await here.camera("turned").get_images(timeout=60)
    assert read_header(image.data).width == 64
    assert await here.server.size() - first < MOST_KEPT
    for line in here.server.server.err.lines:
        # These lines come from C libraries, which cannot be silenced.
        assert line.startswith(("libpng ", "Corrupt JPEG", "Premature end of JPEG")), line


async def read_images(camera: CameraClient, words: str) -> None:
    with pytest.raises(GRPCError) as error:
        await camera.get_images(timeout=60)
    told = error.value.message or ""
    assert told.startswith('camera "bad" returned a bad image: '), told
    assert words in told


async def expect_bad_images_at_once(camera: CameraClient, words: str) -> None:
    await asyncio.gather(*(read_images(camera, words) for _ in range(AT_ONCE)))


def noise_image() -> bytes:
    grains = np.random.default_rng(1).integers(0, 255, (540, 960, 3)).astype(np.uint8)
    return encode_pixels(".jpg", cv2.resize(grains, (7680, 4320)))


LARGE: dict[str, Callable[[], bytes]] = {
    "8K": noise_image,
    "CMYK, progressive": lambda: jpeg(6000, 6000, (128, 200, 255, 1), progressive=True, scans=10),
    "PNG of 16 bits": lambda: png(6000, 6000, 16, 6, interlaced=True),
    "8K, progressive": lambda: progressive(color_image(7680, 4320)),
}


async def read_at_once(camera: CameraClient) -> None:
    answers = await asyncio.gather(*(camera.get_images(timeout=60) for _ in range(AT_ONCE)))
    assert {read_header(image.data).width for (image,), _ in answers} == {320}


async def test_large_images_with_many_readers_take_bounded_memory(
    here: Scene, folder: Path
) -> None:
    """The images are valid, and as large as allowed. One is decoded at a time."""
    client, first = here.camera("small"), await here.server.size()
    for kind in list(LARGE)[: size(ci=2, full=len(LARGE))]:
        (folder / kind).write_bytes(LARGE[kind]())
        await here.show(kind)
        phase = await here.attack(kind, partial(read_at_once, client))
        # The newest image is kept for repeated requests.
        assert phase.growth < MOST_KEPT + 110
        assert here.neighbor.most - first < MOST_AT_ONCE + 110
    await here.show("good")
    await client.get_images(timeout=60)
    assert await here.server.size() - first < MOST_KEPT
