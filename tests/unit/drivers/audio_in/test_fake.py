from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import pass_time, poll
from viam.components.audio_in.client import AudioInClient
from viam.proto.common import AudioInfo
from viam.proto.component.audioin import AudioChunk, GetAudioResponse

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted, SlowConsumer, Unsupported
from cogwork.drivers.audio_in.attributes import FakeAudioInAttributes
from cogwork.drivers.audio_in.fake import FakeAudioIn
from cogwork.drivers.audio_out.attributes import FakeAudioOutAttributes
from cogwork.drivers.audio_out.fake import FakeAudioOut
from cogwork.drivers.audio_out.pcm import CODECS
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:audio_in/i")
SPEAKER = ResourceName.parse("rdk:component:audio_out/o")
START = 1_000_000_000_000_000
"""Nanoseconds of the manual clock."""


@pytest.fixture
async def microphone(clock: ManualClock) -> FakeAudioIn:
    attributes = FakeAudioInAttributes(sample_rate_hz=8000, frequency_hz=440)
    return await FakeAudioIn.new(NAME, attributes, {}, clock)


@pytest.fixture
async def client(microphone: FakeAudioIn, serve: Serve) -> AsyncIterator[AudioInClient]:
    async with serve(microphone) as channel:
        yield AudioInClient("i", channel)


async def read(
    source: AudioInClient | FakeAudioIn, seconds: float, since: int = 0, codec: str = "pcm16"
) -> list[AudioChunk]:
    stream = aiter(await source.get_audio(codec, seconds, since))
    async with contextlib.aclosing(stream):
        return [reply.audio async for reply in stream]


async def record(
    source: AudioInClient | FakeAudioIn,
    clock: ManualClock,
    seconds: float,
    since: int = 0,
    codec: str = "pcm16",
) -> list[AudioChunk]:
    reading = asyncio.ensure_future(read(source, seconds, since, codec))
    async with asyncio.timeout(60):
        while not reading.done():
            await clock.advance(0.05)
            await asyncio.wait([reading], timeout=0.001)
    return await reading


def has_listeners(client: AudioInClient, number: int) -> Callable[[], Awaitable[bool]]:
    async def has_count() -> bool:
        return (await client.get_status())["listening"] == number

    return has_count


def samples(chunks: list[AudioChunk]) -> list[float]:
    codec = CODECS[chunks[0].audio_info.codec]
    return list(codec.decode(b"".join(chunk.audio_data for chunk in chunks)))


async def test_chunks_arrive_in_real_time_with_timestamps(
    client: AudioInClient, clock: ManualClock
) -> None:
    stream = aiter(await client.get_audio("pcm16", 0, 0))
    async with contextlib.aclosing(stream):
        first = asyncio.ensure_future(anext(stream))
        await poll(has_listeners(client, 1))
        await clock.advance(0.099)
        await client.get_status()
        assert not first.done()
        await clock.advance(0.001)
        reply: GetAudioResponse = await asyncio.wait_for(first, 10)
        chunk = reply.audio
        assert len(chunk.audio_data) == 1600
        assert chunk.audio_info == AudioInfo(codec="pcm16", sample_rate_hz=8000, num_channels=1)
        assert chunk.start_timestamp_nanoseconds == START
        assert chunk.end_timestamp_nanoseconds == START + 100_000_000
        assert chunk.sequence == 0
        await clock.advance(0.1)
        reply = await asyncio.wait_for(anext(stream), 10)
        assert reply.audio.sequence == 1
        assert reply.audio.start_timestamp_nanoseconds == START + 100_000_000
    await poll(has_listeners(client, 0))


@pytest.mark.parametrize("codec", ["pcm16", "pcm32", "pcm32_float"])
async def test_tone_has_its_frequency_and_no_discontinuities(
    client: AudioInClient, clock: ManualClock, codec: str
) -> None:
    tone = samples(await record(client, clock, 1.0, codec=codec))
    assert len(tone) == 8000
    crossings = sum((one < 0) != (other < 0) for one, other in itertools.pairwise(tone))
    assert crossings == pytest.approx(2 * 440, abs=1)
    assert max(tone) == pytest.approx(0.5, abs=0.01)
    steepest = 0.5 * math.tau * 440 / 8000
    assert all(abs(one - other) <= steepest * 1.01 for one, other in itertools.pairwise(tone))


async def test_every_channel_carries_the_same_tone(clock: ManualClock) -> None:
    attributes = FakeAudioInAttributes(sample_rate_hz=8000, num_channels=3)
    microphone = await FakeAudioIn.new(NAME, attributes, {}, clock)
    (chunk,) = await record(microphone, clock, 0.1)
    tone = array("h", chunk.audio_data)
    assert chunk.audio_info.num_channels == 3
    assert len(tone) == 2400
    assert tone[0::3] == tone[1::3] == tone[2::3]


async def test_last_chunk_has_the_remaining_length(
    client: AudioInClient, clock: ManualClock
) -> None:
    chunks = await record(client, clock, 0.25)
    assert [len(chunk.audio_data) for chunk in chunks] == [1600, 1600, 800]
    assert chunks[-1].end_timestamp_nanoseconds - chunks[0].start_timestamp_nanoseconds == (
        250_000_000
    )


async def test_stream_resumes_at_a_previous_timestamp(
    client: AudioInClient, clock: ManualClock
) -> None:
    whole = await record(client, clock, 1.0)
    await clock.advance(5)
    middle = whole[4].end_timestamp_nanoseconds
    # Past audio is returned without waiting.
    rest = await asyncio.wait_for(read(client, 0.5, middle), 10)
    assert rest[0].start_timestamp_nanoseconds == middle
    assert [chunk.sequence for chunk in rest] == [0, 1, 2, 3, 4]
    assert samples(rest) == samples(whole[5:])


@pytest.mark.parametrize(
    ("previous", "words"),
    [
        (START + 3_000_000_000, "cannot resume from 17.0 s ago: it keeps at most 10 s"),
        (START - 1_000_000_000, "cannot resume from 21.0 s ago"),
        (
            START + 30_000_000_000,
            f"cannot resume at {START + 30_000_000_000} ns: that time is in the future",
        ),
    ],
)
async def test_resuming_outside_the_kept_period_is_refused(
    client: AudioInClient, clock: ManualClock, previous: int, words: str
) -> None:
    await clock.advance(20)
    with refused() as told:
        await read(client, 0.1, previous)
    assert told.status is Status.INVALID_ARGUMENT
    assert words in told.words


async def test_resuming_before_construction_is_refused(
    client: AudioInClient, clock: ManualClock
) -> None:
    await clock.advance(1)
    with refused() as told:
        await read(client, 0.1, START - 1_000_000_000)
    assert told.status is Status.INVALID_ARGUMENT


async def test_slow_reader_gets_slow_consumer_error(
    microphone: FakeAudioIn, clock: ManualClock
) -> None:
    stream = aiter(await microphone.get_audio("pcm16", 0, 0))
    first = asyncio.ensure_future(anext(stream))
    await clock.advance(0.1)
    await first
    await clock.advance(9)
    await anext(stream)
    await clock.advance(2)
    with pytest.raises(
        SlowConsumer, match="keeps only 10 s of sound, and the stream is read too slowly"
    ):
        await anext(stream)


@pytest.mark.parametrize(
    ("codec", "seconds", "words"),
    [
        ("opus", 1.0, 'has no codec "opus"; it supports pcm16, pcm32, pcm32_float'),
        ("", 1.0, "needs a codec; it supports pcm16, pcm32, pcm32_float"),
        ("pcm16", -1.0, "cannot stream for -1 s: use at most"),
        ("pcm16", math.nan, "cannot stream for nan s: use at most"),
        ("pcm16", math.inf, "cannot stream for inf s: use at most"),
    ],
)
async def test_get_audio_refuses_unsupported_codecs_and_durations(
    client: AudioInClient, codec: str, seconds: float, words: str
) -> None:
    with refused() as told:
        await read(client, seconds, codec=codec)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words.startswith('audio_in "i" ')
    assert words in told.words


async def test_close_ends_the_streams(client: AudioInClient, microphone: FakeAudioIn) -> None:
    reading = asyncio.ensure_future(read(client, 0))
    await poll(has_listeners(client, 1))
    await microphone.close()
    with refused() as told:
        await asyncio.wait_for(reading, 10)
    assert (told.status, told.words) == (Status.ABORTED, 'audio_in "i" was closed')


async def test_properties_and_status_of_the_microphone(client: AudioInClient) -> None:
    properties = await client.get_properties()
    assert list(properties.supported_codecs) == ["pcm16", "pcm32", "pcm32_float"]
    assert (properties.sample_rate_hz, properties.num_channels) == (8000, 1)
    assert await client.get_geometries() == []
    assert await client.get_status() == {"listening": 0, "streams": 0}


async def microphone_near(
    speaker: object, clock: ManualClock, rate: int = 8000, channels: int = 1
) -> FakeAudioIn:
    attributes = FakeAudioInAttributes(hears="o", sample_rate_hz=rate, num_channels=channels)
    return await FakeAudioIn.new(NAME, attributes, {SPEAKER: speaker}, clock)


@pytest.fixture
async def speaker(clock: ManualClock) -> FakeAudioOut:
    return await FakeAudioOut.new(SPEAKER, FakeAudioOutAttributes(), {}, clock)


async def test_microphone_records_what_its_speaker_plays(
    speaker: FakeAudioOut, clock: ManualClock
) -> None:
    microphone = await microphone_near(speaker, clock)
    reading = asyncio.ensure_future(read(microphone, 1.0))
    await clock.advance(0.25)
    melody = array("h", (100 + number % 1000 for number in range(4000)))
    info = AudioInfo(codec="pcm16", sample_rate_hz=8000, num_channels=1)
    playing = asyncio.ensure_future(speaker.play(melody.tobytes(), info))
    await clock.advance(0.75)
    await asyncio.wait_for(playing, 10)
    chunks = await asyncio.wait_for(reading, 10)
    data = b"".join(chunk.audio_data for chunk in chunks)
    assert data == bytes(2 * 2000) + melody.tobytes() + bytes(2 * 2000)
    # The same period can be read again with another codec.
    again = await read(microphone, 1.0, chunks[0].start_timestamp_nanoseconds, "pcm32_float")
    assert samples(again) == samples(chunks)


async def test_nan_and_infinite_samples_are_recorded_as_silence(
    speaker: FakeAudioOut, clock: ManualClock
) -> None:
    microphone = await microphone_near(speaker, clock)
    reading = asyncio.ensure_future(read(microphone, 0.1))
    await clock.settle()
    noise = array("f", [math.nan, math.inf, -math.inf, 0.5])
    info = AudioInfo(codec="pcm32_float", sample_rate_hz=8000, num_channels=1)
    playing = asyncio.ensure_future(speaker.play(noise.tobytes(), info))
    await clock.advance(0.1)
    await asyncio.wait_for(playing, 10)
    assert samples(await asyncio.wait_for(reading, 10))[:5] == [0, 0, 0, 0.5, 0]


async def test_rendering_a_large_chunk_does_not_block_the_event_loop(clock: ManualClock) -> None:
    many = FakeAudioOutAttributes(num_channels=8)
    speaker = await FakeAudioOut.new(SPEAKER, many, {}, clock)
    attributes = FakeAudioInAttributes.model_validate(
        {"hears": "o", "sample_rate_hz": 96_000, "num_channels": 8, "chunk": "1s"}
    )
    microphone = await FakeAudioIn.new(NAME, attributes, {SPEAKER: speaker}, clock)
    playing = asyncio.ensure_future(
        speaker.play(
            bytes(2 * 44_100), AudioInfo(codec="pcm16", sample_rate_hz=44_100, num_channels=1)
        )
    )
    reading = asyncio.ensure_future(read(microphone, 1.0))
    await clock.advance(1.0)
    turns = 0
    async with asyncio.timeout(30):
        while not reading.done():
            await pass_time(0.001)
            turns += 1
    (chunk,) = await reading
    assert len(chunk.audio_data) == 96_000 * 8 * 2
    assert turns > 10
    await playing
    await microphone.close()


async def test_close_interrupts_reading_of_large_chunks(clock: ManualClock) -> None:
    attributes = FakeAudioInAttributes(sample_rate_hz=48_000, num_channels=8, frequency_hz=1000)
    microphone = await FakeAudioIn.new(NAME, attributes, {}, clock)
    (chunk,) = await record(microphone, clock, 0.1)
    assert len(chunk.audio_data) == 4800 * 8 * 2
    reading = asyncio.ensure_future(read(microphone, 0))
    await clock.settle()
    await microphone.close()
    with pytest.raises(Interrupted, match='audio_in "i" was closed'):
        await asyncio.wait_for(reading, 10)


async def test_speaker_that_cannot_be_recorded_is_refused(clock: ManualClock) -> None:
    with pytest.raises(Unsupported, match='audio_out "o" cannot be recorded'):
        await microphone_near(object(), clock)


def test_frequency_above_half_the_sample_rate_is_refused() -> None:
    with pytest.raises(ValidationError, match="at most 4000"):
        FakeAudioInAttributes(sample_rate_hz=8000, frequency_hz=4001)
