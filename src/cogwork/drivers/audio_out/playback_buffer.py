"""Recent output of a speaker, for microphones that record it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.audio_out.pcm import PcmFormat

RETENTION_SECONDS = 10.0
"""Seconds of past sound that the buffer keeps."""
_MAX_CLIPS = 4096
_MAX_BYTES = 64 << 20
_FRAME_EPSILON = 1e-3
"""Tolerance in frames: a rounding error must not shift the sound by a frame."""


@dataclass(slots=True)
class AudioClip:
    """A continuous stretch of sound."""

    format: PcmFormat
    data: bytes
    since: float
    until: float
    """End in monotonic seconds, like `since`. Earlier than the end of the data if playback was cut
    off."""
    speed: float


class PlaybackBuffer:
    def __init__(self) -> None:
        self._clips: deque[AudioClip] = deque(maxlen=_MAX_CLIPS)
        self._bytes = 0

    def add(self, clip: AudioClip, now: float) -> None:
        if len(self._clips) == _MAX_CLIPS:
            self._drop_oldest()
        self._clips.append(clip)
        self._bytes += len(clip.data)
        while self._clips and self._is_expired(self._clips[0], now):
            self._drop_oldest()

    def cut_off(self, now: float) -> None:
        """Cut the sound off at the given time and drop everything after it."""
        while self._clips and self._clips[-1].since >= now:
            self._bytes -= len(self._clips.pop().data)
        if self._clips:
            self._clips[-1].until = min(self._clips[-1].until, now)

    def render(self, since: float, frames: int, pcm_format: PcmFormat) -> bytes:
        """Return the sound from the time `since` in the given format, with silence in the gaps.

        Long stretches are slow: render them in a thread.
        """
        sound = bytearray(frames * pcm_format.frame_size)
        # Iterate over a copy: clips may be added while a thread renders.
        for clip in tuple(self._clips):
            first = max(_frame_at(clip.since - since, pcm_format.rate), 0)
            end = min(_frame_at(clip.until - since, pcm_format.rate), frames)
            if first < end:
                data = _render_clip(clip, since + first / pcm_format.rate, end - first, pcm_format)
                at = first * pcm_format.frame_size
                sound[at : at + len(data)] = data
        return bytes(sound)

    def _is_expired(self, clip: AudioClip, now: float) -> bool:
        # Keep one second more than RETENTION_SECONDS, because a requested chunk may begin slightly
        # earlier.
        return clip.until < now - RETENTION_SECONDS - 1 or (
            self._bytes > _MAX_BYTES and len(self._clips) > 1
        )

    def _drop_oldest(self) -> None:
        self._bytes -= len(self._clips.popleft().data)


def _frame_at(seconds: float, rate: int) -> int:
    """Return the number of the first frame at or after the given time."""
    return math.ceil(seconds * rate - _FRAME_EPSILON)


def _render_clip(clip: AudioClip, since: float, frames: int, pcm_format: PcmFormat) -> bytes:
    """Resample a part of the clip: for the time of each requested frame, take the clip frame that
    is played at that time."""
    clip_format = clip.format
    frame_rate = clip_format.rate * clip.speed
    # Start at frame 0 if rounding places the start slightly before the clip.
    start = max((since - clip.since) * frame_rate + _FRAME_EPSILON, 0.0)
    if clip_format == pcm_format and clip.speed == 1:
        at = int(start) * pcm_format.frame_size
        return clip.data[at : at + frames * pcm_format.frame_size]
    step, frame_count = frame_rate / pcm_format.rate, len(clip.data) // clip_format.frame_size
    indexes = [min(int(start + frame * step), frame_count - 1) for frame in range(frames)]
    sound = _decode_frames(clip, indexes[0], indexes[-1] + 1)
    samples = [0.0] * (frames * pcm_format.channels)
    for channel in range(pcm_format.channels):
        # If the microphone has more channels than the clip, repeat the clip's channels.
        offset = channel % clip_format.channels - indexes[0] * clip_format.channels
        samples[channel :: pcm_format.channels] = [
            sound[at * clip_format.channels + offset] for at in indexes
        ]
    return pcm_format.codec.encode(samples)


def _decode_frames(clip: AudioClip, first: int, end: int) -> Sequence[float]:
    size = clip.format.frame_size
    return clip.format.codec.decode(clip.data[first * size : end * size])
