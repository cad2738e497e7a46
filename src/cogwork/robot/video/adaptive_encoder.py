"""An encoder that adapts to the size and frame rate of a camera, and to the viewers' networks."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from cogwork.core.clock import Clock
from cogwork.media.encoded_frames import EncodedFrame
from cogwork.resource.frame import Frame

if TYPE_CHECKING:
    from cogwork.media.video_encoder import VideoEncoder

_MIN_BITRATE = 100_000
_BITRATE_STEP = 0.15
"""Minimum relative change of the bit rate that restarts the encoder."""
_FRAME_RATE_STEP = 1.4
"""Minimum factor by which the frame rate must change to restart the encoder."""
_MIN_FRAME_RATE = 5
"""Minimum frame rate for which the encoder is configured: a camera that sends few frames of a still
image may soon show motion."""
_MEASURED_FRAMES = 20
"""Number of frames over which the frame rate is measured."""
_MIN_ENCODER_TIME = 2.0
"""Minimum seconds between two encoder restarts, unless the network cannot carry the video."""

_log = logging.getLogger("rdk.networking")


class Size(NamedTuple):
    width: int
    height: int


class AdaptiveEncoder:
    """An encoder that restarts, with a key frame, when its settings change."""

    def __init__(self, name: str, codec: str, size: Size | None, clock: Clock) -> None:
        """Create an encoder. `name`: the camera, for the log. `size`: None for the camera's
        size."""
        self._name = name
        self._codec = codec
        self._size = size
        self._clock = clock
        self.bitrate: int | None = None
        """Bits per second that the viewers' networks can carry; None if unknown."""
        self.current: VideoEncoder | None = None
        self._since = 0.0
        self._in_hardware = True
        self._times: deque[float] = deque(maxlen=_MEASURED_FRAMES)

    def limit_bitrate(self, bitrate: int) -> None:
        """Limit the bit rate to the bits per second that the viewers' networks can carry."""
        self.bitrate = max(_MIN_BITRATE, bitrate)

    def stop(self) -> None:
        """Free the encoder until the next frame."""
        self.current = None

    def fail(self) -> None:
        """Restart the encoder after an error, without hardware encoding."""
        self.current = None
        self._in_hardware = False

    def encode(self, frame: Frame, time: int, *, as_key: bool) -> list[EncodedFrame]:
        """Encode a frame, which takes some milliseconds. The libraries may raise any error."""
        from cogwork.media.video_encoder import (
            DEFAULT_FRAME_RATE,
            VideoCodec,
            VideoEncoder,
            default_bitrate,
        )

        self._times.append(self._clock.monotonic())
        size = self._size or Size(frame.width // 2 * 2, frame.height // 2 * 2)
        best = default_bitrate(*size)
        bitrate = min(best, self.bitrate) if self.bitrate is not None else best
        rate = self._measure_rate() or DEFAULT_FRAME_RATE
        if self.current is None or self.current.size != size or self._should_change(bitrate, rate):
            _log.debug(
                "encoding camera %s as %s, %d kbit/s", self._name, self._codec, bitrate // 1000
            )
            self.current = VideoEncoder(
                VideoCodec(self._codec), *size, bitrate, rate, in_hardware=self._in_hardware
            )
            self._since = self._clock.monotonic()
        return self.current.encode(frame.pixels, time, as_key=as_key)

    def _should_change(self, bitrate: int, frame_rate: int) -> bool:
        assert self.current is not None
        change = bitrate / self.current.bitrate - 1
        if change <= -_BITRATE_STEP:
            return True  # react immediately if the network cannot carry the video
        # For all other changes, keep the encoder for a minimum time.
        if self._clock.monotonic() - self._since < _MIN_ENCODER_TIME:
            return False
        ratio = frame_rate / self.current.frame_rate
        return change >= _BITRATE_STEP or max(ratio, 1 / ratio) > _FRAME_RATE_STEP

    def _measure_rate(self) -> int | None:
        """Return the frames per second; None if too few frames were measured."""
        if len(self._times) < _MEASURED_FRAMES or self._times[-1] == self._times[0]:
            return None
        rate = (len(self._times) - 1) / (self._times[-1] - self._times[0])
        return max(_MIN_FRAME_RATE, round(rate))
