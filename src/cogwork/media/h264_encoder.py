"""Selection of the H.264 encoder: hardware if it is suitable for video calls, else software."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable
from fractions import Fraction

import av
import av.error
import numpy as np
from av.video.frame import PictureType

SOFTWARE = "libx264"
ENCODERS = ("h264_nvenc", "h264_v4l2m2m", SOFTWARE)
"""The encoders in the order to try: NVIDIA hardware, hardware of small boards, software."""
OPTIONS = {
    "h264_nvenc": {
        "preset": "p1",
        "tune": "ull",
        "zerolatency": "1",
        "delay": "0",
        "forced-idr": "1",
        "bf": "0",
        "profile": "baseline",
    },
    "h264_v4l2m2m": {},
    # One thread is enough for small images; encoders of other cameras need the other cores.
    SOFTWARE: {
        "preset": "superfast",
        "tune": "zerolatency",
        "threads": "1",
        "profile": "baseline",
    },
}
_SIZE = (320, 240)
_TESTED = 6
_KEYS = (0, 4)

_log = logging.getLogger("rdk.networking")


@functools.cache
def choose_encoder() -> str:
    """Return the name of the first suitable encoder. The first call takes some milliseconds."""
    return next(name for name in ENCODERS if name == SOFTWARE or is_suitable(name))


def is_suitable(name: str) -> bool:
    """Return whether an encoder works, adds no delay, and creates key frames on request."""
    try:
        keys = list(_encode(name))
    except Exception as error:
        # The encoder does not exist, or rejects its options.
        _log.debug("cannot encode H.264 with %s: %s", name, error)
        return False
    return keys == [[number in _KEYS] for number in range(_TESTED)]


def _encode(name: str) -> Iterable[list[bool]]:
    """Encode test frames; yield for each frame which of its packets are key frames."""
    context = av.CodecContext.create(name, "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height = _SIZE
    context.pix_fmt = "yuv420p"
    context.framerate = Fraction(30)
    context.time_base = Fraction(1, 30)
    context.bit_rate = 500_000
    context.options = OPTIONS[name]
    decoder = av.CodecContext.create("h264", "r")
    assert isinstance(decoder, av.VideoCodecContext)
    for number in range(_TESTED):
        pixels = np.full((_SIZE[1] * 3 // 2, _SIZE[0]), 30 * number, np.uint8)
        frame = av.VideoFrame.from_ndarray(pixels, format="yuv420p")
        frame.pts = number
        frame.pict_type = PictureType.I if number in _KEYS else PictureType.NONE
        packets = context.encode(frame)
        for packet in packets:
            decoder.decode(packet)
        yield [bool(packet.is_keyframe) for packet in packets]
