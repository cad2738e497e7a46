"""A microphone that hears a tone, or what a fake speaker plays."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol, runtime_checkable

from viam.components.audio_in import AudioIn
from viam.proto.component.audioin import AudioChunk, GetAudioResponse
from viam.streams import StreamWithIterator

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import FellBehind, Interrupted, InvalidRequest, Unsupported
from cogwork.core.workers import Workers
from cogwork.drivers.audio_in.attributes import FakeAudioInAttributes
from cogwork.drivers.audio_in.tone import Tone
from cogwork.drivers.audio_out.air import HEARD
from cogwork.drivers.audio_out.pcm import CODECS, Format, codec_named
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named

_LONGEST = 86_400.0
"""Seconds of one stream, where it has an end at all."""
_AT_ONCE = 5_000
"""Samples that are worked out on the loop: some milliseconds. More are worth a thread."""


@runtime_checkable
class Audible(Protocol):
    """What can be heard from inside the machine."""

    def heard(self, since: float, frames: int, form: Format) -> bytes:
        """From that moment of the clock on. Called in a thread, where it is much."""


class FakeAudioIn(Shapeless, AudioIn):
    """Nothing is recorded: what is heard at any moment can be worked out when somebody asks."""

    def __init__(
        self,
        name: ResourceName,
        attributes: FakeAudioInAttributes,
        clock: Clock,
        sound: Audible,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._rate = attributes.sample_rate_hz
        self._channels = attributes.num_channels
        self._chunk = max(round(attributes.chunk * self._rate), 1)
        self._clock = clock
        self._sound = sound
        self._workers = Workers(self._called)
        self._since = clock.monotonic()
        self._began = round(clock.time() * 1e9)
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._streams = 0
        self._listening = 0

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeAudioInAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeAudioIn:
        sound = await _sound(name, attributes, dependencies)
        return cls(name, attributes, clock or SystemClock(), sound)

    async def get_audio(
        self, codec: str, duration_seconds: float, previous_timestamp_ns: int, **_: Any
    ) -> AudioIn.AudioStream:
        form = Format(codec_named(codec, self._called), self._rate, self._channels)
        first = self._first(previous_timestamp_ns)
        return StreamWithIterator(self._chunks(form, first, self._end(first, duration_seconds)))

    async def get_properties(self, **_: Any) -> AudioIn.Properties:
        return AudioIn.Properties(
            supported_codecs=CODECS, sample_rate_hz=self._rate, num_channels=self._channels
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"listening": self._listening, "streams": self._streams}

    async def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        self._workers.close()

    def _first(self, previous: int) -> int:
        """The frame that follows the moment, which is the end of a chunk that the client has."""
        now = self._now()
        if previous == 0:
            return now
        first = round((previous - self._began) / 1e9 * self._rate)
        if first > now + self._chunk:
            raise InvalidRequest(f"{self._called} cannot go on from {previous}: that is to come")
        if first < max(now - self._kept, 0):
            ago = (now - first) / self._rate
            raise InvalidRequest(
                f"{self._called} cannot go on from {ago:.1f} s ago: it keeps {HEARD:g} s at most; "
                "go on from 0, which is now"
            )
        return first

    def _end(self, first: int, seconds: float) -> float:
        if not 0 <= seconds <= _LONGEST:
            raise InvalidRequest(
                f"{self._called} streams for up to {_LONGEST:g} s, or for 0, which is until the "
                f"client ends it; not for {seconds:g} s"
            )
        return first + round(seconds * self._rate) if seconds else math.inf

    async def _chunks(
        self, form: Format, first: int, end: float
    ) -> AsyncIterator[GetAudioResponse]:
        self._streams += 1
        self._listening += 1
        try:
            sequence = 0
            while first < end:
                frames = int(min(self._chunk, end - first))
                await self._passed(first + frames)
                yield GetAudioResponse(audio=await self._recorded(form, first, frames, sequence))
                first += frames
                sequence += 1
        finally:
            self._listening -= 1

    async def _passed(self, frame: int) -> None:
        """Until the frame is in the past."""
        # A timer may ring a hair early.
        while not self._closed.done() and (left := self._until(frame)) > 0:
            await self._clock.wait([self._closed], left)
        if self._closed.done():
            raise Interrupted(f"{self._called} was closed")
        if frame < self._now() - self._kept:
            raise FellBehind(f"{self._called} keeps {HEARD:g} s of sound: read it faster")

    async def _recorded(self, form: Format, first: int, frames: int, sequence: int) -> AudioChunk:
        return AudioChunk(
            audio_data=await self._heard(self._moment(first), frames, form),
            audio_info=form.info(),
            start_timestamp_nanoseconds=self._nanoseconds(first),
            end_timestamp_nanoseconds=self._nanoseconds(first + frames),
            sequence=sequence,
        )

    async def _heard(self, since: float, frames: int, form: Format) -> bytes:
        if frames * form.channels <= _AT_ONCE:
            return self._sound.heard(since, frames, form)
        return await self._workers.run(self._sound.heard, since, frames, form)

    def _now(self) -> int:
        return int((self._clock.monotonic() - self._since) * self._rate)

    def _moment(self, frame: int) -> float:
        return self._since + frame / self._rate

    def _until(self, frame: int) -> float:
        return self._moment(frame) - self._clock.monotonic()

    def _nanoseconds(self, frame: int) -> int:
        # In integers: a float has not that many digits.
        return self._began + frame * 1_000_000_000 // self._rate

    @property
    def _kept(self) -> int:
        return int(HEARD * self._rate)

    @property
    def _called(self) -> str:
        return f'audio_in "{self.name}"'


async def _sound(
    name: ResourceName, attributes: FakeAudioInAttributes, dependencies: Dependencies
) -> Audible:
    if attributes.hears is None:
        return await _tone(name, attributes)
    speaker = named(dependencies, attributes.hears)
    if not isinstance(speaker, Audible):
        raise Unsupported(
            f'audio_out "{attributes.hears}" cannot be heard here: name one of model "fake"'
        )
    return speaker


async def _tone(name: ResourceName, attributes: FakeAudioInAttributes) -> Tone:
    thread = Workers(f"audio_in-{name.name}")
    try:
        return await thread.run(
            Tone, attributes.frequency_hz, attributes.sample_rate_hz, attributes.num_channels
        )
    finally:
        thread.close()
