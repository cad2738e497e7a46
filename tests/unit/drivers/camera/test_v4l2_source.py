from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.drivers.camera.recorded_formats import C270, C920, H264_ONLY, LAPTOP, RecordedCamera

from cogwork.drivers.camera import v4l2_source
from cogwork.drivers.camera.capture import SourceFault
from cogwork.drivers.camera.format_selection import FormatRequest
from cogwork.drivers.camera.v4l2 import Device, DeviceFault, FormatOffer, fourcc_code
from cogwork.drivers.camera.v4l2_source import WebcamSource, open_capture

LINK = "/dev/v4l/by-id/usb-046d_HD_Pro_Webcam_C920_CAFE-video-index0"
C920_DEVICE = Device("/dev/video0", (LINK,), C920.card)
METADATA_DEVICE = Device("/dev/video1", (), C920.card, can_capture=False)
BLUE = np.full((720, 1280, 3), (200, 30, 10), np.uint8)


def jpeg_frame(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a frame as OpenCV does when it does not decode."""
    return np.frombuffer(cv2.imencode(".jpg", pixels)[1].tobytes(), np.uint8)[None, :]


Sent = NDArray[np.uint8] | Exception | None


@dataclass
class Camera:
    """Fake cv2.VideoCapture: it accepts any setting, except those it insists on."""

    sends: list[Sent] = field(default_factory=list)
    insists: dict[int, float] = field(default_factory=dict)
    opens: bool = True
    has: dict[int, float] = field(default_factory=dict)
    released: bool = False

    def isOpened(self) -> bool:  # noqa: N802
        return self.opens

    def set(self, propId: int, value: float) -> bool:  # noqa: N803
        self.has[propId] = value
        return self.opens

    def get(self, propId: int) -> float:  # noqa: N803
        return {**self.has, **self.insists}.get(propId, -1.0) if self.opens else -1.0

    def read(self) -> tuple[bool, NDArray[np.uint8] | None]:
        sent = self.sends.pop(0) if self.sends else None
        if isinstance(sent, Exception):
            raise sent
        return sent is not None, sent

    def release(self) -> None:
        self.released = True


@dataclass
class Computer:
    devices: list[Device] = field(default_factory=lambda: [C920_DEVICE, METADATA_DEVICE])
    recorded: RecordedCamera = C920
    camera: Camera = field(default_factory=Camera)
    is_busy: bool = False
    fault: DeviceFault | None = None
    opened: list[str] = field(default_factory=list)

    def source(self, video_path: str = "", wanted: FormatRequest | None = None) -> WebcamSource:
        return WebcamSource(
            video_path,
            wanted or FormatRequest(),
            devices=lambda: self.devices,
            formats=self._formats,
            capture=self._capture,
            busy=lambda _: self.is_busy,
        )

    def _formats(self, path: str) -> Sequence[FormatOffer]:
        if self.fault is not None:
            raise self.fault
        return self.recorded.offers

    def _capture(self, path: str) -> Camera:
        self.opened.append(path)
        return self.camera


def fault_of(action: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(SourceFault) as told:
        action()
    return told.value.code, str(told.value)


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> Computer:
    monkeypatch.setattr(v4l2_source, "_RETRY_DELAY", 0.0)
    return Computer()


def test_jpeg_frames_are_decoded_on_demand(computer: Computer) -> None:
    computer.camera.sends = [jpeg_frame(BLUE), jpeg_frame(BLUE[::2, ::2])]
    opened = computer.source().open()
    assert str(opened.actual_format) == "MJPG 1280x720 at 30"
    assert opened.rate == 30
    assert computer.camera.get(cv2.CAP_PROP_CONVERT_RGB) == 0
    first, second = opened.read()(), opened.read()()
    assert (first.shape, second.shape) == ((720, 1280, 3), (360, 640, 3))
    assert np.abs(first.astype(int) - BLUE).max() < 4
    opened.close()
    assert computer.camera.released


def test_raw_frames_are_converted_by_opencv(computer: Computer) -> None:
    computer.camera.sends = [BLUE[:480, :640]]
    opened = computer.source(wanted=FormatRequest("YUYV", 640, 480)).open()
    assert computer.camera.get(cv2.CAP_PROP_CONVERT_RGB) == -1
    assert np.array_equal(opened.read()(), BLUE[:480, :640])


def test_frame_in_one_row_is_reshaped(computer: Computer) -> None:
    small = BLUE[:240, :320].copy()
    small[7, 9] = (1, 2, 3)
    computer.recorded = RecordedCamera("v4l2loopback", {"BGR3": {(320, 240): (30.0,)}})
    computer.camera.sends = [small.reshape(1, -1)[:, :-3], small.reshape(1, -1)]
    assert np.array_equal(computer.source().open().read()(), small)


def test_jpeg_without_an_end_marker_is_decoded(computer: Computer) -> None:
    computer.camera.sends = [jpeg_frame(BLUE)[:, :-2]]
    assert computer.source().open().read()().shape == BLUE.shape


def test_format_is_set_as_requested_and_the_rate_last(computer: Computer) -> None:
    wanted = FormatRequest("yuy2", 1280, 720, 7.5)
    opened = computer.source("video0", wanted).open()
    assert (str(opened.actual_format), opened.rate) == ("YUYV 1280x720 at 7.5", 7.5)
    assert computer.camera.has[cv2.CAP_PROP_FOURCC] == fourcc_code("YUYV")
    assert list(computer.camera.has)[-1] == cv2.CAP_PROP_FPS


def test_unknown_rate_of_the_driver_is_none(computer: Computer) -> None:
    computer.camera.insists = {cv2.CAP_PROP_FPS: float("nan")}
    assert computer.source(wanted=FormatRequest(frame_rate=30)).open().rate is None


def test_values_that_were_not_requested_may_differ(computer: Computer) -> None:
    computer.camera.insists = {cv2.CAP_PROP_FPS: 25.0, cv2.CAP_PROP_FRAME_WIDTH: 1184}
    assert str(computer.source().open().actual_format) == "MJPG 1184x720 at 25"


def test_raw_frames_are_converted_when_the_camera_ignores_mjpg(computer: Computer) -> None:
    computer.camera.insists = {cv2.CAP_PROP_FOURCC: fourcc_code("YUYV")}
    computer.camera.sends = [BLUE]
    opened = computer.source().open()
    assert computer.camera.get(cv2.CAP_PROP_CONVERT_RGB) == -1
    assert np.array_equal(opened.read()(), BLUE)


def test_camera_is_found_again_at_another_device_node(computer: Computer) -> None:
    source = computer.source(LINK)
    computer.camera.sends = [jpeg_frame(BLUE)]
    opened = source.open()
    opened.read()

    computer.devices = []
    assert fault_of(opened.read) == (
        "gone",
        "/dev/video0 (HD Pro Webcam C920) was unplugged: plug it in again",
    )
    opened.close()
    assert fault_of(source.open)[0] == "no_device"

    # Meanwhile another camera got its number.
    computer.devices = [
        Device("/dev/video0", (), C270.card),
        Device("/dev/video4", (LINK,), C920.card),
    ]
    computer.camera = Camera([jpeg_frame(BLUE)])
    assert source.open().read()().shape == BLUE.shape
    assert computer.opened == ["/dev/video0", "/dev/video4"]


@pytest.mark.parametrize(
    ("video_path", "devices", "sentence"),
    [
        ("", [], "there is no camera on this computer: plug it in"),
        ("", [METADATA_DEVICE], "there is no camera on this computer: plug it in"),
        (
            "video7",
            [],
            'there is no camera at "video7" or anywhere else on this computer: plug it in',
        ),
        (
            "/dev/video7",
            [C920_DEVICE, METADATA_DEVICE, Device("/dev/video2", (), LAPTOP.card)],
            'there is no camera at "/dev/video7": plug it in, or set "video_path" to one of these '
            f"devices: {LINK} (HD Pro Webcam C920); "
            "/dev/video2 (Integrated Camera: Integrated C)",
        ),
    ],
)
def test_missing_device_is_reported_with_the_present_ones(
    computer: Computer, video_path: str, devices: list[Device], sentence: str
) -> None:
    computer.devices = devices
    assert fault_of(computer.source(video_path).open) == ("no_device", sentence)
    assert computer.opened == []


@pytest.mark.parametrize("code", ["no_device", "no_access", "busy"])
def test_device_fault_is_passed_on(computer: Computer, code: str) -> None:
    computer.fault = DeviceFault(code, "because it is so")
    assert fault_of(computer.source().open) == (code, "because it is so")
    assert computer.opened == []


def test_busy_device_is_reported(computer: Computer) -> None:
    computer.camera.opens = False
    computer.is_busy = True
    assert fault_of(computer.source().open) == (
        "busy",
        "another program is using /dev/video0: close it (find it with fuser -v /dev/video0)",
    )
    assert computer.camera.released


def test_camera_that_does_not_start_is_reported(computer: Computer) -> None:
    computer.camera.opens = False
    code, sentence = fault_of(computer.source().open)
    assert code == "no_picture"
    assert "does not start" in sentence


def test_camera_unplugged_during_open_is_reported(computer: Computer) -> None:
    computer.camera.opens = False
    source = WebcamSource(
        "",
        FormatRequest(),
        devices=iter([[C920_DEVICE], []]).__next__,
        formats=lambda _: C920.offers,
        capture=lambda _: computer.camera,
        busy=lambda _: False,
    )
    assert fault_of(source.open)[0] == "no_device"


def test_unsupported_format_is_reported_before_opening(computer: Computer) -> None:
    code, sentence = fault_of(computer.source(wanted=FormatRequest(width=1000, height=700)).open)
    assert code == "no_format"
    assert sentence.startswith(
        "/dev/video0 (HD Pro Webcam C920): the camera does not offer images 1000x"
    )
    computer.recorded = H264_ONLY
    code, sentence = fault_of(computer.source().open)
    assert code == "no_format"
    assert "ffmpeg" in sentence
    assert computer.opened == []


@pytest.mark.parametrize(
    ("insists", "granted"),
    [
        ({cv2.CAP_PROP_FOURCC: fourcc_code("YUYV")}, "YUYV 1280x720 at 30"),
        ({cv2.CAP_PROP_FRAME_HEIGHT: 960}, "MJPG 1280x960 at 30"),
        ({cv2.CAP_PROP_FPS: 15.0}, "MJPG 1280x720 at 15"),
    ],
)
def test_device_that_selects_another_format_is_refused(
    computer: Computer, insists: dict[int, float], granted: str
) -> None:
    computer.camera.insists = insists
    assert fault_of(computer.source(wanted=FormatRequest("MJPG", 1280, 720, 30)).open) == (
        "no_format",
        "/dev/video0 (HD Pro Webcam C920) does not support MJPG 1280x720 at 30 and selected "
        f"{granted}: request another format, or omit an attribute",
    )
    assert computer.camera.released


def test_camera_without_frames_is_reported(computer: Computer) -> None:
    opened = computer.source().open()
    code, sentence = fault_of(opened.read)
    assert code == "no_picture"
    assert sentence.startswith("/dev/video0 (HD Pro Webcam C920) does not send frames: ")


def test_silent_camera_times_out(computer: Computer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v4l2_source, "_PICTURE_TIMEOUT", -1.0)
    computer.camera.sends = [jpeg_frame(BLUE), None, jpeg_frame(BLUE)]
    opened = computer.source().open()
    opened.read()
    assert fault_of(opened.read)[0] == "no_picture"
    # It may recover.
    assert opened.read()().shape == BLUE.shape


def test_damaged_frames_are_skipped(computer: Computer) -> None:
    rubbish = np.zeros((1, 100), np.uint8)
    computer.camera.sends = [None, rubbish, cv2.error("damaged"), jpeg_frame(BLUE)]
    assert computer.source().open().read()().shape == BLUE.shape


def test_frame_that_fails_to_decode_is_reported(computer: Computer) -> None:
    computer.camera.sends = [np.frombuffer(b"\xff\xd8 and no more", np.uint8)[None, :]]
    shot = computer.source().open().read()
    assert fault_of(shot) == ("no_picture", "the camera sent a damaged frame; try again")


def test_open_capture_fails_at_a_missing_device_with_our_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", "")  # to be put back afterwards
    monkeypatch.delenv("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT")
    capture = open_capture("/dev/no-such-camera")
    assert not capture.isOpened()
    assert os.environ["OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT"] == "2"
    capture.release()


def test_select_timeout_from_the_environment_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", "4")
    open_capture("/dev/no-such-camera").release()
    assert os.environ["OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT"] == "4"
