r"""Formats that cameras offer, as known from `v4l2-ctl --list-formats-ext`.

No such camera was available: the kinds of sizes and rates are right, single values may be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cogwork.drivers.camera.v4l2 import FormatOffer, FormatRange, SteppedRange, VideoFormat

Size = tuple[int, int]
CAPTURE = 0x0420_0001
MULTIPLANAR_CAPTURE = 0x0420_1000
METADATA = 0x04A0_0000


@dataclass(frozen=True)
class Stepwise:
    """Any size within a stepped range, at any rate from the slowest to the fastest."""

    least: Size
    most: Size
    step: Size
    rates: tuple[int, int]


@dataclass(frozen=True)
class RecordedCamera:
    card: str
    formats: dict[str, dict[Size, tuple[float, ...]] | Stepwise] = field(default_factory=dict)
    flags: int = CAPTURE
    """Of this device; those of the whole camera always say that something captures."""

    @property
    def offers(self) -> tuple[FormatOffer, ...]:
        return tuple(
            offer for fourcc, sizes in self.formats.items() for offer in _offers(fourcc, sizes)
        )


def _offers(fourcc: str, sizes: dict[Size, tuple[float, ...]] | Stepwise) -> list[FormatOffer]:
    if isinstance(sizes, dict):
        return [VideoFormat(fourcc, *size, rates) for size, rates in sizes.items()]
    (left, low), (right, high), (across, down) = sizes.least, sizes.most, sizes.step
    widths, heights = SteppedRange(left, right, across), SteppedRange(low, high, down)
    return [FormatRange(fourcc, widths, heights, sizes.rates)]


_C920_RATES = (30.0, 24.0, 20.0, 15.0, 10.0, 7.5, 5.0)
_C920_SIZES = [
    (640, 480),
    (160, 90),
    (160, 120),
    (176, 144),
    (320, 180),
    (320, 240),
    (352, 288),
    (432, 240),
    (640, 360),
    (800, 448),
    (800, 600),
    (864, 480),
    (960, 720),
    (1024, 576),
    (1280, 720),
    (1600, 896),
    (1920, 1080),
]
C920 = RecordedCamera(
    "HD Pro Webcam C920",
    {
        "YUYV": {
            **dict.fromkeys(_C920_SIZES[:10], _C920_RATES),
            (800, 600): (24.0, 20.0, 15.0, 10.0, 7.5, 5.0),
            (864, 480): (24.0, 20.0, 15.0, 10.0, 7.5, 5.0),
            (960, 720): (15.0, 10.0, 7.5, 5.0),
            (1024, 576): (15.0, 10.0, 7.5, 5.0),
            (1280, 720): (10.0, 7.5, 5.0),
            (1600, 896): (7.5, 5.0),
            (1920, 1080): (5.0,),
            (2304, 1296): (2.0,),
            (2304, 1536): (2.0,),
        },
        "H264": dict.fromkeys(_C920_SIZES, _C920_RATES),
        "MJPG": dict.fromkeys(_C920_SIZES, _C920_RATES),
    },
)

_C270_RATES = (30.0, 25.0, 20.0, 15.0, 10.0, 5.0)
_C270_SIZES = [
    (640, 480),
    (160, 120),
    (176, 144),
    (320, 176),
    (320, 240),
    (352, 288),
    (432, 240),
    (544, 288),
    (640, 360),
    (752, 416),
    (800, 448),
    (800, 600),
    (864, 480),
    (960, 544),
    (960, 720),
    (1024, 576),
    (1184, 656),
    (1280, 720),
    (1280, 960),
]
C270 = RecordedCamera(
    "UVC Camera (046d:0825)",
    {
        "YUYV": {
            **dict.fromkeys(_C270_SIZES[:9], _C270_RATES),
            (752, 416): (25.0, 20.0, 15.0, 10.0, 5.0),
            (800, 448): (20.0, 15.0, 10.0, 5.0),
            (800, 600): (20.0, 15.0, 10.0, 5.0),
            (864, 480): (20.0, 15.0, 10.0, 5.0),
            (960, 544): (15.0, 10.0, 5.0),
            (960, 720): (10.0, 5.0),
            (1024, 576): (10.0, 5.0),
            (1184, 656): (10.0, 5.0),
            (1280, 720): (7.5, 5.0),
            (1280, 960): (7.5, 5.0),
        },
        "MJPG": dict.fromkeys(_C270_SIZES, _C270_RATES),
    },
)

RASPBERRY_PI = RecordedCamera(
    "mmal service 16.1",
    dict.fromkeys(
        ["YU12", "YUYV", "RGB3", "JPEG", "H264", "MJPG", "YVYU", "VYUY", "UYVY", "NV12", "BGR3"],
        Stepwise((32, 32), (3280, 2464), (2, 2), (1, 90)),
    ),
)

REALSENSE_DEPTH = RecordedCamera(
    "Intel(R) RealSense(TM) Depth Ca",
    {
        "Z16": {
            (256, 144): (90.0,),
            (424, 240): (90.0, 60.0, 30.0, 15.0, 6.0),
            (640, 480): (90.0, 60.0, 30.0, 15.0, 6.0),
            (848, 480): (90.0, 60.0, 30.0, 15.0, 6.0),
            (1280, 720): (30.0, 15.0, 6.0),
        },
    },
)
REALSENSE_INFRARED = RecordedCamera(
    "Intel(R) RealSense(TM) Depth Ca",
    {
        "GREY": {
            (640, 480): (90.0, 60.0, 30.0, 15.0, 6.0),
            (848, 480): (90.0, 60.0, 30.0, 15.0, 6.0),
            (1280, 720): (30.0, 15.0, 6.0),
        },
        "UYVY": {
            (640, 480): (90.0, 60.0, 30.0, 15.0, 6.0),
            (848, 480): (90.0, 60.0, 30.0, 15.0, 6.0),
        },
        "Y8I": {(1280, 720): (30.0, 15.0, 6.0)},
        "Y12I": {(1280, 800): (25.0, 15.0)},
    },
)
REALSENSE_COLOR = RecordedCamera(
    "Intel(R) RealSense(TM) Depth Ca",
    {
        "YUYV": {
            (320, 180): (60.0, 30.0, 6.0),
            (640, 480): (60.0, 30.0, 15.0, 6.0),
            (960, 540): (60.0, 30.0, 15.0, 6.0),
            (1280, 720): (30.0, 15.0, 6.0),
            (1920, 1080): (30.0, 15.0, 6.0),
        },
        "BYR2": {(1920, 1080): (30.0,)},
    },
)

LAPTOP = RecordedCamera(
    "Integrated Camera: Integrated C",
    {
        "YUYV": {
            (640, 480): (30.0,),
            (160, 120): (30.0,),
            (320, 240): (30.0,),
            (424, 240): (30.0,),
            (640, 360): (30.0,),
            (1280, 720): (10.0,),
        },
    },
)

H264_ONLY = RecordedCamera(
    "H264 USB Camera",
    {"H264": {(1920, 1080): (30.0, 15.0), (1280, 720): (30.0, 15.0), (640, 480): (30.0, 15.0)}},
)

MULTIPLANAR = RecordedCamera(
    "rkisp_mainpath",
    {"NV12": {(1920, 1080): (30.0,)}},
    flags=MULTIPLANAR_CAPTURE,
)

METADATA_NODE = RecordedCamera("HD Pro Webcam C920", flags=METADATA)

CAMERAS = {
    "c920": C920,
    "c270": C270,
    "raspberry pi": RASPBERRY_PI,
    "realsense depth": REALSENSE_DEPTH,
    "realsense infrared": REALSENSE_INFRARED,
    "realsense colour": REALSENSE_COLOR,
    "laptop": LAPTOP,
    "h264 only": H264_ONLY,
    "multiplanar": MULTIPLANAR,
}
