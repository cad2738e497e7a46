"""Queries of the video devices of Linux (V4L2) by ioctl.

Requests and layouts are defined in `linux/videodev2.h`.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import pwd
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

Ioctl = Callable[[int, int, bytearray], object]


class DeviceFault(CogworkError):
    """A video device cannot be queried. The code is `no_device`, `no_access`, `busy` or
    `no_picture`."""

    status = "UNAVAILABLE"

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, slots=True)
class Device:
    path: str
    """Path such as `/dev/video0`. Its number may change whenever a camera is plugged in."""
    links: tuple[str, ...] = ()
    """Links to the device by udev, by-id before by-path."""
    name: str = ""
    """Name reported by the driver; empty if the query failed."""
    can_capture: bool = True
    """Whether the device captures video. Most webcams have a second device for metadata. A device
    that refuses the query counts as capturing: opening it reports the reason."""

    @property
    def by_id(self) -> str | None:
        """Link to the device, independent of the USB port."""
        return self._find_link("by-id")

    @property
    def by_path(self) -> str | None:
        """Link to the device, dependent only on the USB port."""
        return self._find_link("by-path")

    def _find_link(self, directory: str) -> str | None:
        return next((link for link in self.links if Path(link).parent.name == directory), None)

    def __str__(self) -> str:
        return f"{self.path} ({self.name})" if self.name else self.path


@dataclass(frozen=True, slots=True)
class VideoFormat:
    fourcc: str
    width: int
    height: int
    rates: tuple[float, ...]
    """Frames per second, fastest first. Empty if the driver does not report them."""


@dataclass(frozen=True, slots=True)
class SteppedRange:
    minimum: int
    maximum: int
    step: int = 1

    def nearest(self, wanted: float) -> int:
        most = (self.maximum - self.minimum) // self.step
        return self.minimum + self.step * min(
            max(round((wanted - self.minimum) / self.step), 0), most
        )


@dataclass(frozen=True, slots=True)
class FormatRange:
    """A format with ranges of sizes and rates. The driver may reject some combinations of these."""

    fourcc: str
    widths: SteppedRange
    heights: SteppedRange
    rates: tuple[float, float] | None
    """Slowest and fastest rate at the smallest size. None if the driver does not report them."""


FormatOffer = VideoFormat | FormatRange


def list_devices(root: Path = Path("/dev"), ioctl: Ioctl = fcntl.ioctl) -> list[Device]:
    """List the video devices by ascending number."""
    links = _find_links(root / "v4l")
    numbers = sorted(
        int(found[1]) for name in _list_names(root) if (found := re.fullmatch(r"video(\d+)", name))
    )
    nodes = [root / f"video{number}" for number in numbers]
    return [_probe_device(str(node), tuple(links.get(node.resolve(), ())), ioctl) for node in nodes]


def find_device(video_path: str, devices: Sequence[Device]) -> Device | None:
    """Find a device by `/dev/video0`, by a link to it, or by the last part of either. An empty path
    selects the first device that captures."""
    if not video_path:
        return next((device for device in devices if device.can_capture), None)
    if "/" not in video_path:
        return next((device for device in devices if video_path in _base_names(device)), None)
    # Compare the target of the path, too: users may have links from their own udev rules.
    known = {video_path, str(Path(video_path).resolve())}
    return next((device for device in devices if known & {device.path, *device.links}), None)


def read_formats(path: str, ioctl: Ioctl = fcntl.ioctl) -> tuple[FormatOffer, ...]:
    """Return the formats in the driver's order, or raise DeviceFault."""
    with _DeviceNode(path, ioctl) as node:
        capability = node.query_capability()
        if not capability.can_capture:
            raise DeviceFault(
                "no_device",
                f"{path} is not the video device of the camera ({capability.card}), but another of "
                "its devices, such as the one for metadata: the video device usually has the "
                "previous number",
            )
        return tuple(dict.fromkeys(_list_formats(node, capability.buffer_type)))


def is_busy(path: str, ioctl: Ioctl = fcntl.ioctl) -> bool:
    """Return whether another program captures from the device."""
    try:
        with _DeviceNode(path, ioctl) as node:
            # A request for 0 buffers changes nothing, but fails if another program captures.
            node.send_request(_REQBUFS, 0, node.query_capability().buffer_type, _MEMORY_MMAP)
    except DeviceFault as fault:
        return fault.code == "busy"
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def fourcc_code(fourcc: str) -> int:
    return int.from_bytes(fourcc.ljust(4).encode("latin-1"), "little")


def fourcc_text(code: int) -> str:
    text = (code & ~_BIG_ENDIAN).to_bytes(4, "little").decode("latin-1").rstrip()
    return f"{text}-BE" if code & _BIG_ENDIAN else text


def _list_names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return []


def _find_links(directory: Path) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for kind in ("by-id", "by-path"):
        for name in _list_names(directory / kind):
            link = directory / kind / name
            found.setdefault(link.resolve(), []).append(str(link))
    return found


def _base_names(device: Device) -> list[str]:
    return [Path(each).name for each in (device.path, *device.links)]


def _probe_device(path: str, links: tuple[str, ...], ioctl: Ioctl) -> Device:
    try:
        with _DeviceNode(path, ioctl) as node:
            capability = node.query_capability()
    except DeviceFault as fault:
        return Device(path, links, can_capture=fault.code in ("no_access", "busy"))
    # A device with a media controller delivers nothing until the controller is configured.
    captures = capability.can_capture and not capability.flags & _CAP_IO_MC
    return Device(path, links, capability.card, captures)


def _list_formats(node: _DeviceNode, buffer_type: int) -> Iterator[FormatOffer]:
    for _, _, _, _, code, _ in node.enumerate_all(_ENUM_FMT, buffer_type):
        sizes = [_parse_size(size) for size in node.enumerate_all(_ENUM_FRAMESIZES, code)]
        for widths, heights in sizes or [node.query_current_size(buffer_type)]:
            yield _read_format(node, code, widths, heights)


def _parse_size(size: tuple[Any, ...]) -> tuple[SteppedRange, SteppedRange]:
    _, _, kind, min_width, max_width, width_step, min_height, max_height, height_step = size
    if kind == _DISCRETE:
        # For discrete sizes, the second number is the height.
        return SteppedRange(min_width, min_width), SteppedRange(max_width, max_width)
    return (
        SteppedRange(min_width, max_width, max(1, width_step)),
        SteppedRange(min_height, max_height, max(1, height_step)),
    )


def _read_format(
    node: _DeviceNode, code: int, widths: SteppedRange, heights: SteppedRange
) -> FormatOffer:
    # Query the rates of the smallest size: they include the rates of all other sizes.
    intervals = list(
        node.enumerate_all(_ENUM_FRAMEINTERVALS, code, widths.minimum, heights.minimum)
    )
    rates = sorted(
        {rate for interval in intervals for rate in _parse_rates(interval)}, reverse=True
    )
    one_size = widths.minimum == widths.maximum and heights.minimum == heights.maximum
    if one_size and all(interval[4] == _DISCRETE for interval in intervals):
        return VideoFormat(fourcc_text(code), widths.minimum, heights.minimum, tuple(rates))
    ends = (rates[-1], rates[0]) if rates else None
    return FormatRange(fourcc_text(code), widths, heights, ends)


def _parse_rates(interval: tuple[Any, ...]) -> list[float]:
    kind, *numbers = interval[4:]
    seconds = [numbers[0:2]] if kind == _DISCRETE else [numbers[0:2], numbers[2:4]]
    return [below / above for above, below in seconds if above and below]


@dataclass(frozen=True, slots=True)
class _IoctlRequest:
    number: int
    layout: struct.Struct
    direction: int = 3
    """Direction of the data: 1 to the kernel, 2 from the kernel, 3 both."""

    @property
    def code(self) -> int:
        return self.direction << 30 | self.layout.size << 16 | ord("V") << 8 | self.number


_QUERYCAP = _IoctlRequest(0, struct.Struct("=16s32s32s3I12x"), direction=2)
_ENUM_FMT = _IoctlRequest(2, struct.Struct("=3I32s2I12x"))
# The type is followed by a union that contains pointers and is aligned for them.
_G_FMT = _IoctlRequest(4, struct.Struct("@I0P3I188x"))
_REQBUFS = _IoctlRequest(8, struct.Struct("=5I"))
_ENUM_FRAMESIZES = _IoctlRequest(74, struct.Struct("=9I8x"))
_ENUM_FRAMEINTERVALS = _IoctlRequest(75, struct.Struct("=11I8x"))

_CAP_VIDEO_CAPTURE = 0x1
_CAP_VIDEO_CAPTURE_MPLANE = 0x1000
_CAP_IO_MC = 0x2000_0000
_CAP_DEVICE_CAPS = 0x8000_0000
_BUFFER_CAPTURE = 1
_BUFFER_CAPTURE_MPLANE = 9
_MEMORY_MMAP = 1
_DISCRETE = 1
_BIG_ENDIAN = 0x8000_0000

# Maximum requests per list, more than any device needs: some drivers have lists that never end.
_MAX_REQUESTS = 10_000


@dataclass(frozen=True, slots=True)
class _Capability:
    card: str
    flags: int

    @property
    def can_capture(self) -> bool:
        return bool(self.flags & (_CAP_VIDEO_CAPTURE | _CAP_VIDEO_CAPTURE_MPLANE))

    @property
    def buffer_type(self) -> int:
        mplane = self.flags & _CAP_VIDEO_CAPTURE_MPLANE
        return _BUFFER_CAPTURE_MPLANE if mplane else _BUFFER_CAPTURE


class _DeviceNode:
    """An open device for queries."""

    def __init__(self, path: str, ioctl: Ioctl) -> None:
        self._path = path
        self._ioctl = ioctl
        self._request_count = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _to_fault(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def send_request(self, request: _IoctlRequest, *values: int) -> tuple[Any, ...]:
        """Send a request that starts with the given integers, and return the unpacked response."""
        self._request_count += 1
        buffer = bytearray(request.layout.size)
        struct.pack_into(f"@{len(values)}I", buffer, 0, *values)
        self._ioctl(self._file, request.code, buffer)
        return request.layout.unpack(buffer)

    def enumerate_all(self, request: _IoctlRequest, *values: int) -> Iterator[tuple[Any, ...]]:
        for index in itertools.count():
            if self._request_count > _MAX_REQUESTS:
                return
            try:
                response = self.send_request(request, index, *values)
            except OSError as error:
                # The end of the list, or a request that the driver does not support.
                if error.errno in (errno.EINVAL, errno.ENOTTY):
                    return
                raise _to_fault(self._path, error) from error
            yield response

    def query_capability(self) -> _Capability:
        try:
            _, card, _, _, all_flags, flags = self.send_request(_QUERYCAP)
        except OSError as error:
            raise _to_fault(self._path, error) from error
        # `all_flags` covers all devices of the camera, including its metadata device.
        flags = flags if all_flags & _CAP_DEVICE_CAPS else all_flags
        return _Capability(card.split(b"\0")[0].decode(errors="replace").strip(), flags)

    def query_current_size(self, buffer_type: int) -> tuple[SteppedRange, SteppedRange]:
        """Return the current size, for drivers that do not list sizes."""
        try:
            _, width, height, _ = self.send_request(_G_FMT, buffer_type)
        except OSError as error:
            raise _to_fault(self._path, error) from error
        return SteppedRange(width, width), SteppedRange(height, height)


def _to_fault(path: str, error: OSError) -> DeviceFault:
    match error.errno:
        case errno.ENOENT | errno.ENODEV | errno.ENXIO:
            return DeviceFault("no_device", f"there is no camera at {path}: plug it in")
        case errno.ENOTTY | errno.EINVAL | errno.EISDIR:
            return DeviceFault("no_device", f"{path} is not a video device")
        case errno.EACCES | errno.EPERM:
            return DeviceFault(
                "no_access",
                f"no permission to open {path}: add the user to the video group with "
                f"sudo usermod -aG video {_user_name()}, and restart the server",
            )
        case errno.EBUSY:
            return DeviceFault("busy", busy_message(path))
        case _:
            return DeviceFault(
                "no_picture",
                f"{path} does not respond ({os_reason(error)}): unplug it and plug it in again",
            )


def busy_message(path: str) -> str:
    return f"another program is using {path}: close it (find it with fuser -v {path})"


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # In a container, the user ID often has no name.
        return str(os.geteuid())
