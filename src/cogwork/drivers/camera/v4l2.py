"""What Linux says about its video devices (V4L2), asked by ioctl.

Requests and layouts are those of `linux/videodev2.h`.
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

Ioctl = Callable[[int, int, bytearray], object]


class DeviceFault(CogworkError):
    """A video device cannot be asked. The code is `no_device`, `no_access`, `busy` or
    `no_picture`."""

    status = "UNAVAILABLE"

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, slots=True)
class Device:
    path: str
    """Such as `/dev/video0`. Which camera has which number may change at every plugging."""
    links: tuple[str, ...] = ()
    """Those of udev that lead to it, by-id ahead of by-path."""
    name: str = ""
    """As its driver calls it; empty for one that could not be asked."""
    captures: bool = True
    """Whether pictures come from it. Most webcams have a second device, for metadata. One that
    could not be asked counts: opening it will tell why."""

    @property
    def by_id(self) -> str | None:
        """Stays the same wherever the camera is plugged in."""
        return self._link("by-id")

    @property
    def by_path(self) -> str | None:
        """Stays the same whichever camera is plugged in there."""
        return self._link("by-path")

    def _link(self, directory: str) -> str | None:
        return next((link for link in self.links if Path(link).parent.name == directory), None)

    def __str__(self) -> str:
        return f"{self.path} ({self.name})" if self.name else self.path


@dataclass(frozen=True, slots=True)
class Format:
    fourcc: str
    width: int
    height: int
    rates: tuple[float, ...]
    """Pictures a second, the fastest first. None at all: the driver does not say."""


@dataclass(frozen=True, slots=True)
class Steps:
    least: int
    most: int
    step: int = 1

    def nearest(self, wanted: float) -> int:
        most = (self.most - self.least) // self.step
        return self.least + self.step * min(max(round((wanted - self.least) / self.step), 0), most)


@dataclass(frozen=True, slots=True)
class FormatRange:
    """A format in any size, or at any rate, between two. Whether a size can be had at a rate only
    trying tells."""

    fourcc: str
    widths: Steps
    heights: Steps
    rates: tuple[float, float] | None
    """The slowest and the fastest, at the smallest size. None: the driver does not say."""


Offer = Format | FormatRange


def list_devices(root: Path = Path("/dev"), ioctl: Ioctl = fcntl.ioctl) -> list[Device]:
    """Those of the lowest numbers first."""
    links = _links(root / "v4l")
    numbers = sorted(
        int(found[1]) for name in _names(root) if (found := re.fullmatch(r"video(\d+)", name))
    )
    nodes = [root / f"video{number}" for number in numbers]
    return [_device(str(node), tuple(links.get(node.resolve(), ())), ioctl) for node in nodes]


def find_device(video_path: str, devices: Sequence[Device]) -> Device | None:
    """By `/dev/video0`, by a link to it, or by the last part of either. An empty path means the
    first device that captures."""
    if not video_path:
        return next((device for device in devices if device.captures), None)
    if "/" not in video_path:
        return next((device for device in devices if video_path in _last_parts(device)), None)
    # A link need not be one of udev's usual ones: many people write a rule of their own.
    known = {video_path, str(Path(video_path).resolve())}
    return next((device for device in devices if known & {device.path, *device.links}), None)


def read_formats(path: str, ioctl: Ioctl = fcntl.ioctl) -> tuple[Offer, ...]:
    """In the driver's order. Raises DeviceFault."""
    with _Node(path, ioctl) as node:
        capability = node.capability()
        if not capability.captures:
            raise DeviceFault(
                "no_device",
                f"{path} is no camera but another part of one ({capability.card}), such as its "
                "metadata: most often the camera itself has the number before",
            )
        return tuple(dict.fromkeys(_offers(node, capability.buffer_type)))


def is_busy(path: str, ioctl: Ioctl = fcntl.ioctl) -> bool:
    """Whether another program takes pictures from it."""
    try:
        with _Node(path, ioctl) as node:
            # Frees the buffers that this open file has, which are none.
            node.ask(_REQBUFS, 0, node.capability().buffer_type, _MEMORY_MMAP)
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


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except OSError:
        return []


def _links(directory: Path) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for kind in ("by-id", "by-path"):
        for name in _names(directory / kind):
            link = directory / kind / name
            found.setdefault(link.resolve(), []).append(str(link))
    return found


def _last_parts(device: Device) -> list[str]:
    return [Path(each).name for each in (device.path, *device.links)]


def _device(path: str, links: tuple[str, ...], ioctl: Ioctl) -> Device:
    try:
        with _Node(path, ioctl) as node:
            capability = node.capability()
    except DeviceFault as fault:
        return Device(path, links, captures=fault.code in ("no_access", "busy"))
    # Behind a media controller nothing arrives before somebody has wired its parts together.
    captures = capability.captures and not capability.flags & _CAP_IO_MC
    return Device(path, links, capability.card, captures)


def _offers(node: _Node, buffer_type: int) -> Iterator[Offer]:
    for _, _, _, _, code, _ in node.each(_ENUM_FMT, buffer_type):
        sizes = [_steps(size) for size in node.each(_ENUM_FRAMESIZES, code)]
        for widths, heights in sizes or [node.current_size(buffer_type)]:
            yield _offer(node, code, widths, heights)


def _steps(size: tuple[Any, ...]) -> tuple[Steps, Steps]:
    _, _, kind, least_width, most_width, width_step, least_height, most_height, height_step = size
    if kind == _DISCRETE:
        # The second number is the height there.
        return Steps(least_width, least_width), Steps(most_width, most_width)
    return (
        Steps(least_width, most_width, max(1, width_step)),
        Steps(least_height, most_height, max(1, height_step)),
    )


def _offer(node: _Node, code: int, widths: Steps, heights: Steps) -> Offer:
    # Asked at the smallest size: the fastest is there, and nothing is refused that can be had.
    intervals = list(node.each(_ENUM_FRAMEINTERVALS, code, widths.least, heights.least))
    rates = sorted({rate for interval in intervals for rate in _rates(interval)}, reverse=True)
    one_size = widths.least == widths.most and heights.least == heights.most
    if one_size and all(interval[4] == _DISCRETE for interval in intervals):
        return Format(fourcc_text(code), widths.least, heights.least, tuple(rates))
    ends = (rates[-1], rates[0]) if rates else None
    return FormatRange(fourcc_text(code), widths, heights, ends)


def _rates(interval: tuple[Any, ...]) -> list[float]:
    kind, *numbers = interval[4:]
    seconds = [numbers[0:2]] if kind == _DISCRETE else [numbers[0:2], numbers[2:4]]
    return [below / above for above, below in seconds if above and below]


@dataclass(frozen=True, slots=True)
class _Request:
    number: int
    layout: struct.Struct
    direction: int = 3
    """1: the kernel is told, 2: it tells, 3: both."""

    @property
    def code(self) -> int:
        return self.direction << 30 | self.layout.size << 16 | ord("V") << 8 | self.number


_QUERYCAP = _Request(0, struct.Struct("=16s32s32s3I12x"), direction=2)
_ENUM_FMT = _Request(2, struct.Struct("=3I32s2I12x"))
# What follows the type is a union that also has pointers, and is aligned for them.
_G_FMT = _Request(4, struct.Struct("@I0P3I188x"))
_REQBUFS = _Request(8, struct.Struct("=5I"))
_ENUM_FRAMESIZES = _Request(74, struct.Struct("=9I8x"))
_ENUM_FRAMEINTERVALS = _Request(75, struct.Struct("=11I8x"))

_CAP_VIDEO_CAPTURE = 0x1
_CAP_VIDEO_CAPTURE_MPLANE = 0x1000
_CAP_IO_MC = 0x2000_0000
_CAP_DEVICE_CAPS = 0x8000_0000
_BUFFER_CAPTURE = 1
_BUFFER_CAPTURE_MPLANE = 9
_MEMORY_MMAP = 1
_DISCRETE = 1
_BIG_ENDIAN = 0x8000_0000

# More than any device takes; a driver whose lists have no end must not hold up the server.
_MOST_QUESTIONS = 10_000


@dataclass(frozen=True, slots=True)
class _Capability:
    card: str
    flags: int

    @property
    def captures(self) -> bool:
        return bool(self.flags & (_CAP_VIDEO_CAPTURE | _CAP_VIDEO_CAPTURE_MPLANE))

    @property
    def buffer_type(self) -> int:
        mplane = self.flags & _CAP_VIDEO_CAPTURE_MPLANE
        return _BUFFER_CAPTURE_MPLANE if mplane else _BUFFER_CAPTURE


class _Node:
    """An open device, for questions."""

    def __init__(self, path: str, ioctl: Ioctl) -> None:
        self._path = path
        self._ioctl = ioctl
        self._questions = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _fault(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def ask(self, request: _Request, *front: int) -> tuple[Any, ...]:
        """What a request says begins with whole numbers, whatever it is answered with."""
        self._questions += 1
        buffer = bytearray(request.layout.size)
        struct.pack_into(f"@{len(front)}I", buffer, 0, *front)
        self._ioctl(self._file, request.code, buffer)
        return request.layout.unpack(buffer)

    def each(self, request: _Request, *front: int) -> Iterator[tuple[Any, ...]]:
        for index in itertools.count():
            if self._questions > _MOST_QUESTIONS:
                return
            try:
                answer = self.ask(request, index, *front)
            except OSError as error:
                # After the last one; or the driver does not know the question.
                if error.errno in (errno.EINVAL, errno.ENOTTY):
                    return
                raise _fault(self._path, error) from error
            yield answer

    def capability(self) -> _Capability:
        try:
            _, card, _, _, all_flags, flags = self.ask(_QUERYCAP)
        except OSError as error:
            raise _fault(self._path, error) from error
        # The first are those of all devices of the camera, also of the one for metadata.
        flags = flags if all_flags & _CAP_DEVICE_CAPS else all_flags
        return _Capability(card.split(b"\0")[0].decode(errors="replace").strip(), flags)

    def current_size(self, buffer_type: int) -> tuple[Steps, Steps]:
        """The only one there is to know of a driver that lists none."""
        try:
            _, width, height, _ = self.ask(_G_FMT, buffer_type)
        except OSError as error:
            raise _fault(self._path, error) from error
        return Steps(width, width), Steps(height, height)


def _fault(path: str, error: OSError) -> DeviceFault:
    match error.errno:
        case errno.ENOENT | errno.ENODEV | errno.ENXIO:
            return DeviceFault("no_device", f"there is no camera at {path}: plug it in")
        case errno.ENOTTY | errno.EINVAL | errno.EISDIR:
            return DeviceFault("no_device", f"{path} is not a video device")
        case errno.EACCES | errno.EPERM:
            return DeviceFault(
                "no_access",
                f"the server may not open {path}: add the user to the video group: "
                f"sudo usermod -aG video {_user()}, and start the server anew",
            )
        case errno.EBUSY:
            return DeviceFault("busy", busy_sentence(path))
        case _:
            return DeviceFault(
                "no_picture",
                f"{path} does not answer ({error.strerror}): unplug it and plug it in again",
            )


def busy_sentence(path: str) -> str:
    return f"another program has {path}: close it (fuser -v {path} tells which it is)"


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # In a container the number often has no name.
        return str(os.geteuid())
