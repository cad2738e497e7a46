from __future__ import annotations

import errno
import fcntl
import os
import struct
from fractions import Fraction
from pathlib import Path

import pytest
from tests.unit.drivers.camera.recorded_formats import (
    C270,
    C920,
    CAMERAS,
    LAPTOP,
    METADATA_NODE,
    MULTIPLANAR,
    RecordedCamera,
    Size,
    Stepwise,
)

from cogwork.drivers.camera.v4l2 import (
    Device,
    DeviceFault,
    FormatRange,
    SteppedRange,
    VideoFormat,
    find_device,
    fourcc_code,
    fourcc_text,
    is_busy,
    list_devices,
    read_formats,
)

QUERYCAP = 0x80685600
ENUM_FMT = 0xC0405602
G_FMT = 0xC0D05604
REQBUFS = 0xC0145608
ENUM_FRAMESIZES = 0xC02C564A
ENUM_FRAMEINTERVALS = 0xC034564B

DISCRETE, CONTINUOUS, STEPWISE = 1, 2, 3
SINGLE, MULTIPLE = 1, 9

OPEN_FILES = Path("/proc/self/fd")


class Kernel:
    """Answers ioctl calls as Linux does on a 64-bit machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plugged: dict[str, RecordedCamera] = {}
        self.errors: dict[int, int] = {}
        """What fails, and how."""

    def plug(self, name: str, recorded: RecordedCamera, *links: str) -> Path:
        self.plugged[name] = recorded
        node = self.root / name
        node.touch()
        for link in links:
            at = self.root / "v4l" / link
            at.parent.mkdir(parents=True, exist_ok=True)
            at.symlink_to(f"../../{name}")
        return node

    def ioctl(self, file: int, request: int, buffer: bytearray) -> int:
        if request in self.errors:
            raise OSError(self.errors[request], os.strerror(self.errors[request]))
        assert len(buffer) == request >> 16 & 0x3FFF
        device = self.plugged[(OPEN_FILES / str(file)).readlink().name]
        answers = {
            QUERYCAP: self._query,
            ENUM_FMT: self._format,
            G_FMT: self._current,
            REQBUFS: self._free,
            ENUM_FRAMESIZES: self._size,
            ENUM_FRAMEINTERVALS: self._interval,
        }
        answers[request](device, buffer)
        return 0

    def _query(self, device: RecordedCamera, buffer: bytearray) -> None:
        struct.pack_into("=16s32s", buffer, 0, b"uvcvideo", device.card.encode())
        struct.pack_into("=II", buffer, 84, 0x84A00001 | device.flags, device.flags)

    def _format(self, device: RecordedCamera, buffer: bytearray) -> None:
        index, kind = struct.unpack_from("=II", buffer)
        self._end_at(len(device.formats), index)
        assert kind == (MULTIPLE if device is MULTIPLANAR else SINGLE)
        struct.pack_into("=I", buffer, 44, fourcc_code(list(device.formats)[index]))

    def _current(self, device: RecordedCamera, buffer: bytearray) -> None:
        struct.pack_into("=III", buffer, 8, 720, 576, fourcc_code("YUYV"))

    def _free(self, device: RecordedCamera, buffer: bytearray) -> None:
        assert struct.unpack("=5I", buffer) == (0, SINGLE, 1, 0, 0)

    def _size(self, device: RecordedCamera, buffer: bytearray) -> None:
        index, code = struct.unpack_from("=II", buffer)
        sizes = device.formats[fourcc_text(code)]
        if isinstance(sizes, Stepwise):
            self._end_at(1, index)
            pairs = zip(sizes.least, sizes.most, sizes.step, strict=True)
            numbers = [number for pair in pairs for number in pair]
            struct.pack_into("=7I", buffer, 8, STEPWISE, *numbers)
        else:
            self._end_at(len(sizes), index)
            struct.pack_into("=3I", buffer, 8, DISCRETE, *list(sizes)[index])

    def _interval(self, device: RecordedCamera, buffer: bytearray) -> None:
        index, code, *size = struct.unpack_from("=4I", buffer)
        sizes = device.formats[fourcc_text(code)]
        if isinstance(sizes, Stepwise):
            self._end_at(1, index)
            slowest, fastest = sizes.rates
            struct.pack_into("=7I", buffer, 16, CONTINUOUS, 1, fastest, 1, slowest, 1, 1)
        else:
            rates = sizes[_pair(size)]
            self._end_at(len(rates), index)
            seconds = 1 / Fraction(rates[index])
            struct.pack_into("=3I", buffer, 16, DISCRETE, seconds.numerator, seconds.denominator)

    def _end_at(self, count: int, index: int) -> None:
        if index >= count:
            raise OSError(errno.EINVAL, "Invalid argument")


def _pair(size: list[int]) -> Size:
    width, height = size
    return width, height


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def read_fault(kernel: Kernel, path: Path) -> tuple[str, str]:
    with pytest.raises(DeviceFault) as told:
        read_formats(str(path), kernel.ioctl)
    return told.value.code, str(told.value)


@pytest.mark.parametrize("camera", CAMERAS)
def test_formats_are_read_as_recorded(camera: str, kernel: Kernel) -> None:
    node = kernel.plug("video0", CAMERAS[camera])
    assert read_formats(str(node), kernel.ioctl) == CAMERAS[camera].offers


def test_stepwise_size_with_any_rate_is_read_as_a_range(kernel: Kernel) -> None:
    same = Stepwise((1920, 1080), (1920, 1080), (0, 0), (1, 60))
    node = kernel.plug("video0", RecordedCamera("HDMI", {"UYVY": same}))
    assert read_formats(str(node), kernel.ioctl) == (
        FormatRange("UYVY", SteppedRange(1920, 1920), SteppedRange(1080, 1080), (1.0, 60.0)),
    )


def test_driver_without_a_list_of_sizes_uses_the_current_size(kernel: Kernel) -> None:
    node = kernel.plug("video0", RecordedCamera("usbtv", {"YUYV": {(720, 576): (25.0,)}}))
    kernel.errors = {ENUM_FRAMESIZES: errno.ENOTTY, ENUM_FRAMEINTERVALS: errno.ENOTTY}
    assert read_formats(str(node), kernel.ioctl) == (VideoFormat("YUYV", 720, 576, ()),)


def test_duplicate_sizes_are_listed_once(kernel: Kernel) -> None:
    node = kernel.plug("video0", LAPTOP)

    def twice(file: int, request: int, buffer: bytearray) -> object:
        if request == ENUM_FRAMESIZES:
            index, code = struct.unpack_from("=II", buffer)
            struct.pack_into("=II", buffer, 0, index // 2, code)
        return kernel.ioctl(file, request, buffer)

    assert read_formats(str(node), twice) == LAPTOP.offers


def test_endless_list_of_a_driver_ends(kernel: Kernel) -> None:
    node = kernel.plug("video0", LAPTOP)

    def endless(file: int, request: int, buffer: bytearray) -> object:
        if request != QUERYCAP:
            struct.pack_into("=I", buffer, 0, 0)
        return kernel.ioctl(file, request, buffer)

    assert read_formats(str(node), endless) == (VideoFormat("YUYV", 640, 480, ()),)


def test_metadata_node_is_not_a_camera(kernel: Kernel) -> None:
    node = kernel.plug("video1", METADATA_NODE)
    code, sentence = read_fault(kernel, node)
    assert code == "no_device"
    assert sentence.startswith(
        f"{node} is not the video device of the camera (HD Pro Webcam C920), but another of"
    )


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENODEV, "no_device", "plug it in"),
        (errno.ENOTTY, "no_device", "is not a video device"),
        (errno.EACCES, "no_access", "add the user to the video group with sudo usermod -aG video "),
        (errno.EBUSY, "busy", "fuser -v"),
        (errno.EIO, "no_picture", "Input/output error"),
    ],
)
def test_kernel_errors_are_explained(kernel: Kernel, number: int, code: str, words: str) -> None:
    node = kernel.plug("video0", LAPTOP)
    kernel.errors = {QUERYCAP: number}
    told, sentence = read_fault(kernel, node)
    assert told == code
    assert words in sentence


@pytest.mark.parametrize("request_code", [ENUM_FMT, ENUM_FRAMESIZES, ENUM_FRAMEINTERVALS, G_FMT])
def test_camera_unplugged_between_two_calls_is_reported(kernel: Kernel, request_code: int) -> None:
    node = kernel.plug("video0", LAPTOP)
    kernel.errors = {ENUM_FRAMESIZES: errno.EINVAL} if request_code == G_FMT else {}
    kernel.errors[request_code] = errno.ENODEV
    assert read_fault(kernel, node) == ("no_device", f"there is no camera at {node}: plug it in")


def test_missing_path_and_directory_are_refused(kernel: Kernel, tmp_path: Path) -> None:
    assert read_fault(kernel, tmp_path / "video7")[0] == "no_device"
    assert read_fault(kernel, tmp_path)[0] == "no_device"


def test_regular_file_is_refused_by_the_real_ioctl(tmp_path: Path) -> None:
    file = tmp_path / "video0"
    file.touch()
    with pytest.raises(DeviceFault, match="is not a video device"):
        read_formats(str(file), fcntl.ioctl)
    assert [device.can_capture for device in list_devices(tmp_path)] == [False]


def test_no_file_descriptor_stays_open(kernel: Kernel) -> None:
    node = kernel.plug("video0", C920)
    before = len(list(OPEN_FILES.iterdir()))
    read_formats(str(node), kernel.ioctl)
    kernel.errors = {ENUM_FRAMEINTERVALS: errno.ENODEV}
    read_fault(kernel, node)
    list_devices(kernel.root, kernel.ioctl)
    assert len(list(OPEN_FILES.iterdir())) == before


def test_is_busy_detects_use_by_another_program(kernel: Kernel) -> None:
    node = kernel.plug("video0", C920)
    assert not is_busy(str(node), kernel.ioctl)
    kernel.errors = {REQBUFS: errno.EBUSY}
    assert is_busy(str(node), kernel.ioctl)
    kernel.errors = {REQBUFS: errno.EINVAL}
    assert not is_busy(str(node), kernel.ioctl)
    kernel.errors = {QUERYCAP: errno.EBUSY}
    assert is_busy(str(node), kernel.ioctl)
    node.unlink()
    assert not is_busy(str(node), kernel.ioctl)


def test_devices_are_listed_with_their_links(kernel: Kernel) -> None:
    kernel.plug("video10", C270)
    kernel.plug(
        "video2",
        C920,
        "by-path/pci-0000:00:14.0-usb-0:1:1.0-video-index0",
        "by-path/pci-0000:00:14.0-usbv2-0:1:1.0-video-index0",
        "by-id/usb-046d_HD_Pro_Webcam_C920_CAFE-video-index0",
    )
    kernel.plug("video3", METADATA_NODE, "by-id/usb-046d_HD_Pro_Webcam_C920_CAFE-video-index1")
    (kernel.root / "videostream").touch()
    (kernel.root / "v4l" / "by-id" / "usb-left-behind").symlink_to("../../video99")

    first, second, third = list_devices(kernel.root, kernel.ioctl)
    assert first.path == str(kernel.root / "video2")
    assert first.by_id is not None
    assert first.by_id.endswith("/v4l/by-id/usb-046d_HD_Pro_Webcam_C920_CAFE-video-index0")
    assert first.by_path is not None
    assert first.by_path.endswith("/v4l/by-path/pci-0000:00:14.0-usb-0:1:1.0-video-index0")
    assert (first.name, first.can_capture) == ("HD Pro Webcam C920", True)
    assert not second.can_capture
    assert third == Device(str(kernel.root / "video10"), (), C270.card, can_capture=True)
    assert (third.by_id, third.by_path) == (None, None)


def test_list_of_devices_may_be_empty(tmp_path: Path) -> None:
    assert list_devices(tmp_path) == []
    assert list_devices(tmp_path / "missing") == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EBUSY])
def test_device_without_access_counts_as_a_camera(kernel: Kernel, number: int) -> None:
    node = kernel.plug("video0", C920)
    kernel.errors = {QUERYCAP: number}
    assert list_devices(kernel.root, kernel.ioctl) == [Device(str(node), can_capture=True)]


def test_node_of_a_media_controller_is_not_the_default_camera(kernel: Kernel) -> None:
    raw = kernel.plug("video0", RecordedCamera("rp1-cfe", {}, flags=0x24A00001))
    usb = kernel.plug("video8", C920)
    devices = list_devices(kernel.root, kernel.ioctl)
    found = find_device("", devices)
    assert found is not None
    assert found.path == str(usb)
    # A device given by name is used nevertheless.
    assert find_device(str(raw), devices) is not None
    assert read_formats(str(raw), kernel.ioctl) == ()


def test_device_is_found_by_each_of_its_names(kernel: Kernel) -> None:
    kernel.plug("video1", METADATA_NODE)
    by_id, by_path = "by-id/usb-cam-video-index0", "by-path/platform-usb-0:1:1.0-video-index0"
    node = kernel.plug("video2", C920, by_id, by_path, "by-path/platform-usbv2-video-index0")
    own = kernel.root / "belt"
    own.symlink_to("video2")
    devices = list_devices(kernel.root, kernel.ioctl)
    links = [str(kernel.root / "v4l" / link) for link in (by_id, by_path)]
    bare = ["video2", *(Path(link).name for link in links), "platform-usbv2-video-index0"]
    for name in ("", str(node), str(own), *links, *bare):
        found = find_device(name, devices)
        assert found is not None, name
        assert found.path == str(node)
    for name in ("video", "video20", "usb-cam", str(kernel.root / "video3"), "/dev/v4l/by-id/x"):
        assert find_device(name, devices) is None, name
    # A device given by name is found here and refused when it is opened.
    assert find_device("video1", devices) is not None
    assert find_device("", devices[:1]) is None


@pytest.mark.parametrize("text", ["MJPG", "YUYV", "Y16", "Z16", "Y8I"])
def test_fourcc_survives_conversion_to_a_number_and_back(text: str) -> None:
    assert fourcc_text(fourcc_code(text)) == text


def test_known_fourcc_codes() -> None:
    assert fourcc_code("MJPG") == 0x47504A4D
    assert fourcc_code("Y16") == 0x20363159
    assert fourcc_text(0x20363159 | 1 << 31) == "Y16-BE"


@pytest.mark.parametrize(
    ("wanted", "nearest"), [(1280, 1280), (1281.2, 1280), (1287, 1288), (1, 32), (9999, 2592)]
)
def test_stepped_range_returns_the_nearest_value(wanted: float, nearest: int) -> None:
    assert SteppedRange(32, 2599, 8).nearest(wanted) == nearest
