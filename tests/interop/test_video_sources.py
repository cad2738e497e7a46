"""The `ffmpeg` camera with real sources that get lost, hang, end, or are not videos."""

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
from tests.support.machine.running import Server, run_server
from tests.support.machine.served import refused
from tests.support.media.films import PICTURES, RATE, film, number_of
from tests.support.media.rtsp_server import H264, JPEG, free_port, rtsp_server
from tests.support.sizes import FULL, limit, size
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.media.video import NamedImage  # noqa: E402
from viam.proto.robot import GetMachineStatusRequest, RobotServiceStub  # noqa: E402

STALL = 1.0
NOTICED = 5.0
BACK = limit(3.0)
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


class TimedImage(NamedTuple):
    pixels: NDArray[Any]
    at: float


@dataclass
class Machine:
    """A real server with cameras, as a client of the SDK sees it."""

    server: Server
    channel: Channel

    async def take_image(self, name: str) -> TimedImage:
        images, metadata = await self._camera(name).get_images(
            extra={"mime_type": "image/png"}, timeout=30
        )
        return TimedImage(decode_image(images[0]), metadata.captured_at.ToNanoseconds() / 1e9)

    async def picture(self, name: str) -> NDArray[Any]:
        return (await self.take_image(name)).pixels

    async def refusal(self, name: str) -> str:
        """Return the error of a call without an image."""
        with refused() as told:
            await self.picture(name)
        assert told.status.name == "UNAVAILABLE"
        return told.words

    async def is_refused(self, name: str) -> bool:
        return bool(await self._refusal_or_empty(name))

    async def has_picture(self, name: str) -> bool:
        return not await self._refusal_or_empty(name)

    async def code(self, name: str) -> str:
        return str((await self._camera(name).get_status(timeout=30))["code"])

    async def health(self, name: str) -> tuple[str, str]:
        """Return the state and reason, which all interfaces must agree on."""
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

    def log_lines(self, words: str, name: str) -> list[str]:
        return [
            line for line in self.server.out.lines if words in line and f"camera/{name}\t" in line
        ]

    def count_resources(self) -> Counter[str]:
        """Count the threads and the descriptors of each kind of the process."""
        process = Path(f"/proc/{self.server.pid}")
        kinds = Counter(thread=len(list((process / "task").iterdir())))
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                kinds[descriptor.readlink().name.partition(":[")[0]] += 1
        return kinds

    async def count_when_settled(self) -> Counter[str]:
        """Count the resources of the process when it is idle."""
        quiet = 0
        while quiet < 20:
            before = self.count_resources()
            await pass_time(0.01)
            quiet = quiet + 1 if self.count_resources() == before else 0
        return before

    async def stop(self) -> float:
        """Stop the server and return how many seconds it took."""
        asked = time.monotonic()
        self.server.signal(signal.SIGTERM)
        assert await self.server.exit_code() == 0
        return time.monotonic() - asked

    async def _refusal_or_empty(self, name: str) -> str:
        with contextlib.suppress(pytest.fail.Exception):
            return await self.refusal(name)
        return ""

    def _camera(self, name: str) -> CameraClient:
        return CameraClient(name, self.channel)


@contextlib.asynccontextmanager
async def run_machine(
    directory: Path, *cameras: dict[str, Any], **config: Any
) -> AsyncIterator[Machine]:
    config = {"components": list(cameras), "disable_log_deduplication": True, **config}
    async with run_server(config, directory) as server:
        await server.wait_for_status(state="running")
        channel = Channel("127.0.0.1", server.port)
        try:
            yield Machine(server, channel)
        finally:
            channel.close()
    assert server.err.lines == []


def decode_image(image: NamedImage) -> NDArray[Any]:
    pixels = cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    return pixels


async def measure_until(
    condition: Callable[[str], Awaitable[bool]], name: str, within: float, since: float = 0.0
) -> float:
    """Return the seconds until the condition holds, which must not exceed the limit."""
    began = since or time.monotonic()
    while not await condition(name):
        assert time.monotonic() - began < within + 5, f"not within {within:g} s"
    took = time.monotonic() - began
    assert took <= within, f"after {took:.1f} s instead of {within:g}"
    return took


class TestRtsp:
    @pytest.mark.timeout(300)
    @pytest.mark.parametrize(("encoding", "times"), [(JPEG, size(3, 20)), (H264, size(1, 20))])
    async def test_camera_recovers_after_each_lost_connection(
        self, tmp_path: Path, encoding: tuple[str, ...], times: int
    ) -> None:
        async with (
            rtsp_server(encoding=encoding) as source,
            run_machine(tmp_path, camera("gate", source.url)) as here,
        ):
            assert (await here.picture("gate")).shape == (240, 320, 3)
            assert await here.health("gate") == ("ready", "")
            held, back = await here.count_when_settled(), []
            for number in range(times):
                await source.cut()
                await measure_until(here.is_refused, "gate", NOTICED)
                state, reason = await here.health("gate")
                assert state == "unhealthy"
                assert re.search(
                    r"connection refused|connection closed by peer|was lost", reason
                ), reason
                assert (await here.refusal("gate")).startswith(source.url)
                # Some outages end just before a retry, others just after.
                await pass_time(number * 0.7 % 3)
                listens = await source.start()
                back.append(await measure_until(here.has_picture, "gate", BACK, since=listens))
                assert await here.health("gate") == ("ready", "")
            assert len(here.log_lines(LOST, "gate")) == len(here.log_lines(AGAIN, "gate")) == times
            assert await here.count_when_settled() <= held
        if FULL:
            print(f"\n{encoding[0]}: back after", *(f"{each:.2f}" for each in sorted(back)))

    @pytest.mark.parametrize("encoding", [JPEG, H264])
    async def test_stalled_source_is_reported_and_recovers(
        self, tmp_path: Path, encoding: tuple[str, ...]
    ) -> None:
        async with (
            rtsp_server(encoding=encoding) as source,
            run_machine(tmp_path, camera("gate", source.url)) as here,
        ):
            await here.picture("gate")
            source.hang()
            await measure_until(here.is_refused, "gate", STALL + 2)
            state, reason = await here.health("gate")
            assert state == "unhealthy"
            assert f"sent nothing for {STALL:g} s" in reason
            source.resume()
            await measure_until(here.has_picture, "gate", BACK)
            await here.server.out.wait_for(AGAIN)  # the line follows the first picture
            assert len(here.log_lines(LOST, "gate")) == len(here.log_lines(AGAIN, "gate")) == 1

    async def test_all_readers_share_one_capture_thread(self, tmp_path: Path) -> None:
        async with (
            rtsp_server() as source,
            run_machine(tmp_path, camera("gate", source.url)) as here,
        ):
            await here.picture("gate")
            held = await here.count_when_settled()

            async def count_frames() -> int:
                return len({(await here.take_image("gate")).at for _ in range(20)})

            assert min(await asyncio.gather(*(count_frames() for _ in range(8)))) > 1
            assert await here.count_when_settled() <= held
            here.server.signal(signal.SIGUSR1)
            await here.server.out.wait_for(r'capture\.py", line \d+, in _run')
            await here.server.get("/status.json")
            assert len(re.findall(r'capture\.py", line \d+, in _run', here.server.out.text)) == 1
            assert here.log_lines(LOST, "gate") == []


class TestFiles:
    async def test_files_loop_at_their_own_rate(self, tmp_path: Path) -> None:
        films = {
            "mp4": film(tmp_path / "film.mp4"),
            "mkv": film(tmp_path / "film.mkv", codec="libx264"),
            "raw": film(tmp_path / "film.h264", codec="libx264", kind="h264", rate=25),
        }
        with http_server(tmp_path) as url:
            sources = films | {"http": f"{url}/film.mp4", "ts": f"{url}/film.ts"}
            film(tmp_path / "film.ts", codec="libx264")
            cameras = [camera(name, path) for name, path in sources.items()]
            async with run_machine(tmp_path, *cameras) as here:
                await asyncio.gather(*(here.picture(name) for name in sources))
                expected = {name: 25.0 if name == "raw" else RATE for name in sources}
                rates = await asyncio.gather(
                    *(measure_rate(here, name, rate) for name, rate in expected.items())
                )
                for name, each in zip(sources, rates, strict=True):
                    assert each == pytest.approx(expected[name], rel=0.07), name
                assert not any(here.log_lines(LOST, name) for name in sources)
                assert here.server.out.text.count(AGAIN) == 0

    async def test_file_without_loop_ends(self, tmp_path: Path) -> None:
        once = film(tmp_path / "film.mp4")
        async with run_machine(tmp_path, camera("once", once, loop=False)) as here:
            await measure_until(here.is_refused, "once", 5)
            words = await here.refusal("once")
            assert words.startswith(f"{once} has ended and does not loop; last frame is ")
            assert "again" not in words
            assert await here.code("once") == "ended"
            assert (await here.health("once"))[0] == "unhealthy"
            assert len(here.log_lines(LOST, "once")) == 1

    async def test_file_that_appears_later_is_found(self, tmp_path: Path) -> None:
        late = tmp_path / "late.mkv"
        async with run_machine(tmp_path, camera("late", late)) as here:
            assert "no such file" in await here.refusal("late")
            film(tmp_path / "film.mkv").rename(late)
            await measure_until(here.has_picture, "late", BACK)

    async def test_filters_are_applied_or_refused(self, tmp_path: Path) -> None:
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
        async with run_machine(tmp_path, *cameras) as here:
            assert (await here.picture("small")).shape == (120, 160, 3)
            assert await measure_rate(here, "small") == pytest.approx(RATE, rel=0.07)
            turned = (await here.picture("turned")).astype(int)
            assert turned[:, 40:].min() > 230 > turned[:, :24].max()
            assert 'FFmpeg rejects the "filters": ' in await here.refusal("odd")
            assert "nosuch" in await here.refusal("odd")
            assert 'FFmpeg rejects the "filters": ' in await here.refusal("worse")
            assert await here.code("odd") == await here.code("worse") == "bad_filters"


class TestInvalidSources:
    async def test_each_invalid_source_is_explained(self, tmp_path: Path) -> None:
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
            async with run_machine(tmp_path, camera("good", good), *cameras) as here:
                for name, (path, code, sentence) in sources.items():
                    words = await here.refusal(name)
                    assert words.startswith(str(path)), words
                    assert sentence in words
                    assert await here.code(name) == code
                    assert len(here.log_lines(LOST, name)) == 1
                assert await measure_rate(here, "good") == pytest.approx(RATE, rel=0.07)
                assert here.log_lines(LOST, "good") == []

    async def test_credentials_are_never_shown(self, tmp_path: Path) -> None:
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
            async with run_machine(tmp_path, *cameras, debug=True) as here:
                await here.picture("plays")
                told = [await here.refusal(name) for name in sources if name != "plays"]
                told += [str(await here.health(name)) for name in sources]
                for path in ("/status.json", "/", "/logs.jsonl"):
                    told.append((await here.server.get(path))[1])
        told += [here.server.output]
        told += [each.read_text() for each in (tmp_path / "home" / "journal").iterdir()]
        assert not any(SECRET in each for each in told)


class TestStuckSources:
    async def test_stuck_sources_are_reported_and_block_nothing(self, tmp_path: Path) -> None:
        """One is stuck in opening a file, one in opening a stream, one in reading it."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = os.open(pipe, os.O_RDWR)
        try:
            with socket.create_server(("127.0.0.1", 0)) as silent:
                url = f"rtsp://127.0.0.1:{silent.getsockname()[1]}/x"
                async with (
                    rtsp_server() as source,
                    run_machine(
                        tmp_path,
                        camera("pipe", pipe),
                        camera("silent", url, stall="1m"),
                        camera("stuck", source.url, stall="1m"),
                        camera("film", film(tmp_path / "film.mp4")),
                    ) as here,
                ):
                    await here.picture("stuck")
                    source.hang()
                    assert await measure_rate(here, "film") == pytest.approx(RATE, rel=0.07)
                    for name in ("pipe", "silent"):
                        assert "has been opening for 10 s" in await here.refusal(name)
                        assert await here.code(name) == "opening"
                        assert (await here.health(name))[0] == "unhealthy"
                    assert here.log_lines(LOST, "stuck") == here.log_lines(LOST, "film") == []
                    assert await here.stop() < 10
                    for name in ("pipe", "silent", "stuck"):
                        assert len(here.log_lines("the source did not close in time", name)) == 1
        finally:
            os.close(writer)


async def measure_rate(here: Machine, name: str, expected: float = RATE) -> float:
    """Return the frames per second of a looping film: of several attempts until it is as expected.

    A busy computer may delay frames for a while.
    """
    rate = 0.0
    for _ in range(5):
        rate = await measure_rate_once(here, name)
        if rate == pytest.approx(expected, rel=0.07):
            break
    return rate


async def measure_rate_once(here: Machine, name: str) -> float:
    """Return the frames per second, or 0 if frames were missing or not in order."""
    shown = [await here.take_image(name)]
    while shown[-1].at < shown[0].at + 3 * PICTURES / RATE:
        taken = await here.take_image(name)
        if taken.at != shown[-1].at:
            shown.append(taken)
    numbers = [number_of(each.pixels) for each in shown]
    steps = [(later - number) % PICTURES for number, later in itertools.pairwise(numbers)]
    if not all(0 < step < PICTURES // 2 for step in steps):
        return 0.0
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
    """Yield the address of a server for the files of the directory."""
    handler = functools.partial(_Handler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
