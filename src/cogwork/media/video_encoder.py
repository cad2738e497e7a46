"""Encodes images as video, with PyAV."""

from __future__ import annotations

import enum
from fractions import Fraction
from typing import TYPE_CHECKING

import av
from av.video.frame import PictureType

from cogwork.media.encoded_frames import TICKS_PER_SECOND, EncodedFrame
from cogwork.media.h264_encoder import OPTIONS, SOFTWARE, choose_encoder

if TYPE_CHECKING:
    from cogwork.media.image import Pixels

DEFAULT_FRAME_RATE = 15
_KEY_FRAME_INTERVAL = 300
"""Pictures after which one that needs no others is sent, even if no viewer asks for it."""


class VideoCodec(enum.StrEnum):
    H264 = "H264"
    VP8 = "VP8"


_VP8_OPTIONS = {
    "deadline": "realtime",
    "cpu-used": "8",
    "lag-in-frames": "0",
    "error-resilient": "1",
    "threads": "1",
}


class VideoEncoder:
    """Not safe for threads; every call takes a few milliseconds."""

    def __init__(
        self,
        codec: VideoCodec,
        width: int,
        height: int,
        bitrate: int,
        frame_rate: int = DEFAULT_FRAME_RATE,
        *,
        in_hardware: bool = True,
    ) -> None:
        """`bitrate`: bits per second. `frame_rate`: pictures per second, among which the encoder
        divides them. `in_hardware`: encode H.264 there, if that works."""
        self.codec = codec
        self.size = (width, height)
        self.bitrate = bitrate
        self.frame_rate = frame_rate
        if codec is VideoCodec.VP8:
            name, options = "libvpx", _VP8_OPTIONS
        else:
            name = choose_encoder() if in_hardware else SOFTWARE
            options = OPTIONS[name]
        context = av.CodecContext.create(name, "w")
        assert isinstance(context, av.VideoCodecContext)
        context.width, context.height = self.size
        context.pix_fmt = "yuv420p"
        context.framerate = Fraction(frame_rate)
        context.time_base = Fraction(1, TICKS_PER_SECOND)
        context.bit_rate = bitrate
        context.gop_size = _KEY_FRAME_INTERVAL
        # A burst must fit through the viewer's network within half a second.
        context.options = {**options, "maxrate": str(bitrate), "bufsize": str(bitrate // 2)}
        self._context = context

    def encode(self, pixels: Pixels, time: int, *, as_key: bool) -> list[EncodedFrame]:
        """Encode an image in BGR, or of depth, after scaling it."""
        source = av.VideoFrame.from_ndarray(
            pixels, format="bgr24" if pixels.ndim == 3 else "gray16le"
        )
        frame = source.reformat(*self.size, format="yuv420p")
        frame.pts = time
        frame.time_base = Fraction(1, TICKS_PER_SECOND)
        frame.pict_type = PictureType.I if as_key else PictureType.NONE
        return [
            EncodedFrame(bytes(packet), packet.pts or time, bool(packet.is_keyframe))
            for packet in self._context.encode(frame)
        ]


def default_bitrate(width: int, height: int) -> int:
    """Return bits per second for a good picture of this size: 2 Mbit/s for 1280x720."""
    return max(300_000, min(6_000_000, round(2_000_000 * width * height / (1280 * 720))))
