"""A fake microphone that records a tone or the output of a fake speaker."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, runtime_checkable

from viam.components.audio_in import AudioIn
from viam.proto.component.audioin import AudioChunk, GetAudioResponse
from viam.streams import StreamWithIterator

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Interrupted, InvalidRequest, SlowConsumer, Unsupported
from cogwork.core.workers import Workers
from cogwork.drivers.audio_in.attributes import FakeAudioInAttributes
from cogwork.drivers.audio_in.tone import Tone
from cogwork.drivers.audio_out.pcm import CODECS, PcmFormat, find_codec
from cogwork.drivers.audio_out.playback_buffer import RETENTION_SECONDS
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of

_MAX_DURATION = 86_400.0
"""Maximum seconds that a client may request; 0 requests an endless stream."""
_MAX_INLINE_SAMPLES = 5_000
"""Maximum number of samples to render on the event loop, which takes milliseconds. Larger numbers
are rendered in a thread."""


@runtime_checkable
class AudioSource(Protocol):
    """A sound source inside the machine that a fake microphone can record."""

    def render(self, since: float, frames: int, pcm_format: PcmFormat) -> bytes:
        """Return frames from the monotonic time `since` on. Call it in a thread for many frames."""


class FakeAudioIn(NoGeometry, AudioIn):
    """A microphone that stores no sound: the sound at any time is computed on request."""

    def __init__(
        self,
        name: ResourceName,
        attributes: FakeAudioInAttributes,
        clock: Clock,
        source: AudioSource,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._rate = attributes.sample_rate_hz
        self._channels = attributes.num_channels
        self._chunk_frames = max(round(attributes.chunk * self._rate), 1)
        self._clock = clock
        self._source = source
        self._workers = Workers(self._display_name)
        self._since = clock.monotonic()
        self._start_ns = round(clock.time() * 1e9)
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams = 0
        self._open_streams = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeAudioInAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeAudioIn:
        source = await _find_source(name, attributes, dependencies)
        return cls(name, attributes, clock or SystemClock(), source)

    async def get_audio(
        self, codec: str, duration_seconds: float, previous_timestamp_ns: int, **_: Any
    ) -> AudioIn.AudioStream:
        pcm_format = PcmFormat(find_codec(codec, self._display_name), self._rate, self._channels)
        first = self._first_frame(previous_timestamp_ns)
        return StreamWithIterator(
            self._stream_chunks(pcm_format, first, self._end_frame(first, duration_seconds))
        )

    async def get_properties(self, **_: Any) -> AudioIn.Properties:
        return AudioIn.Properties(
            supported_codecs=CODECS, sample_rate_hz=self._rate, num_channels=self._channels
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"listening": self._open_streams, "streams": self._streams}

    async def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        self._workers.close()

    def _first_frame(self, previous: int) -> int:
        """Return the first frame to send. `previous` is the end timestamp of the client's last
        chunk, or 0."""
        now = self._current_frame()
        if previous == 0:
            return now
        first = round((previous - self._start_ns) / 1e9 * self._rate)
        if first > now + self._chunk_frames:
            raise InvalidRequest(
                f"{self._display_name} cannot resume at {previous} ns: that time is in the future"
            )
        if first < max(now - self._retained_frames, 0):
            ago = (now - first) / self._rate
            raise InvalidRequest(
                f"{self._display_name} cannot resume from {ago:.1f} s ago: it keeps at most "
                f"{RETENTION_SECONDS:g} s of sound; use the timestamp 0 to start now"
            )
        return first

    def _end_frame(self, first: int, seconds: float) -> float:
        if not 0 <= seconds <= _MAX_DURATION:
            raise InvalidRequest(
                f"{self._display_name} cannot stream for {seconds:g} s: use at most "
                f"{_MAX_DURATION:g} s, or 0 to stream until the client ends the call"
            )
        return first + round(seconds * self._rate) if seconds else math.inf

    async def _stream_chunks(
        self, pcm_format: PcmFormat, first: int, end: float
    ) -> AsyncIterator[GetAudioResponse]:
        self._streams += 1
        self._open_streams += 1
        try:
            sequence = 0
            while first < end:
                frames = int(min(self._chunk_frames, end - first))
                await self._wait_for_frame(first + frames)
                yield GetAudioResponse(
                    audio=await self._make_chunk(pcm_format, first, frames, sequence)
                )
                first += frames
                sequence += 1
        finally:
            self._open_streams -= 1

    async def _wait_for_frame(self, frame: int) -> None:
        """Wait until the frame is in the past."""
        # Wait in a loop: a timer may fire slightly early.
        while not self._closed.done() and (left := self._seconds_until(frame)) > 0:
            await self._clock.wait([self._closed], left)
        if self._closed.done():
            raise Interrupted(f"{self._display_name} was closed")
        if frame < self._current_frame() - self._retained_frames:
            raise SlowConsumer(
                f"{self._display_name} keeps only {RETENTION_SECONDS:g} s of sound, and the stream "
                "is read too slowly: read it faster"
            )

    async def _make_chunk(
        self, pcm_format: PcmFormat, first: int, frames: int, sequence: int
    ) -> AudioChunk:
        return AudioChunk(
            audio_data=await self._render(self._time_of_frame(first), frames, pcm_format),
            audio_info=pcm_format.to_audio_info(),
            start_timestamp_nanoseconds=self._timestamp_ns(first),
            end_timestamp_nanoseconds=self._timestamp_ns(first + frames),
            sequence=sequence,
        )

    async def _render(self, since: float, frames: int, pcm_format: PcmFormat) -> bytes:
        if frames * pcm_format.channels <= _MAX_INLINE_SAMPLES:
            return self._source.render(since, frames, pcm_format)
        return await self._workers.run(self._source.render, since, frames, pcm_format)

    def _current_frame(self) -> int:
        return int((self._clock.monotonic() - self._since) * self._rate)

    def _time_of_frame(self, frame: int) -> float:
        return self._since + frame / self._rate

    def _seconds_until(self, frame: int) -> float:
        return self._time_of_frame(frame) - self._clock.monotonic()

    def _timestamp_ns(self, frame: int) -> int:
        # Use integers: a float has too few digits for nanoseconds.
        return self._start_ns + frame * 1_000_000_000 // self._rate

    @property
    def _retained_frames(self) -> int:
        return int(RETENTION_SECONDS * self._rate)

    @property
    def _display_name(self) -> str:
        return f'audio_in "{self.name}"'


async def _find_source(
    name: ResourceName, attributes: FakeAudioInAttributes, dependencies: Dependencies
) -> AudioSource:
    if attributes.hears is None:
        return await _make_tone(name, attributes)
    speaker = find_dependency(dependencies, attributes.hears)
    if not isinstance(speaker, AudioSource):
        raise Unsupported(
            f'audio_out "{attributes.hears}" cannot be recorded: use an audio_out of model "fake"'
        )
    return speaker


async def _make_tone(name: ResourceName, attributes: FakeAudioInAttributes) -> Tone:
    thread = Workers(f"audio_in-{name.name}")
    try:
        return await thread.run(
            Tone, attributes.frequency_hz, attributes.sample_rate_hz, attributes.num_channels
        )
    finally:
        thread.close()
