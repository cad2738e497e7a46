"""A video encoder for H.264 and VP8, based on PyAV."""

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
"""Frames from one key frame to the next if no viewer requests one."""


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
    """Encodes images as video. Not thread-safe; each call takes a few milliseconds."""

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
        """`bitrate` is in bits per second, and `frame_rate` in frames per second. With
        `in_hardware`, H.264 is encoded in hardware if possible."""
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
        # Limit bursts to the amount that the viewer's network transfers in half a second.
        context.options = {**options, "maxrate": str(bitrate), "bufsize": str(bitrate // 2)}
        self._context = context

    def encode(self, pixels: Pixels, time: int, *, as_key: bool) -> list[EncodedFrame]:
        """Encode a color image (BGR) or a depth image, scaled to the size of the video."""
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
    """Return the bitrate of good quality for an image size: 2 Mbit/s for 1280x720."""
    return max(300_000, min(6_000_000, round(2_000_000 * width * height / (1280 * 720))))
