"""`cogwork camera …` as a person runs it, against the real executable."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import cv2
import grpc
import numpy as np
import pytest
from tests.running import DEADLINE, plug_in, running

from cogwork.cli.camera import CapturedImage, ImageRequest, RemoteCamera
from cogwork.cli.camera_watch import CameraWatcher, LineView
from cogwork.cli.main import main
from cogwork.resource.image_header import read_header

CAMERA = {"api": "rdk:component:camera"}
BELT = {"scene": "conveyor", "width": 320, "height": 240, "ground_truth": True}

PLUG_IN = """
from cogwork.config.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource import sdk
from cogwork.resource.model import Model

from google.protobuf.timestamp_pb2 import Timestamp
from viam.components.camera import Camera
from viam.media.video import CameraMimeType, NamedImage
from viam.proto.common import ResponseMetadata


class Settings(Attributes):
    images: dict[str, str]
    captured: int = 0
    chooses: bool = True


class Stubborn(Camera):
    "It sends what it has, whatever it is asked for."

    def __init__(self, name, settings):
        super().__init__(name.name)
        self.settings = settings

    async def get_images(self, *, filter_source_names, **_):
        if filter_source_names and not self.settings.chooses:
            raise ValueError("it cannot choose")
        moment = Timestamp(seconds=self.settings.captured)
        images = [
            NamedImage(source, bytes.fromhex(data), CameraMimeType.JPEG)
            for source, data in self.settings.images.items()
        ]
        return images, ResponseMetadata(captured_at=moment)

    async def get_point_cloud(self, **_):
        raise NotImplementedError

    async def get_properties(self, **_):
        raise NotImplementedError


async def new(name, settings, dependencies):
    return Stubborn(name, settings)


MODEL = Model(Api.parse("rdk:component:camera"), ModelName.parse("acme:test:still"), Settings, new)
"""


def png() -> bytes:
    return cv2.imencode(".png", np.zeros((48, 64, 3), np.uint8))[1].tobytes()


def damaged() -> bytes:
    """Of a sound header, and nothing behind it."""
    frame = struct.pack(">BBHBHHB", 0xFF, 0xC0, 11, 8, 48, 64, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + frame + b"\xff\xd9"


def still(name: str, captured: int = 0, chooses: bool = True, **images: bytes) -> dict[str, Any]:
    sent = {source: data.hex() for source, data in images.items()}
    attributes = {"images": sent, "captured": captured, "chooses": chooses}
    return {"name": name, **CAMERA, "model": "acme:test:still", "attributes": attributes}


MACHINE = {
    "components": [
        {"name": "belt", **CAMERA, "model": "fake", "attributes": BELT},
        {
            "name": "far",
            **CAMERA,
            "model": "ffmpeg",
            "attributes": {"video_path": "rtsp://localhost:1/x"},
        },
        {"name": "scale", "api": "rdk:component:sensor", "model": "fake"},
        still("png", one=png()),
        still("damaged", one=damaged()),
        still("webp", one=b"RIFF1234WEBP"),
        still("empty"),
        still("rigid", chooses=False, one=png(), two=png()),
        still("timeless", captured=2**60, one=png()),
    ]
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a machine with cameras of all kinds listens."""
    directory = tmp_path_factory.mktemp("machine")
    acme = plug_in(directory / "plugged-in", PLUG_IN, "still = {module}:MODEL")
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        server = runner.run(
            stack.enter_async_context(running(MACHINE, directory, environment=acme))
        )
        runner.run(server.until(state="running"))
        # Something of grpc's own stays open as long as there is a channel.
        with grpc.insecure_channel(f"localhost:{server.port}") as channel:
            grpc.channel_ready_future(channel).result(DEADLINE)
            yield f"localhost:{server.port}"
        runner.run(stack.aclose())


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Say:
    """A command in a directory of its own: its exit code, what it prints, what it complains."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["camera", *arguments, "--address", address])
        return code, *capsys.readouterr()

    return run


class TestSnap:
    def test_a_picture_and_a_line_about_it(self, say: Say, tmp_path: Path) -> None:
        code, out, err = say("snap", "belt")
        assert (code, err) == (0, "")
        assert re.fullmatch(
            r"belt\.jpg: 320x240 image/jpeg, \d+ kB, \d\.\d\d s old, \d+ annotations?\n", out
        )
        header = read_header((tmp_path / "belt.jpg").read_bytes())
        assert (header.mime_type, header.width, header.height) == ("image/jpeg", 320, 240)
        assert [each.name for each in tmp_path.iterdir()] == ["belt.jpg"]

    def test_the_form_for_programs(self, say: Say, tmp_path: Path) -> None:
        code, out, _ = say("snap", "rdk:component:camera/belt", "-o", "b.jpeg", "--json")
        told = json.loads(out)
        assert code == 0
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", told.pop("captured_at"))
        assert -1 < told.pop("age_seconds") < 10
        assert told == {
            "file": "b.jpeg",
            "width": 320,
            "height": 240,
            "mime_type": "image/jpeg",
            "bytes": (tmp_path / "b.jpeg").stat().st_size,
            "source": "color",
        }

    @pytest.mark.parametrize(
        ("arguments", "file", "mime_type", "depth"),
        [
            (["-o", "b.png"], "b.png", "image/png", False),
            (["-o", "B.PNG"], "B.PNG", "image/png", False),
            (["-o", "b.rgba"], "b.rgba", "image/vnd.viam.rgba", False),
            (["-o", "b.dep"], "b.dep", "image/vnd.viam.dep", True),
            (["--source", "color"], "belt.jpg", "image/jpeg", False),
            (["--source", "depth"], "belt.png", "image/png", True),
            (["--source", "depth", "-o", "d.dep"], "d.dep", "image/vnd.viam.dep", True),
        ],
    )
    def test_which_picture_and_which_type(
        self,
        say: Say,
        tmp_path: Path,
        arguments: list[str],
        file: str,
        mime_type: str,
        depth: bool,
    ) -> None:
        code, out, _ = say("snap", "belt", *arguments)
        assert code == 0
        assert out.startswith(f"{file}: 320x240 {mime_type}, ")
        header = read_header((tmp_path / file).read_bytes())
        assert (header.mime_type, header.is_depth) == (mime_type, depth)

    def test_a_camera_that_sends_what_it_likes(self, say: Say, tmp_path: Path) -> None:
        code, out, err = say("snap", "png", "-o", "picture.jpg")
        assert code == 0
        assert err.startswith('camera "png" does not support image/jpeg; writing image/png instead')
        assert out == f"picture.png: 64x48 image/png, {len(png())} bytes\n"
        assert [each.name for each in tmp_path.iterdir()] == ["picture.png"]

    def test_a_time_that_no_calendar_has(self, say: Say) -> None:
        code, out, _ = say("snap", "timeless", "-o", "t.png", "--json")
        assert code == 0
        told = json.loads(out)
        assert (told["captured_at"], told["age_seconds"]) == (None, None)

    def test_others_may_read_it_as_they_may_other_files(self, say: Say, tmp_path: Path) -> None:
        (tmp_path / "other").touch()
        say("snap", "png", "-o", "p.png")
        assert (tmp_path / "p.png").stat().st_mode == (tmp_path / "other").stat().st_mode

    @pytest.mark.parametrize(
        ("arguments", "code", "said"),
        [
            (["bel"], 2, 'the machine has no camera "bel"; did you mean "belt"?'),
            (["xyzzy"], 2, 'the machine has no camera "xyzzy"; it has "belt", "far", '),
            (["scale"], 2, '"scale" is not a camera but rdk:component:sensor/scale'),
            (["far"], 1, "UNAVAILABLE: rtsp://localhost:1/x cannot be opened"),
            (["belt", "--source", "x"], 1, "INVALID_ARGUMENT: invalid source name: x; "),
            (["png", "--source", "x"], 1, 'camera "png" has no source "x"; it has "one"'),
            (["belt", "--source", "depth", "-o", "d.jpg"], 1, "a depth image cannot be"),
            (["empty"], 1, 'camera "empty" returned no images'),
            (["webp"], 1, 'camera "webp" sent an invalid image: the image appears to be a WebP'),
            (["belt", "-o", "b.bmp"], 2, "cannot tell the image type from b.bmp"),
            (["belt", "-o", "no/b.jpg"], 2, "cannot write no/b.jpg: No such file or directory"),
        ],
    )
    def test_what_cannot_be(
        self, say: Say, tmp_path: Path, arguments: list[str], code: int, said: str
    ) -> None:
        exit_code, out, err = say("snap", *arguments)
        assert (exit_code, out) == (code, "")
        assert said in err
        assert err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("command", ["snap", "watch"])
    def test_no_machine(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["camera", command, "belt", "--address", "localhost:1"]) == 2
        assert (
            "cannot reach a machine at localhost:1 (connection refused)" in capsys.readouterr().err
        )


class Terminal:
    """What is written to it, as it comes."""

    def __init__(self) -> None:
        self.shown = b""
        self._ours, self.theirs = pty.openpty()
        self.resize(60, 30)

    def close(self) -> None:
        os.close(self._ours)
        os.close(self.theirs)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def shows(self, pattern: str, since: int = 0) -> None:
        wanted, end = re.compile(pattern.encode()), time.monotonic() + DEADLINE
        while not wanted.search(self.shown, since):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.shown[-2000:]!r}"
            self.read(left)

    def read(self, within: float) -> None:
        if select.select([self._ours], [], [], within)[0]:
            self.shown += os.read(self._ours, 1 << 20)


class Watched(Terminal):
    """A terminal with the command on it."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        super().__init__()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cogwork.cli.main", "camera", "watch", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self.theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, "COLORTERM": "truecolor", **environment},
        )

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=DEADLINE)
        super().close()

    def ends(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """The exit code, and what it complained."""
        if number is not None:
            self._process.send_signal(number)
        end = time.monotonic() + DEADLINE
        while self._process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            self.read(0.01)
        return self._process.returncode, self._process.communicate()[1].decode()


ENTERED = b"\x1b[?1049h\x1b[?25l"
LEFT = re.escape("\x1b[0m\x1b[?25h\x1b[?1049l") + r"\Z"


class TestWatchOnATerminal:
    def test_the_picture_until_ctrl_c(self, address: str) -> None:
        with closing(Watched("belt", "--address", address)) as terminal:
            line = "(?:[^▀\n]*▀){%d}[^▀\n]*\x1b\\[0m"
            wide, narrow = line % 60, line % 20
            terminal.shows(f"\x1b\\[H{wide}(?:\r\n{wide}){{21}}\x1b\\[23;1Hbelt  320x240")
            terminal.shows(
                r"belt  320x240  \d+\.\d frames/s  age -?\d+\.\d\d s  source color\x1b\[K"
            )
            before = len(terminal.shown)
            terminal.resize(20, 20)
            terminal.shows(f"\x1b\\[2J\x1b\\[H{narrow}\r\n", before)
            assert terminal.ends(signal.SIGINT) == (0, "")
            terminal.shows(LEFT)
        assert terminal.shown.startswith(ENTERED)

    def test_fewer_colours_and_sigterm(self, address: str) -> None:
        arguments = ("belt", "--source", "depth", "--address", address)
        with closing(Watched(*arguments, COLORTERM="")) as terminal:
            terminal.shows(r"\x1b\[38;5;\d+m\x1b\[48;5;\d+m▀")
            terminal.shows("belt  320x240")
            assert terminal.ends(signal.SIGTERM) == (128 + signal.SIGTERM, "")
            terminal.shows(LEFT)
        assert b"8;2;" not in terminal.shown

    def test_without_opencv(self, address: str, tmp_path: Path) -> None:
        (tmp_path / "cv2.py").write_text("raise ImportError('it is not here')\n")
        with closing(Watched("belt", "--address", address, PYTHONPATH=str(tmp_path))) as terminal:
            assert terminal.ends() == (
                2,
                "cv2 cannot be imported (it is not here); install it with "
                "`pip install 'cogwork[camera]'`\n",
            )
        assert terminal.shown == b""

    @pytest.mark.parametrize(
        ("camera", "said"),
        [
            ("far", "UNAVAILABLE: rtsp://localhost:1/x cannot be opened"),
            ("damaged", "the image is damaged: it cannot be decoded\r\n"),
            ("empty", 'camera "empty" returned no images'),
        ],
    )
    def test_why_there_is_no_picture(self, address: str, camera: str, said: str) -> None:
        with terminal_here() as terminal:
            assert main(["camera", "watch", camera, "--seconds", "0.3", "--address", address]) == 0
            terminal.shows(LEFT)
        text = terminal.shown.decode()
        assert text.startswith(f"{ENTERED.decode()}\x1b[2J\x1b[H{said}")
        assert f"\r\n{camera}  no image\x1b[0m" in text

    def test_an_error_of_ours_leaves_no_mess(
        self, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("cogwork.cli.ansi_image.render_ansi", fail)
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        with terminal_here() as terminal:
            with pytest.raises(ZeroDivisionError):
                main(["camera", "watch", "belt", "--address", address])
            terminal.shows(LEFT)
        assert terminal.shown.startswith(ENTERED)
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before

    async def test_a_machine_that_goes_and_comes_back(self, tmp_path: Path) -> None:
        belt = {"components": MACHINE["components"][:1]}
        async with contextlib.AsyncExitStack() as first:
            server = await first.enter_async_context(running(belt, tmp_path))
            await server.until(state="running")
            address = f"localhost:{server.port}"
            with closing(Watched("belt", "--address", address)) as terminal:
                await asyncio.to_thread(terminal.shows, "belt  320x240")
                await first.aclose()
                await asyncio.to_thread(terminal.shows, "cannot reach a machine at localhost")
                before = len(terminal.shown)
                again = {**belt, "network": {"bind_address": address}}
                async with running(again, tmp_path):
                    await asyncio.to_thread(terminal.shows, "belt  320x240", before)
                    assert await asyncio.to_thread(terminal.ends, signal.SIGINT) == (0, "")


@contextlib.contextmanager
def terminal_here() -> Iterator[Terminal]:
    """The standard output of this process. Nobody reads meanwhile, so it must be little."""
    with (
        closing(Terminal()) as terminal,
        os.fdopen(terminal.theirs, "w", closefd=False) as out,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.stdout", out)
        yield terminal


class TestWatchElsewhere:
    def test_a_line_each_second(self, say: Say) -> None:
        code, out, err = say("watch", "belt", "--seconds", "2.5")
        assert (code, err) == (0, "")
        first, second, *_ = out.splitlines()
        assert re.fullmatch(r"belt  320x240  age -?\d\.\d\d s  source color", first)
        assert re.fullmatch(
            r"belt  320x240  \d+\.\d frames/s  age -?\d\.\d\d s  source color", second
        )

    def test_a_camera_without_pictures(self, say: Say) -> None:
        code, out, _ = say("watch", "far", "--seconds", "0.2")
        assert code == 0
        assert out.startswith("far  no image: UNAVAILABLE: rtsp://localhost:1/x cannot")
        assert out.count("\n") == 1

    def test_a_camera_that_cannot_choose_is_asked_for_all_it_has(self, address: str) -> None:
        told: list[str] = []

        class Heard(LineView):
            def show(self, shot: CapturedImage, fresh: bool, status: str) -> None:
                told.append(shot.source)

            def show_error(self, reason: str, status: str) -> None:
                told.append(reason)

        with grpc.insecure_channel(address) as channel:
            CameraWatcher(RemoteCamera(channel, "rigid"), address, ImageRequest(), 0.8).run(Heard())
        first, second, *rest = told
        assert (first, set(rest)) == ("one", {"one"})
        assert "it cannot choose" in second
        assert len(rest) > 1

    @pytest.mark.parametrize("name", ["bel", "scale"])
    def test_no_such_camera(self, say: Say, name: str) -> None:
        code, out, err = say("watch", name)
        assert (code, out) == (2, "")
        assert name in err
