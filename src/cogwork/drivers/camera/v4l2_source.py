"""Frames from a camera of this computer, by V4L2 and OpenCV. All calls block."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.camera.capture import DeferredPixels, SourceFault
from cogwork.drivers.camera.format_selection import (
    FormatChoice,
    FormatRequest,
    NoSuchFormat,
    choose_format,
)
from cogwork.drivers.camera.v4l2 import (
    Device,
    DeviceFault,
    FormatOffer,
    busy_message,
    find_device,
    fourcc_code,
    fourcc_text,
    is_busy,
    list_devices,
    read_formats,
)

_SELECT_TIMEOUT = 2
"""Seconds that OpenCV waits for one frame."""
_FIRST_PICTURE_TIMEOUT = 3.0
"""Timeout in seconds for the first frame, which some cameras send late."""
_PICTURE_TIMEOUT = 2.0
"""Timeout in seconds for each further frame."""
_MAX_ATTEMPTS = 5
"""Consecutive read errors after which the camera counts as failed; single frames may be damaged."""
_RETRY_DELAY = 0.02
"""Seconds between two attempts to read; long enough for an unplugged device to disappear."""
_BUFFER_COUNT = 2
"""Number of OpenCV's buffers: one is filled while the other is read.

A single buffer would drop frames. Frames do not age in the buffers, because they are read
continuously.
"""
_JPEG_FORMATS = ("MJPG", "JPEG")


class VideoCapture(Protocol):
    """The part of OpenCV's interface that is used here."""

    def isOpened(self) -> bool: ...  # noqa: N802 - as OpenCV spells it

    def set(self, propId: int, value: float) -> bool: ...  # noqa: N803 - as OpenCV spells it

    def get(self, propId: int) -> float: ...  # noqa: N803 - as OpenCV spells it

    def read(self) -> tuple[bool, Any]: ...

    def release(self) -> None: ...


def open_capture(path: str) -> VideoCapture:
    """Open a device with a shorter timeout than OpenCV's default of 10 seconds.

    OpenCV has no timeout per device; it reads an environment variable once in a process.
    """
    os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(_SELECT_TIMEOUT))
    import cv2

    return cv2.VideoCapture(path, cv2.CAP_V4L2)


class WebcamSource:
    """A webcam. Each `open` searches for the device: after replugging, it may have another
    `/dev/video` number."""

    def __init__(
        self,
        video_path: str,
        request: FormatRequest,
        devices: Callable[[], Sequence[Device]] = list_devices,
        formats: Callable[[str], Sequence[FormatOffer]] = read_formats,
        capture: Callable[[str], VideoCapture] = open_capture,
        busy: Callable[[str], bool] = is_busy,
    ) -> None:
        self._video_path = video_path
        self._request = request
        self._list_devices = devices
        self._read_formats = formats
        self._open_capture = capture
        self._is_busy = busy

    def open(self) -> OpenedWebcam:
        device = self._find_device()
        choice = self._choose_format(device)
        capture = self._open_capture(device.path)
        try:
            return self._configure_opened(device, choice, capture)
        except BaseException:
            capture.release()
            raise

    def _find_device(self) -> Device:
        devices = self._list_devices()
        device = find_device(self._video_path, devices)
        if device is None:
            raise SourceFault("no_device", _explain_no_device(self._video_path, devices))
        return device

    def _choose_format(self, device: Device) -> FormatChoice:
        try:
            return choose_format(self._read_formats(device.path), self._request)
        except DeviceFault as fault:
            raise SourceFault(fault.code, str(fault)) from fault
        except NoSuchFormat as error:
            raise SourceFault("no_format", f"{device}: {error}") from error

    def _configure_opened(
        self, device: Device, choice: FormatChoice, capture: VideoCapture
    ) -> OpenedWebcam:
        _configure(capture, choice)
        # Check again: OpenCV closes the device if another program has opened it meanwhile.
        if not capture.isOpened():
            raise self._open_fault(device)
        actual = _read_actual_format(capture)
        if actual.count_unmet(self._request):
            raise self._format_fault(device, actual)
        if actual.fourcc in _JPEG_FORMATS:
            _disable_decoding(capture)
        return OpenedWebcam(capture, device, actual, lambda: self._is_connected(device))

    def _open_fault(self, device: Device) -> SourceFault:
        """Determine why opening failed, because OpenCV does not report it."""
        if self._is_busy(device.path):
            return SourceFault("busy", busy_message(device.path))
        if not self._is_connected(device):
            return SourceFault("no_device", f"{device} was unplugged while it was being opened")
        return SourceFault("no_picture", f"{device} does not start: unplug it and plug it in again")

    def _format_fault(self, device: Device, actual: FormatChoice) -> SourceFault:
        return SourceFault(
            "no_format",
            f"{device} does not support {self._request} and selected {actual}: request another "
            "format, or omit an attribute",
        )

    def _is_connected(self, device: Device) -> bool:
        return any(each.path == device.path for each in self._list_devices())


class OpenedWebcam:
    def __init__(
        self,
        capture: VideoCapture,
        device: Device,
        actual: FormatChoice,
        is_connected: Callable[[], bool],
    ) -> None:
        self.actual_format = actual
        """The format that the device selected."""
        self._capture = capture
        self._device = device
        self._is_connected = is_connected
        self._timeout = _FIRST_PICTURE_TIMEOUT

    @property
    def rate(self) -> float | None:
        return self.actual_format.rate

    def read(self) -> DeferredPixels:
        deadline = time.monotonic() + self._timeout
        for _ in range(_MAX_ATTEMPTS):
            decode = self._read_picture()
            if decode is not None:
                self._timeout = _PICTURE_TIMEOUT
                return decode
            if not self._is_connected():
                raise SourceFault("gone", f"{self._device} was unplugged: plug it in again")
            if time.monotonic() > deadline:
                break
            time.sleep(_RETRY_DELAY)
        raise SourceFault(
            "no_picture",
            f"{self._device} does not send frames: if it shares a USB port or hub with other "
            "devices, use another port, or request a smaller size or the format MJPG; otherwise "
            "unplug it and plug it in again",
        )

    def close(self) -> None:
        self._capture.release()

    def _read_picture(self) -> DeferredPixels | None:
        import cv2

        try:
            ok, frame = self._capture.read()
        except cv2.error:
            return None
        if not ok or frame is None:
            return None
        return _defer_decoding(frame, self.actual_format)


def _defer_decoding(frame: NDArray[np.uint8], actual: FormatChoice) -> DeferredPixels | None:
    """Return the decoder of a frame, or None if the frame is damaged."""
    if frame.ndim == 3:
        return lambda: frame
    if actual.fourcc in _JPEG_FORMATS:
        # Decoding is expensive and only done for frames that are requested.
        is_jpeg = frame.ravel()[:2].tobytes() == b"\xff\xd8"
        return functools.partial(_decode_jpeg, frame) if is_jpeg else None
    # The frame is BGR already, but OpenCV returns it as a single row.
    shape = (actual.height, actual.width, 3)
    return (lambda: frame.reshape(shape)) if frame.size == math.prod(shape) else None


def _decode_jpeg(jpeg: NDArray[np.uint8]) -> NDArray[Any]:
    import cv2

    # Do not use `image.decode`, which requires complete files: many cameras omit the end marker.
    pixels = cv2.imdecode(jpeg, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise SourceFault("no_picture", "the camera sent a damaged frame; try again")
    return pixels


def _configure(capture: VideoCapture, choice: FormatChoice) -> None:
    """Configure the device. Set the rate last, because setting another property resets it."""
    import cv2

    capture.set(cv2.CAP_PROP_FOURCC, fourcc_code(choice.fourcc))
    capture.set(cv2.CAP_PROP_BUFFERSIZE, _BUFFER_COUNT)
    capture.set(cv2.CAP_PROP_FRAME_WIDTH, choice.width)
    capture.set(cv2.CAP_PROP_FRAME_HEIGHT, choice.height)
    if choice.rate is not None:
        capture.set(cv2.CAP_PROP_FPS, choice.rate)


def _read_actual_format(capture: VideoCapture) -> FormatChoice:
    import cv2

    return FormatChoice(
        fourcc_text(int(capture.get(cv2.CAP_PROP_FOURCC))),
        int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)),
        int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)),
        _parse_rate(capture.get(cv2.CAP_PROP_FPS)),
    )


def _disable_decoding(capture: VideoCapture) -> None:
    import cv2

    capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)


def _parse_rate(rate: float) -> float | None:
    """Return the rate, or None if the driver does not report one."""
    return rate if math.isfinite(rate) and rate > 0 else None


def _explain_no_device(video_path: str, devices: Sequence[Device]) -> str:
    available = "; ".join(_describe_device(device) for device in devices if device.can_capture)
    if not available:
        at = f' at "{video_path}" or anywhere else' if video_path else ""
        return f"there is no camera{at} on this computer: plug it in"
    return (
        f'there is no camera at "{video_path}": plug it in, or set "video_path" to one of these '
        f"devices: {available}"
    )


def _describe_device(device: Device) -> str:
    return f"{device.by_id} ({device.name or device.path})" if device.by_id else str(device)
