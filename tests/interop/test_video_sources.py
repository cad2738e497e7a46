"""The `ffmpeg` camera on real sources, which get lost, hang, end, or are no video at all."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.server
import itertools
import os
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from grpclib.client import Channel
from numpy.typing import NDArray
from tests.films import PICTURES, RATE, film, number_of
from tests.rtsp_server import H264, JPEG, free_port, rtsp_server
from tests.running import Server, running
from tests.served import refused
from tests.sizes import FULL, size

from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.media.video import NamedImage  # noqa: E402
from viam.proto.robot import GetMachineStatusRequest, RobotServiceStub  # noqa: E402

STALL = 1.0
NOTICED = 5.0
BACK = 3.0
LOST = "no frames: "
AGAIN = "receiving frames again"
SECRET = "geheim"


def camera(name: str, path: object, **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": "rdk:component:camera",
        "model": "ffmpeg",
        "attributes": {"video_path": str(path), "stall": f"{STALL}s", **attributes},
    }


class Taken(NamedTuple):
    pixels: NDArray[Any]
    at: float


@dataclass
class Machine:
    """A real server with cameras, as a client of the SDK sees it."""

    server: Server
    channel: Channel

    async def taken(self, name: str) -> Taken:
        images, metadata = await self._camera(name).get_images(
            extra={"mime_type": "image/png"}, timeout=30
        )
        return Taken(decoded(images[0]), metadata.captured_at.ToNanoseconds() / 1e9)

    async def picture(self, name: str) -> NDArray[Any]:
        return (await self.taken(name)).pixels

    async def refusal(self, name: str) -> str:
        """What a call is told, for want of a picture."""
        with refused() as told:
            await self.picture(name)
        assert told.status.name == "UNAVAILABLE"
        return told.words

    async def is_refused(self, name: str) -> bool:
        return bool(await self._trouble(name))

    async def has_picture(self, name: str) -> bool:
        return not await self._trouble(name)

    async def code(self, name: str) -> str:
        return str((await self._camera(name).get_status(timeout=30))["code"])

    async def health(self, name: str) -> tuple[str, str]:
        """As everybody is told, whichever way they ask."""
        for each in (await self.server.status())["resources"]:
            if each["name"].endswith(f"/{name}"):
                shown = each["state"], each["reason"] or ""
        stub = RobotServiceStub(self.channel)
        for status in (
            await stub.GetMachineStatus(GetMachineStatusRequest(), timeout=30)
        ).resources:
            if status.name.name == name:
                assert (status.State.Name(status.state).rpartition("_")[2].lower()) == shown[0]
                assert bool(status.error) == bool(shown[1])
        return shown

    def logged(self, words: str, name: str) -> list[str]:
        return [
            line for line in self.server.out.lines if words in line and f"camera/{name}\t" in line
        ]

    def held(self) -> Counter[str]:
        """How many threads and descriptors of each kind the process has."""
        process = Path(f"/proc/{self.server.pid}")
        kinds = Counter(thread=len(list((process / "task").iterdir())))
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                kinds[descriptor.readlink().name.partition(":[")[0]] += 1
        return kinds

    async def settled(self) -> Counter[str]:
        """What it holds when nobody asks it anything."""
        quiet = 0
        while quiet < 20:
            before = self.held()
            await asyncio.sleep(0.01)
            quiet = quiet + 1 if self.held() == before else 0
        return before

    async def stopped(self) -> float:
        """How many seconds it took."""
        asked = time.monotonic()
        self.server.signal(signal.SIGTERM)
        assert await self.server.exit_code() == 0
        return time.monotonic() - asked

    async def _trouble(self, name: str) -> str:
        with contextlib.suppress(pytest.fail.Exception):
            return await self.refusal(name)
        return ""

    def _camera(self, name: str) -> CameraClient:
        return CameraClient(name, self.channel)


@contextlib.asynccontextmanager
async def machine(
    directory: Path, *cameras: dict[str, Any], **config: Any
) -> AsyncIterator[Machine]:
    config = {"components": list(cameras), "disable_log_deduplication": True, **config}
    async with running(config, directory) as server:
        await server.until(state="running")
        channel = Channel("127.0.0.1", server.port)
        try:
            yield Machine(server, channel)
        finally:
            channel.close()
    assert server.err.lines == []


def decoded(image: NamedImage) -> NDArray[Any]:
    pixels = cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    return pixels


async def until(
    condition: Callable[[str], Awaitable[bool]], name: str, within: float, since: float = 0.0
) -> float:
    """The seconds until it holds, which may be no more than said."""
    began = since or time.monotonic()
    while not await condition(name):
        assert time.monotonic() - began < within + 5, f"not within {within:g} s"
    took = time.monotonic() - began
    assert took <= within, f"after {took:.1f} s instead of {within:g}"
    return took


class TestRtsp:
    @pytest.mark.timeout(300)
    @pytest.mark.parametrize(("encoding", "times"), [(JPEG, size(3, 20)), (H264, size(1, 20))])
    async def test_it_is_cut_and_comes_back_again_and_again(
        self, tmp_path: Path, encoding: tuple[str, ...], times: int
    ) -> None:
        async with (
            rtsp_server(encoding=encoding) as source,
            machine(tmp_path, camera("gate", source.url)) as here,
        ):
            assert (await here.picture("gate")).shape == (240, 320, 3)
            assert await here.health("gate") == ("ready", "")
            held, back = await here.settled(), []
            for number in range(times):
                await source.cut()
                await until(here.is_refused, "gate", NOTICED)
                state, reason = await here.health("gate")
                assert state == "unhealthy"
                assert re.search(
                    r"connection refused|connection closed by peer|was lost", reason
                ), reason
                assert (await here.refusal("gate")).startswith(source.url)
                # Some outages end just before it is tried again, others just after.
                await asyncio.sleep(number * 0.7 % 3)
                listens = await source.start()
                back.append(await until(here.has_picture, "gate", BACK, since=listens))
                assert await here.health("gate") == ("ready", "")
            assert len(here.logged(LOST, "gate")) == len(here.logged(AGAIN, "gate")) == times
            assert await here.settled() == held
        if FULL:
            print(f"\n{encoding[0]}: back after", *(f"{each:.2f}" for each in sorted(back)))

    @pytest.mark.parametrize("encoding", [JPEG, H264])
    async def test_one_that_hangs_is_noticed_and_comes_back(
        self, tmp_path: Path, encoding: tuple[str, ...]
    ) -> None:
        async with (
            rtsp_server(encoding=encoding) as source,
            machine(tmp_path, camera("gate", source.url)) as here,
        ):
            await here.picture("gate")
            source.hang()
            await until(here.is_refused, "gate", STALL + 2)
            state, reason = await here.health("gate")
            assert state == "unhealthy"
            assert f"sent nothing for {STALL:g} s" in reason
            source.go_on()
            await until(here.has_picture, "gate", BACK)
            assert len(here.logged(LOST, "gate")) == len(here.logged(AGAIN, "gate")) == 1

    async def test_however_many_look_one_thread_reads(self, tmp_path: Path) -> None:
        async with (
            rtsp_server() as source,
            machine(tmp_path, camera("gate", source.url)) as here,
        ):
            await here.picture("gate")
            held = await here.settled()

            async def look() -> int:
                return len({(await here.taken("gate")).at for _ in range(20)})

            assert min(await asyncio.gather(*(look() for _ in range(8)))) > 1
            assert await here.settled() == held
            here.server.signal(signal.SIGUSR1)
            await here.server.out.says(r'capture\.py", line \d+, in _run')
            await here.server.get("/status.json")
            assert len(re.findall(r'capture\.py", line \d+, in _run', here.server.out.text)) == 1
            assert here.logged(LOST, "gate") == []


class TestFiles:
    async def test_it_loops_at_its_own_pace(self, tmp_path: Path) -> None:
        films = {
            "mp4": film(tmp_path / "film.mp4"),
            "mkv": film(tmp_path / "film.mkv", codec="libx264"),
            "raw": film(tmp_path / "film.h264", codec="libx264", kind="h264", rate=25),
        }
        with http_server(tmp_path) as url:
            sources = films | {"http": f"{url}/film.mp4", "ts": f"{url}/film.ts"}
            film(tmp_path / "film.ts", codec="libx264")
            cameras = [camera(name, path) for name, path in sources.items()]
            async with machine(tmp_path, *cameras) as here:
                await asyncio.gather(*(here.picture(name) for name in sources))
                rates = await asyncio.gather(*(rate(here, name) for name in sources))
                for name, each in zip(sources, rates, strict=True):
                    assert each == pytest.approx(25 if name == "raw" else RATE, rel=0.07), name
                assert not any(here.logged(LOST, name) for name in sources)
                assert here.server.out.text.count(AGAIN) == 0

    async def test_one_that_does_not_loop_ends(self, tmp_path: Path) -> None:
        once = film(tmp_path / "film.mp4")
        async with machine(tmp_path, camera("once", once, loop=False)) as here:
            await until(here.is_refused, "once", 5)
            words = await here.refusal("once")
            assert words.startswith(f"{once} has ended and does not loop; last frame is ")
            assert "again" not in words
            assert await here.code("once") == "ended"
            assert (await here.health("once"))[0] == "unhealthy"
            assert len(here.logged(LOST, "once")) == 1

    async def test_one_that_appears_later_is_found(self, tmp_path: Path) -> None:
        late = tmp_path / "late.mkv"
        async with machine(tmp_path, camera("late", late)) as here:
            assert "no such file" in await here.refusal("late")
            film(tmp_path / "film.mkv").rename(late)
            await until(here.has_picture, "late", BACK)

    async def test_filters(self, tmp_path: Path) -> None:
        source = film(tmp_path / "film.mp4")
        white = {"x": 0, "y": 0, "w": 32, "h": 48, "color": "white", "t": "fill"}
        cameras = [
            camera("small", source, filters=[{"name": "scale", "args": ["160", "120"]}]),
            camera(
                "turned",
                source,
                filters=[{"name": "drawbox", "kw_args": white}, {"name": "hflip"}],
            ),
            camera("odd", source, filters=[{"name": "nosuch"}]),
            camera("worse", source, filters=[{"name": "scale", "args": ["many"]}]),
        ]
        async with machine(tmp_path, *cameras) as here:
            assert (await here.picture("small")).shape == (120, 160, 3)
            assert await rate(here, "small") == pytest.approx(RATE, rel=0.07)
            turned = (await here.picture("turned")).astype(int)
            assert turned[:, 40:].min() > 230 > turned[:, :24].max()
            assert 'FFmpeg rejects the "filters": ' in await here.refusal("odd")
            assert "nosuch" in await here.refusal("odd")
            assert 'FFmpeg rejects the "filters": ' in await here.refusal("worse")
            assert await here.code("odd") == await here.code("worse") == "bad_filters"


class TestNoVideo:
    async def test_each_says_what_it_is_instead(self, tmp_path: Path) -> None:
        good = film(tmp_path / "good.mkv", codec="libx264")
        data = film(tmp_path / "film.mp4").read_bytes()
        (tmp_path / "cut.mp4").write_bytes(data[: len(data) // 2])
        (tmp_path / "cut.mkv").write_bytes(good.read_bytes()[:600])
        (tmp_path / "text.mp4").write_text("This is no video.\n" * 100)
        (tmp_path / "empty.mp4").touch()
        nobody = free_port()
        with http_server(tmp_path) as url:
            sources = {
                "text": (tmp_path / "text.mp4", "no_video", "the data is not a video"),
                "empty": (tmp_path / "empty.mp4", "no_video", "the data is not a video"),
                "cut": (tmp_path / "cut.mp4", "no_video", "contains no video"),
                "head": (tmp_path / "cut.mkv", "no_video", "does not contain a complete frame"),
                "folder": (tmp_path, "no_video", "it is a directory"),
                "missing": (tmp_path / "none.mp4", "not_found", "no such file"),
                "web": (f"{url}/none.mp4", "not_found", "no such stream"),
                "page": (f"{url}/text.mp4", "no_video", "the data is not a video"),
                "secret": (f"{url}/secret", "no_access", "authentication failed"),
                "off": (f"http://127.0.0.1:{nobody}/x", "refused", "connection refused"),
                "dark": (f"rtsp://127.0.0.1:{nobody}/x", "refused", "connection refused"),
                "odd": ("gopher-like://x/y", "failed", "Protocol not found"),
            }
            cameras = [camera(name, source[0]) for name, source in sources.items()]
            async with machine(tmp_path, camera("good", good), *cameras) as here:
                for name, (path, code, sentence) in sources.items():
                    words = await here.refusal(name)
                    assert words.startswith(str(path)), words
                    assert sentence in words
                    assert await here.code(name) == code
                    assert len(here.logged(LOST, name)) == 1
                assert await rate(here, "good") == pytest.approx(RATE, rel=0.07)
                assert here.logged(LOST, "good") == []

    async def test_users_passwords_and_tokens_are_never_shown(self, tmp_path: Path) -> None:
        film(tmp_path / "film.mp4")
        nobody = free_port()
        with http_server(tmp_path) as url:
            host = url.removeprefix("http://")
            sources = {
                "plays": f"http://{SECRET}:{SECRET}@{host}/film.mp4?token={SECRET}",
                "refused": f"rtsp://{SECRET}:{SECRET}@127.0.0.1:{nobody}/x",
                "wrong": f"http://user:{SECRET}@{host}/secret",
                "raw": f"rtsp://user:a@{SECRET}/{SECRET}?{SECRET}@127.0.0.1:{nobody}/x",
                "query": f"http://127.0.0.1:{nobody}/x?user=me&password=a@{SECRET}",
            }
            cameras = [camera(name, path) for name, path in sources.items()]
            async with machine(tmp_path, *cameras, debug=True) as here:
                await here.picture("plays")
                told = [await here.refusal(name) for name in sources if name != "plays"]
                told += [str(await here.health(name)) for name in sources]
                for path in ("/status.json", "/", "/logs.jsonl"):
                    told.append((await here.server.get(path))[1])
        told += [here.server.said]
        told += [each.read_text() for each in (tmp_path / "home" / "story").iterdir()]
        assert not any(SECRET in each for each in told)


class TestHanging:
    async def test_it_is_told_and_holds_nobody_up(self, tmp_path: Path) -> None:
        """One hangs in opening a file, one in opening a stream, one in reading it."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = os.open(pipe, os.O_RDWR)
        try:
            with socket.create_server(("127.0.0.1", 0)) as silent:
                url = f"rtsp://127.0.0.1:{silent.getsockname()[1]}/x"
                async with (
                    rtsp_server() as source,
                    machine(
                        tmp_path,
                        camera("pipe", pipe),
                        camera("silent", url, stall="1m"),
                        camera("stuck", source.url, stall="1m"),
                        camera("film", film(tmp_path / "film.mp4")),
                    ) as here,
                ):
                    await here.picture("stuck")
                    source.hang()
                    assert await rate(here, "film") == pytest.approx(RATE, rel=0.07)
                    for name in ("pipe", "silent"):
                        assert "has been opening for 10 s" in await here.refusal(name)
                        assert await here.code(name) == "opening"
                        assert (await here.health(name))[0] == "unhealthy"
                    assert here.logged(LOST, "stuck") == here.logged(LOST, "film") == []
                    assert await here.stopped() < 10
                    for name in ("pipe", "silent", "stuck"):
                        assert len(here.logged("the source did not close in time", name)) == 1
        finally:
            os.close(writer)


async def rate(here: Machine, name: str) -> float:
    """Pictures a second of a film that loops. None of them comes out of order."""
    shown = [await here.taken(name)]
    while shown[-1].at < shown[0].at + 3 * PICTURES / RATE:
        taken = await here.taken(name)
        if taken.at != shown[-1].at:
            shown.append(taken)
    numbers = [number_of(each.pixels) for each in shown]
    steps = [(later - number) % PICTURES for number, later in itertools.pairwise(numbers)]
    assert all(0 < step < PICTURES // 2 for step in steps), numbers
    return sum(steps) / (shown[-1].at - shown[0].at)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/secret"):
            self.send_error(401)
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def http_server(directory: Path) -> Iterator[str]:
    """Its address. It serves what is in the directory."""
    handler = functools.partial(_Handler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
