"""A camera of this computer as a source of pictures, by V4L2 and OpenCV. Everything here blocks."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera.capture import Shot, SourceFault
from cogwork.drivers.camera.negotiate import Choice, NoSuchFormat, Wanted, choose
from cogwork.drivers.camera.v4l2 import (
    Device,
    DeviceFault,
    Offer,
    busy_sentence,
    find_device,
    fourcc_code,
    fourcc_text,
    is_busy,
    list_devices,
    read_formats,
)

_WAIT = 2
"""Seconds that OpenCV waits for one picture."""
_FIRST_PICTURE = 3.0
"""Seconds for the first one, which some cameras take long for."""
_PICTURE = 2.0
"""Seconds for each of the others."""
_ATTEMPTS = 5
"""A picture may be damaged on its way; after so many in a row, the camera is."""
_PAUSE = 0.02
"""Seconds between them: a camera that is pulled out fails a moment before its device is gone."""
_BUFFERS = 2
"""One is filled while the other is read: with a single one, pictures that begin meanwhile are
lost. Nothing grows old in them, as they are read all the time."""
_JPEGS = ("MJPG", "JPEG")


class VideoCapture(Protocol):
    """What is used of OpenCV's."""

    def isOpened(self) -> bool: ...  # noqa: N802 - as OpenCV spells it

    def set(self, propId: int, value: float) -> bool: ...  # noqa: N803 - as OpenCV spells it

    def get(self, propId: int) -> float: ...  # noqa: N803 - as OpenCV spells it

    def read(self) -> tuple[bool, Any]: ...

    def release(self) -> None: ...


def open_capture(path: str) -> VideoCapture:
    """OpenCV has no way to say how long one device may take; it reads this variable at the first
    wait of the process. Its own 10 seconds are longer than anybody would wait."""
    os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(_WAIT))
    import cv2

    return cv2.VideoCapture(path, cv2.CAP_V4L2)


class WebcamSource:
    """Looks for its device at each `open`: a camera that is plugged in again may be another
    `/dev/video`."""

    def __init__(
        self,
        video_path: str,
        wanted: Wanted,
        devices: Callable[[], Sequence[Device]] = list_devices,
        formats: Callable[[str], Sequence[Offer]] = read_formats,
        capture: Callable[[str], VideoCapture] = open_capture,
        busy: Callable[[str], bool] = is_busy,
    ) -> None:
        self._video_path = video_path
        self._wanted = wanted
        self._devices = devices
        self._formats = formats
        self._capture = capture
        self._busy = busy

    def open(self) -> OpenedWebcam:
        device = self._device()
        choice = self._choice(device)
        capture = self._capture(device.path)
        try:
            return self._opened(device, choice, capture)
        except BaseException:
            capture.release()
            raise

    def _device(self) -> Device:
        devices = self._devices()
        device = find_device(self._video_path, devices)
        if device is None:
            raise SourceFault("no_device", _no_device(self._video_path, devices))
        return device

    def _choice(self, device: Device) -> Choice:
        try:
            return choose(self._formats(device.path), self._wanted)
        except DeviceFault as fault:
            raise SourceFault(fault.code, str(fault)) from fault
        except NoSuchFormat as error:
            raise SourceFault("no_format", f"{device}: {error}") from error

    def _opened(self, device: Device, choice: Choice, capture: VideoCapture) -> OpenedWebcam:
        _configure(capture, choice)
        # OpenCV also closes a device that another program takes meanwhile.
        if not capture.isOpened():
            raise self._not_opened(device)
        granted = _granted(capture)
        if granted.unmet(self._wanted):
            raise self._not_granted(device, granted)
        if granted.fourcc in _JPEGS:
            _put_off_decoding(capture)
        return OpenedWebcam(capture, device, granted, lambda: self._is_there(device))

    def _not_opened(self, device: Device) -> SourceFault:
        """OpenCV does not say why."""
        if self._busy(device.path):
            return SourceFault("busy", busy_sentence(device.path))
        if not self._is_there(device):
            return SourceFault("no_device", f"{device} was unplugged while it was being opened")
        return SourceFault("no_picture", f"{device} does not start: unplug it and plug it in again")

    def _not_granted(self, device: Device, granted: Choice) -> SourceFault:
        return SourceFault(
            "no_format",
            f"{device} was asked for {self._wanted}, and set itself to {granted}: ask for "
            "something else, or leave a part out",
        )

    def _is_there(self, device: Device) -> bool:
        return any(each.path == device.path for each in self._devices())


class OpenedWebcam:
    def __init__(
        self,
        capture: VideoCapture,
        device: Device,
        granted: Choice,
        is_there: Callable[[], bool],
    ) -> None:
        self.granted = granted
        """What the device was set to."""
        self._capture = capture
        self._device = device
        self._is_there = is_there
        self._patience = _FIRST_PICTURE

    @property
    def rate(self) -> float | None:
        return self.granted.rate

    def read(self) -> Shot:
        until = time.monotonic() + self._patience
        for _ in range(_ATTEMPTS):
            shot = self._shot()
            if shot is not None:
                self._patience = _PICTURE
                return shot
            if not self._is_there():
                raise SourceFault("gone", f"{self._device} was unplugged: plug it in again")
            if time.monotonic() > until:
                break
            time.sleep(_PAUSE)
        raise SourceFault(
            "no_picture",
            f"{self._device} sends no pictures: if it shares a USB port or hub with others, plug "
            "it in elsewhere, or ask for less (a smaller size, or the format MJPG); else unplug "
            "it and plug it in again",
        )

    def close(self) -> None:
        self._capture.release()

    def _shot(self) -> Shot | None:
        import cv2

        try:
            done, picture = self._capture.read()
        except cv2.error:
            return None
        if not done or picture is None:
            return None
        return _developed(picture, self.granted)


def _developed(picture: NDArray[np.uint8], granted: Choice) -> Shot | None:
    """None: damaged on its way."""
    if picture.ndim == 3:
        return lambda: picture
    if granted.fourcc in _JPEGS:
        # Decoding is the dear part, and for those who want the picture.
        is_jpeg = picture.ravel()[:2].tobytes() == b"\xff\xd8"
        return functools.partial(_decoded, picture) if is_jpeg else None
    # OpenCV leaves pictures that are BGR already in one row.
    shape = (granted.height, granted.width, 3)
    return (lambda: picture.reshape(shape)) if picture.size == math.prod(shape) else None


def _decoded(jpeg: NDArray[np.uint8]) -> NDArray[Any]:
    import cv2

    # Not by `image.decode`, which wants whole ones: many cameras leave the end mark out.
    pixels = cv2.imdecode(jpeg, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise SourceFault("no_picture", "the camera sent a damaged picture; try again")
    return pixels


def _configure(capture: VideoCapture, choice: Choice) -> None:
    """The rate last: with every other property OpenCV sets it anew, and makes 15 of 7.5."""
    import cv2

    capture.set(cv2.CAP_PROP_FOURCC, fourcc_code(choice.fourcc))
    capture.set(cv2.CAP_PROP_BUFFERSIZE, _BUFFERS)
    capture.set(cv2.CAP_PROP_FRAME_WIDTH, choice.width)
    capture.set(cv2.CAP_PROP_FRAME_HEIGHT, choice.height)
    if choice.rate is not None:
        capture.set(cv2.CAP_PROP_FPS, choice.rate)


def _granted(capture: VideoCapture) -> Choice:
    import cv2

    return Choice(
        fourcc_text(int(capture.get(cv2.CAP_PROP_FOURCC))),
        int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)),
        int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)),
        _rate(capture.get(cv2.CAP_PROP_FPS)),
    )


def _put_off_decoding(capture: VideoCapture) -> None:
    import cv2

    capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)


def _rate(said: float) -> float | None:
    """Some drivers have none to tell."""
    return said if math.isfinite(said) and said > 0 else None


def _no_device(video_path: str, devices: Sequence[Device]) -> str:
    there = "; ".join(_listed(device) for device in devices if device.captures)
    if not there:
        at = f' at "{video_path}", nor anywhere else' if video_path else ""
        return f"there is no camera{at} on this computer: plug it in"
    return (
        f'there is no camera at "{video_path}": plug it in, or give one of those that are there '
        f'as "video_path": {there}'
    )


def _listed(device: Device) -> str:
    return f"{device.by_id} ({device.name or device.path})" if device.by_id else str(device)
