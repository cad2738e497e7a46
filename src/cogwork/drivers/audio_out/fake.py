"""A speaker that makes no noise: a sound takes as long as it lasts."""

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
from cogwork.drivers.audio_out.air import Air, Piece
from cogwork.drivers.audio_out.attributes import FakeAudioOutAttributes
from cogwork.drivers.audio_out.pcm import CODECS, HIGHEST_RATE, Format, codec_named
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of

_AHEAD = 0.5
"""Seconds of a stream that are taken before they are played."""
_KEPT = 1 << 20
"""Bytes of the last sound, for whoever asks for it."""


class FakeAudioOut(Shapeless, AudioOut):
    """The newest sound has it: an older one ends, and whoever played that is told."""

    def __init__(
        self, name: ResourceName, attributes: FakeAudioOutAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._clock = clock
        self._air = Air()
        self._sound: Sound | None = None
        self._sounds = 0

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
        form = self._format(info)
        self._refuse_broken_frames(data, form)
        sound = self._begin("play", form)
        try:
            sound.add(data)
            await sound.wait(0.0)
        finally:
            sound.end("play")

    async def play_stream(self, info: AudioInfo, chunks: AsyncIterable[bytes], **_: Any) -> None:
        sound = self._begin("play_stream", self._format(info))
        try:
            async with contextlib.aclosing(_arriving(chunks, sound)) as arriving:
                async for chunk in arriving:
                    self._refuse_broken_frames(chunk, sound.format)
                    sound.add(chunk)
                    await sound.wait(_AHEAD)
            await sound.wait(0.0)
        finally:
            sound.end("play_stream")

    async def get_properties(self, **_: Any) -> AudioOut.Properties:
        return AudioOut.Properties(
            supported_codecs=CODECS,
            sample_rate_hz=self._attributes.sample_rate_hz,
            num_channels=self._attributes.num_channels,
        )

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """`{"last_played": true}` answers with the sound itself, as far as it is kept."""
        if set(command) != {"last_played"}:
            raise InvalidRequest(f'{self._called} knows one command: {{"last_played": true}}')
        if self._sound is None:
            return {}
        kept = base64.b64encode(self._sound.kept).decode()
        return {**self._sound.described(), "audio_base64": kept}

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        sound = self._sound
        if sound is None:
            return {"playing": False, "sounds": 0}
        return {
            "playing": not sound.is_over,
            "sounds": self._sounds,
            "last": sound.described(),
        }

    async def close(self) -> None:
        if self._sound is not None:
            self._sound.end("close")

    def heard(self, since: float, frames: int, form: Format) -> bytes:
        """What a microphone beside it hears from that moment on."""
        return self._air.heard(since, frames, form)

    def _begin(self, call: str, form: Format) -> Sound:
        if self._sound is not None:
            self._sound.end(call)
        self._sounds += 1
        self._sound = Sound(
            f"{self._called} did not finish {call}",
            form,
            self._attributes.speed,
            self._clock,
            self._air,
        )
        return self._sound

    def _format(self, info: AudioInfo | None) -> Format:
        if info is None:
            raise InvalidRequest(
                f"{self._called} needs the audio_info: samples do not say what they are"
            )
        codec = codec_named(info.codec, self._called)
        if not 0 < info.sample_rate_hz <= HIGHEST_RATE:
            raise InvalidRequest(
                f"{self._called} plays from 1 to {HIGHEST_RATE} samples a second, "
                f"not {info.sample_rate_hz}"
            )
        most = self._attributes.num_channels
        if not 0 < info.num_channels <= most:
            raise InvalidRequest(
                f"{self._called} plays from 1 to {most} channels, not {info.num_channels}"
            )
        return Format(codec, info.sample_rate_hz, info.num_channels)

    def _refuse_broken_frames(self, data: bytes, form: Format) -> None:
        if len(data) % form.frame_size:
            raise InvalidRequest(
                f"{self._called} got {len(data)} bytes, and {form.channels} channels of "
                f"{form.codec.name} take {form.frame_size} for each moment: some are missing"
            )

    @property
    def _called(self) -> str:
        return f'audio_out "{self.name}"'


class Sound:
    """One sound on its way out, from the first of it that came."""

    def __init__(self, unfinished: str, form: Format, speed: float, clock: Clock, air: Air) -> None:
        """`unfinished`: what is said when another one ends it."""
        self.format = form
        self.kept = bytearray()
        self._unfinished = unfinished
        self._speed = speed
        self._clock = clock
        self._air = air
        self._frames = 0
        self._finished = False
        self._played_until = clock.monotonic()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return self._ended.done()

    def add(self, data: bytes) -> None:
        """After what came before; at once, where that is over."""
        frames = len(data) // self.format.frame_size
        if not frames:
            return
        now = self._clock.monotonic()
        since = max(self._played_until, now)
        self._played_until = since + frames / self.format.rate / self._speed
        self._air.add(Piece(self.format, data, since, self._played_until, self._speed), now)
        self._frames += frames
        self.kept += data[: _KEPT - len(self.kept)]

    async def wait(self, ahead: float) -> None:
        """Until no more than so many seconds of it are left."""
        left = self._played_until - ahead - self._clock.monotonic()
        if left > 0 and not self._ended.done():
            await self._clock.wait([self._ended], left)
        self._refuse_if_ended()
        self._finished = ahead == 0.0

    async def wait_for(self, more: asyncio.Future[Any]) -> None:
        """Until that is there."""
        await self._clock.wait([more, self._ended], None)
        self._refuse_if_ended()

    def end(self, by: str) -> None:
        if not self._ended.done():
            self._ended.set_result(by)
            if not self._finished:
                self._air.silence(self._clock.monotonic())

    def described(self) -> Mapping[str, Any]:
        return {
            "codec": self.format.codec.name,
            "sample_rate_hz": self.format.rate,
            "num_channels": self.format.channels,
            "seconds": self._frames / self.format.rate,
            "finished": self._finished,
        }

    def _refuse_if_ended(self) -> None:
        if self._ended.done():
            raise Interrupted(f"{self._unfinished}: {self._ended.result()} ended it")


async def _arriving(chunks: AsyncIterable[bytes], sound: Sound) -> AsyncGenerator[bytes, None]:
    """Whoever sends nothing is told, too, when the sound is ended."""
    parts = aiter(chunks)
    while True:
        part = asyncio.ensure_future(_next(parts))
        try:
            await sound.wait_for(part)
        finally:
            part.cancel()
            await asyncio.wait([part])
        chunk = part.result()
        if chunk is None:
            return
        yield chunk


async def _next(parts: AsyncIterator[bytes]) -> bytes | None:
    """None after the last one."""
    return await anext(parts, None)
