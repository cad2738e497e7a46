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
from tests.support.machine.running import DEADLINE, plug_in, run_server
from tests.support.waiting import block

from cogwork.cli.machine.camera import CapturedImage, ImageRequest, RemoteCamera
from cogwork.cli.machine.camera_watch import CameraWatcher, LineView
from cogwork.cli.main import main
from cogwork.media.image_header import read_header

CAMERA = {"api": "rdk:component:camera"}
BELT = {"scene": "conveyor", "width": 320, "height": 240, "ground_truth": True}

PLUG_IN = """
from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.sdk import clean_import as sdk
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


def damaged_jpeg() -> bytes:
    """Return a JPEG with a valid header and no data."""
    frame = struct.pack(">BBHBHHB", 0xFF, 0xC0, 11, 8, 48, 64, 1) + b"\x01\x11\x00"
    return b"\xff\xd8" + frame + b"\xff\xd9"


def still_camera(
    name: str, captured: int = 0, chooses: bool = True, **images: bytes
) -> dict[str, Any]:
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
        still_camera("png", one=png()),
        still_camera("damaged", one=damaged_jpeg()),
        still_camera("webp", one=b"RIFF1234WEBP"),
        still_camera("empty"),
        still_camera("rigid", chooses=False, one=png(), two=png()),
        still_camera("timeless", captured=2**60, one=png()),
    ]
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a machine with cameras of all kinds."""
    directory = tmp_path_factory.mktemp("machine")
    acme = plug_in(directory / "plugged-in", PLUG_IN, "still = {module}:MODEL")
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        server = runner.run(
            stack.enter_async_context(run_server(MACHINE, directory, environment=acme))
        )
        runner.run(server.wait_for_status(state="running"))
        # grpc keeps something open as long as there is a channel.
        with grpc.insecure_channel(f"localhost:{server.port}") as channel:
            grpc.channel_ready_future(channel).result(DEADLINE)
            yield f"localhost:{server.port}"
        runner.run(stack.aclose())


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_camera(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Say:
    """Return a function that runs a command in a directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["camera", *arguments, "--address", address])
        return code, *capsys.readouterr()

    return run


class TestSnap:
    def test_snap_writes_an_image_and_describes_it(self, run_camera: Say, tmp_path: Path) -> None:
        code, out, err = run_camera("snap", "belt")
        assert (code, err) == (0, "")
        assert re.fullmatch(
            r"belt\.jpg: 320x240 image/jpeg, \d+ kB, \d\.\d\d s old, \d+ annotations?\n", out
        )
        header = read_header((tmp_path / "belt.jpg").read_bytes())
        assert (header.mime_type, header.width, header.height) == ("image/jpeg", 320, 240)
        assert [each.name for each in tmp_path.iterdir()] == ["belt.jpg"]

    def test_snap_json_describes_the_image(self, run_camera: Say, tmp_path: Path) -> None:
        code, out, _ = run_camera("snap", "rdk:component:camera/belt", "-o", "b.jpeg", "--json")
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
    def test_snap_chooses_source_and_type_by_arguments(
        self,
        run_camera: Say,
        tmp_path: Path,
        arguments: list[str],
        file: str,
        mime_type: str,
        depth: bool,
    ) -> None:
        code, out, _ = run_camera("snap", "belt", *arguments)
        assert code == 0
        assert out.startswith(f"{file}: 320x240 {mime_type}, ")
        header = read_header((tmp_path / file).read_bytes())
        assert (header.mime_type, header.is_depth) == (mime_type, depth)

    def test_snap_adapts_the_file_name_to_the_type_of_the_image(
        self, run_camera: Say, tmp_path: Path
    ) -> None:
        code, out, err = run_camera("snap", "png", "-o", "picture.jpg")
        assert code == 0
        assert err.startswith('camera "png" does not support image/jpeg; writing image/png instead')
        assert out == f"picture.png: 64x48 image/png, {len(png())} bytes\n"
        assert [each.name for each in tmp_path.iterdir()] == ["picture.png"]

    def test_snap_omits_a_time_outside_the_calendar(self, run_camera: Say) -> None:
        code, out, _ = run_camera("snap", "timeless", "-o", "t.png", "--json")
        assert code == 0
        told = json.loads(out)
        assert (told["captured_at"], told["age_seconds"]) == (None, None)

    def test_image_file_has_default_permissions(self, run_camera: Say, tmp_path: Path) -> None:
        (tmp_path / "other").touch()
        run_camera("snap", "png", "-o", "p.png")
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
            (["belt", "-o", "b.bmp"], 2, "cannot determine the image type from b.bmp"),
            (["belt", "-o", "no/b.jpg"], 2, "cannot write no/b.jpg: No such file or directory"),
        ],
    )
    def test_snap_refuses_invalid_arguments_and_images(
        self, run_camera: Say, tmp_path: Path, arguments: list[str], code: int, said: str
    ) -> None:
        exit_code, out, err = run_camera("snap", *arguments)
        assert (exit_code, out) == (code, "")
        assert said in err
        assert err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("command", ["snap", "watch"])
    def test_unreachable_machine_is_reported(
        self, command: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["camera", command, "belt", "--address", "localhost:1"]) == 2
        assert (
            "cannot reach a machine at localhost:1 (Connection refused)" in capsys.readouterr().err
        )


class Terminal:
    """A pseudo terminal that collects its output."""

    def __init__(self) -> None:
        self.shown = b""
        self._ours, self.theirs = pty.openpty()
        self.resize(60, 30)

    def close(self) -> None:
        os.close(self._ours)
        os.close(self.theirs)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def wait_for(self, pattern: str, since: int = 0) -> None:
        wanted, end = re.compile(pattern.encode()), time.monotonic() + DEADLINE
        while not wanted.search(self.shown, since):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.shown[-2000:]!r}"
            self.read(left)

    def read(self, within: float) -> None:
        if select.select([self._ours], [], [], within)[0]:
            self.shown += os.read(self._ours, 1 << 20)


class WatchTerminal(Terminal):
    """A terminal that runs `cogwork camera watch`."""

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

    def wait_for_exit(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """Return the exit code and the standard error."""
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
    def test_watch_shows_frames_until_ctrl_c(self, address: str) -> None:
        with closing(WatchTerminal("belt", "--address", address)) as terminal:
            line = "(?:[^▀\n]*▀){%d}[^▀\n]*\x1b\\[0m"
            wide, narrow = line % 60, line % 20
            terminal.wait_for(f"\x1b\\[H{wide}(?:\r\n{wide}){{21}}\x1b\\[23;1Hbelt  320x240")
            terminal.wait_for(
                r"belt  320x240  \d+\.\d frames/s  age -?\d+\.\d\d s  source color\x1b\[K"
            )
            before = len(terminal.shown)
            terminal.resize(20, 20)
            terminal.wait_for(f"\x1b\\[2J\x1b\\[H{narrow}\r\n", before)
            assert terminal.wait_for_exit(signal.SIGINT) == (130, "")
            terminal.wait_for(LEFT)
        assert terminal.shown.startswith(ENTERED)

    def test_watch_uses_256_colors_and_ends_on_sigterm(self, address: str) -> None:
        arguments = ("belt", "--source", "depth", "--address", address)
        with closing(WatchTerminal(*arguments, COLORTERM="")) as terminal:
            terminal.wait_for(r"\x1b\[38;5;\d+m\x1b\[48;5;\d+m▀")
            terminal.wait_for("belt  320x240")
            assert terminal.wait_for_exit(signal.SIGTERM) == (128 + signal.SIGTERM, "")
            terminal.wait_for(LEFT)
        assert b"8;2;" not in terminal.shown

    def test_watch_without_opencv_explains_how_to_install_it(
        self, address: str, tmp_path: Path
    ) -> None:
        (tmp_path / "cv2.py").write_text("raise ImportError('it is not here')\n")
        with closing(
            WatchTerminal("belt", "--address", address, PYTHONPATH=str(tmp_path))
        ) as terminal:
            assert terminal.wait_for_exit() == (
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
    def test_watch_shows_why_there_is_no_image(self, address: str, camera: str, said: str) -> None:
        with capture_stdout() as terminal:
            assert main(["camera", "watch", camera, "--seconds", "1", "--address", address]) == 0
            terminal.wait_for(LEFT)
        text = terminal.shown.decode()
        assert text.startswith(f"{ENTERED.decode()}\x1b[2J\x1b[H{said}")
        assert f"\r\n{camera}  no image\x1b[0m" in text

    def test_unexpected_error_restores_the_terminal(
        self, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("cogwork.cli.machine.ansi_image.render_ansi", fail)
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        with capture_stdout() as terminal:
            with pytest.raises(ZeroDivisionError):
                main(["camera", "watch", "belt", "--address", address])
            terminal.wait_for(LEFT)
        assert terminal.shown.startswith(ENTERED)
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before

    async def test_watch_survives_a_restart_of_the_machine(self, tmp_path: Path) -> None:
        belt = {"components": MACHINE["components"][:1]}
        async with contextlib.AsyncExitStack() as first:
            server = await first.enter_async_context(run_server(belt, tmp_path))
            await server.wait_for_status(state="running")
            address = f"localhost:{server.port}"
            with closing(WatchTerminal("belt", "--address", address)) as terminal:
                await asyncio.to_thread(terminal.wait_for, "belt  320x240")
                await first.aclose()
                await asyncio.to_thread(terminal.wait_for, "cannot reach a machine at localhost")
                before = len(terminal.shown)
                again = {**belt, "network": {"bind_address": address}}
                async with run_server(again, tmp_path):
                    await asyncio.to_thread(terminal.wait_for, "belt  320x240", before)
                    assert await asyncio.to_thread(terminal.wait_for_exit, signal.SIGINT) == (
                        130,
                        "",
                    )


@contextlib.contextmanager
def capture_stdout() -> Iterator[Terminal]:
    """Use a terminal as standard output; nothing reads it meanwhile, so write little."""
    with (
        closing(Terminal()) as terminal,
        os.fdopen(terminal.theirs, "w", closefd=False) as out,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.stdout", out)
        yield terminal


class TestWatchWithoutTerminal:
    def test_watch_prints_a_line_per_second(self, run_camera: Say) -> None:
        code, out, err = run_camera("watch", "belt", "--seconds", "2.5")
        assert (code, err) == (0, "")
        first, second, *_ = out.splitlines()
        assert re.fullmatch(r"belt  320x240  age -?\d\.\d\d s  source color", first)
        assert re.fullmatch(
            r"belt  320x240  \d+\.\d frames/s  age -?\d\.\d\d s  source color", second
        )

    def test_watch_prints_why_there_is_no_image(self, run_camera: Say) -> None:
        code, out, _ = run_camera("watch", "far", "--seconds", "0.9")
        assert code == 0
        assert out.startswith("far  no image: UNAVAILABLE: rtsp://localhost:1/x cannot")
        assert out.count("\n") == 1

    def test_watch_falls_back_to_all_sources_when_the_camera_refuses_a_filter(
        self, address: str
    ) -> None:
        told: list[str] = []

        class RecordingView(LineView):
            def show(self, shot: CapturedImage, fresh: bool, status: str) -> None:
                told.append(shot.source)

            def show_error(self, reason: str, status: str) -> None:
                told.append(reason)

        with grpc.insecure_channel(address) as channel:
            CameraWatcher(RemoteCamera(channel, "rigid"), address, ImageRequest(), 2.0).run(
                RecordingView()
            )
        first, second, *rest = told
        assert (first, set(rest)) == ("one", {"one"})
        assert "it cannot choose" in second
        assert len(rest) > 1

    def test_seconds_count_from_the_first_poll(
        self, address: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with grpc.insecure_channel(address) as channel:
            watcher = CameraWatcher(RemoteCamera(channel, "belt"), address, ImageRequest(), 0.2)
            block(0.25)  # as long as loading the decoder takes on a slow computer
            watcher.run(LineView())
        assert capsys.readouterr().out.startswith("belt  320x240")

    @pytest.mark.parametrize("name", ["bel", "scale"])
    def test_watch_refuses_unknown_cameras(self, run_camera: Say, name: str) -> None:
        code, out, err = run_camera("watch", name)
        assert (code, out) == (2, "")
        assert name in err
