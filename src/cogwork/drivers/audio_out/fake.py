"""A fake speaker that plays audio in real time without making a sound."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from typing import Any

from viam.components.audio_out import AudioOut
from viam.proto.common import AudioInfo

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import Interrupted, InvalidRequest
from cogwork.drivers.audio_out.attributes import FakeAudioOutAttributes
from cogwork.drivers.audio_out.pcm import CODECS, MAX_SAMPLE_RATE, PcmFormat, find_codec
from cogwork.drivers.audio_out.playback_buffer import AudioClip, PlaybackBuffer
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_BUFFER_SECONDS = 0.5
"""Maximum seconds of streamed sound that wait to be played."""
_MAX_CAPTURED_BYTES = 1 << 20
"""Maximum bytes of played audio that are kept for `do_command`."""


class FakeAudioOut(NoGeometry, AudioOut):
    """A fake speaker. A newer call interrupts the running playback, which then fails."""

    def __init__(
        self, name: ResourceName, attributes: FakeAudioOutAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._buffer = PlaybackBuffer()
        self._playback: Playback | None = None
        self._playback_count = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeAudioOutAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeAudioOut:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def play(self, data: bytes, info: AudioInfo | None = None, **_: Any) -> None:
        pcm_format = self._parse_format(info)
        self._check_whole_frames(data, pcm_format)
        playback = self._begin("play", pcm_format)
        try:
            playback.add(data)
            await playback.wait(0.0)
        finally:
            playback.end("play")

    async def play_stream(self, info: AudioInfo, chunks: AsyncIterable[bytes], **_: Any) -> None:
        playback = self._begin("play_stream", self._parse_format(info))
        try:
            async with contextlib.aclosing(_read_chunks(chunks, playback)) as arriving:
                async for chunk in arriving:
                    self._check_whole_frames(chunk, playback.format)
                    playback.add(chunk)
                    await playback.wait(_BUFFER_SECONDS)
            await playback.wait(0.0)
        finally:
            playback.end("play_stream")

    async def get_properties(self, **_: Any) -> AudioOut.Properties:
        return AudioOut.Properties(
            supported_codecs=CODECS,
            sample_rate_hz=self._attributes.sample_rate_hz,
            num_channels=self._attributes.num_channels,
        )

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Handle `{"last_played": true}`: return the recently played audio, up to a size limit."""
        if set(command) != {"last_played"}:
            raise InvalidRequest(
                f'{self._display_name} supports one command: {{"last_played": true}}'
            )
        if self._playback is None:
            return {}
        audio = base64.b64encode(self._playback.captured).decode()
        return {**self._playback.describe(), "audio_base64": audio}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        playback = self._playback
        if playback is None:
            return {"playing": False, "sounds": 0}
        return {
            "playing": not playback.has_ended,
            "sounds": self._playback_count,
            "last": playback.describe(),
        }

    async def close(self) -> None:
        if self._playback is not None:
            self._playback.end("close")

    def render(self, since: float, frames: int, pcm_format: PcmFormat) -> bytes:
        """Return frames of the output from the monotonic time `since` on."""
        return self._buffer.render(since, frames, pcm_format)

    def _begin(self, call: str, pcm_format: PcmFormat) -> Playback:
        if self._playback is not None:
            self._playback.end(call)
        self._playback_count += 1
        self._playback = Playback(
            f"{self._display_name} did not finish {call}",
            pcm_format,
            self._attributes.speed,
            self._clock,
            self._buffer,
        )
        return self._playback

    def _parse_format(self, info: AudioInfo | None) -> PcmFormat:
        if info is None:
            raise InvalidRequest(
                f"{self._display_name} needs the audio_info: samples do not contain their format"
            )
        codec = find_codec(info.codec, self._display_name)
        if not 0 < info.sample_rate_hz <= MAX_SAMPLE_RATE:
            raise InvalidRequest(
                f"{self._display_name} plays from 1 to {MAX_SAMPLE_RATE} samples per second, "
                f"not {info.sample_rate_hz}"
            )
        maximum = self._attributes.num_channels
        if not 0 < info.num_channels <= maximum:
            raise InvalidRequest(
                f"{self._display_name} plays from 1 to {maximum} channels, not {info.num_channels}"
            )
        return PcmFormat(codec, info.sample_rate_hz, info.num_channels)

    def _check_whole_frames(self, data: bytes, pcm_format: PcmFormat) -> None:
        if len(data) % pcm_format.frame_size:
            raise InvalidRequest(
                f"{self._display_name} got {len(data)} bytes, which is not a multiple of "
                f"{pcm_format.frame_size} bytes, the size of {pcm_format.channels} samples "
                f"of {pcm_format.codec.name}"
            )

    @property
    def _display_name(self) -> str:
        return f'audio_out "{self.name}"'


class Playback:
    """The playback of one sound."""

    def __init__(
        self,
        message: str,
        pcm_format: PcmFormat,
        speed: float,
        clock: Clock,
        buffer: PlaybackBuffer,
    ) -> None:
        """If the playback is interrupted, its error message begins with `message`."""
        self.format = pcm_format
        self.captured = bytearray()
        self._interrupted_message = message
        self._speed = speed
        self._clock = clock
        self._buffer = buffer
        self._frames = 0
        self._finished = False
        self._played_until = clock.monotonic()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    def add(self, data: bytes) -> None:
        """Play the data after all earlier data, or now if the earlier data has been played."""
        frames = len(data) // self.format.frame_size
        if not frames:
            return
        now = self._clock.monotonic()
        since = max(self._played_until, now)
        self._played_until = since + frames / self.format.rate / self._speed
        self._buffer.add(AudioClip(self.format, data, since, self._played_until, self._speed), now)
        self._frames += frames
        self.captured += data[: _MAX_CAPTURED_BYTES - len(self.captured)]

    async def wait(self, ahead: float) -> None:
        """Wait until at most `ahead` seconds are left to play."""
        remaining = self._played_until - ahead - self._clock.monotonic()
        if remaining > 0 and not self._ended.done():
            await self._clock.wait([self._ended], remaining)
        self._raise_if_ended()
        self._finished = ahead == 0.0

    async def wait_for(self, future: asyncio.Future[Any]) -> None:
        """Wait for the future; raise Interrupted if the playback is interrupted first."""
        await self._clock.wait([future, self._ended], None)
        self._raise_if_ended()

    def end(self, by: str) -> None:
        if not self._ended.done():
            self._ended.set_result(by)
            if not self._finished:
                self._buffer.cut_off(self._clock.monotonic())

    def describe(self) -> Mapping[str, Any]:
        return {
            "codec": self.format.codec.name,
            "sample_rate_hz": self.format.rate,
            "num_channels": self.format.channels,
            "seconds": self._frames / self.format.rate,
            "finished": self._finished,
        }

    def _raise_if_ended(self) -> None:
        if self._ended.done():
            raise Interrupted(f"{self._interrupted_message}: interrupted by {self._ended.result()}")


async def _read_chunks(
    chunks: AsyncIterable[bytes], playback: Playback
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks. Raise Interrupted as soon as the playback is interrupted, even while
    waiting for the next chunk."""
    parts = aiter(chunks)
    while True:
        part = asyncio.ensure_future(_next_or_none(parts))
        try:
            await playback.wait_for(part)
        finally:
            part.cancel()
            await asyncio.wait([part])
        chunk = part.result()
        if chunk is None:
            return
        yield chunk


async def _next_or_none(parts: AsyncIterator[bytes]) -> bytes | None:
    """Return the next chunk, or None after the last one."""
    return await anext(parts, None)
