from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from grpclib.const import Status
from tests.support.machine.served import Serve, refused, served
from tests.support.waiting import poll
from viam.components.audio_out.client import AudioOutClient
from viam.proto.common import AudioInfo

from cogwork.core.clock import ManualClock
from cogwork.drivers.audio_out.attributes import FakeAudioOutAttributes
from cogwork.drivers.audio_out.fake import FakeAudioOut
from cogwork.drivers.audio_out.pcm import CODECS, PcmFormat
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:audio_out/o")
INFO = AudioInfo(codec="pcm16", sample_rate_hz=1000, num_channels=1)
HEARING = PcmFormat(CODECS["pcm16"], 1000, 1)


def sound(seconds: float, value: int = 1) -> bytes:
    return value.to_bytes(2, "little") * round(seconds * 1000)


@pytest.fixture
async def speaker(clock: ManualClock) -> FakeAudioOut:
    return await FakeAudioOut.new(NAME, FakeAudioOutAttributes(), {}, clock)


@pytest.fixture
async def client(speaker: FakeAudioOut, serve: Serve) -> AsyncIterator[AudioOutClient]:
    async with serve(speaker) as channel:
        yield AudioOutClient("o", channel)


def is_playing(client: AudioOutClient, number: int) -> Callable[[], Awaitable[bool]]:
    """Return a condition: this many sounds have begun and the last one is playing."""

    async def is_playing_now() -> bool:
        status = await client.get_status()
        return status["sounds"] == number and status["playing"] is True

    return is_playing_now


async def test_play_takes_the_duration_of_the_sound(
    client: AudioOutClient, clock: ManualClock
) -> None:
    play = asyncio.ensure_future(client.play(sound(2), INFO))
    await poll(is_playing(client, 1))
    await clock.advance(1.999)
    assert (await client.get_status())["playing"]
    assert not play.done()
    await clock.advance(0.001)
    await asyncio.wait_for(play, 10)
    assert await client.get_status() == {
        "playing": False,
        "sounds": 1,
        "last": {
            "codec": "pcm16",
            "sample_rate_hz": 1000,
            "num_channels": 1,
            "seconds": 2,
            "finished": True,
        },
    }


@pytest.mark.parametrize(
    ("codec", "channels", "size"), [("pcm16", 2, 4), ("pcm32", 1, 4), ("pcm32_float", 2, 8)]
)
async def test_duration_depends_on_codec_and_channels(
    client: AudioOutClient, clock: ManualClock, codec: str, channels: int, size: int
) -> None:
    info = AudioInfo(codec=codec, sample_rate_hz=8000, num_channels=channels)
    play = asyncio.ensure_future(client.play(bytes(8000 * size), info))
    await poll(is_playing(client, 1))
    await clock.advance(0.999)
    assert not play.done()
    await clock.advance(0.001)
    await asyncio.wait_for(play, 10)


async def test_speed_attribute_shortens_playback(clock: ManualClock) -> None:
    speaker = await FakeAudioOut.new(NAME, FakeAudioOutAttributes(speed=10), {}, clock)
    play = asyncio.ensure_future(speaker.play(sound(2), INFO))
    await clock.advance(0.199)
    assert not play.done()
    await clock.advance(0.001)
    await asyncio.wait_for(play, 10)


async def test_newer_sound_interrupts_the_older_one(
    client: AudioOutClient, clock: ManualClock
) -> None:
    older = asyncio.ensure_future(client.play(sound(10), INFO))
    await poll(is_playing(client, 1))
    newer = asyncio.ensure_future(client.play(sound(1), INFO))
    with refused() as told:
        await asyncio.wait_for(older, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'audio_out "o" did not finish play: interrupted by play'
    await clock.advance(1)
    await asyncio.wait_for(newer, 10)


async def test_playback_stops_when_the_client_cancels(
    client: AudioOutClient, speaker: FakeAudioOut, clock: ManualClock
) -> None:
    since = clock.monotonic()
    play = asyncio.ensure_future(client.play(sound(10), INFO))
    await poll(is_playing(client, 1))
    await clock.advance(1)
    play.cancel()
    await asyncio.wait([play])
    await poll(is_silent(client))
    await clock.advance(1)
    assert speaker.render(since, 2000, HEARING) == sound(1) + sound(1, 0)
    last = (await client.get_status())["last"]
    assert isinstance(last, dict)
    assert last["finished"] is False


def is_silent(client: AudioOutClient) -> Callable[[], Awaitable[bool]]:
    async def is_silent_now() -> bool:
        return (await client.get_status())["playing"] is False

    return is_silent_now


async def test_streamed_sound_plays_without_gaps(
    client: AudioOutClient, speaker: FakeAudioOut, clock: ManualClock
) -> None:
    async def bits() -> AsyncIterator[bytes]:
        for value in range(1, 21):
            yield sound(0.1, value)

    since = clock.monotonic()
    play = asyncio.ensure_future(client.play_stream(INFO, bits()))
    await poll(is_playing(client, 1))
    await poll(has_buffered(client, 0.6))
    while not play.done():
        await clock.advance(0.1)
        await asyncio.wait([play], timeout=0.05)
    await play
    heard = speaker.render(since, 2000, HEARING)
    assert heard == b"".join(sound(0.1, value) for value in range(1, 21))
    assert clock.monotonic() - since >= 1.999


def has_buffered(client: AudioOutClient, seconds: float) -> Callable[[], Awaitable[bool]]:
    async def has_buffered_now() -> bool:
        last = (await client.get_status())["last"]
        assert isinstance(last, dict)
        return bool(last["seconds"] == pytest.approx(seconds))

    return has_buffered_now


async def test_play_stream_buffers_only_half_a_second_ahead(clock: ManualClock) -> None:
    speaker = await FakeAudioOut.new(NAME, FakeAudioOutAttributes(), {}, clock)
    sent = 0

    async def bits() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield sound(0.1)

    play = asyncio.ensure_future(speaker.play_stream(INFO, bits()))
    await clock.settle()
    assert sent == 6
    await clock.advance(1)
    assert sent == 16
    play.cancel()
    await asyncio.wait([play])


async def test_idle_stream_is_interrupted_by_another_sound(clock: ManualClock) -> None:
    speaker = await FakeAudioOut.new(NAME, FakeAudioOutAttributes(), {}, clock)
    async with served(speaker) as channel:
        client = AudioOutClient("o", channel)
        waiting = asyncio.Event()

        async def nothing() -> AsyncIterator[bytes]:
            await waiting.wait()
            yield b""

        stream = asyncio.ensure_future(client.play_stream(INFO, nothing()))
        await poll(is_playing(client, 1))
        play = asyncio.ensure_future(client.play(sound(1), INFO))
        await poll(is_playing(client, 2))
        waiting.set()
        with refused() as told:
            await asyncio.wait_for(stream, 10)
        assert told.status is Status.ABORTED
        assert told.words == 'audio_out "o" did not finish play_stream: interrupted by play'
        await clock.advance(1)
        await asyncio.wait_for(play, 10)


async def test_close_interrupts_an_idle_stream_at_once(clock: ManualClock) -> None:
    speaker = await FakeAudioOut.new(NAME, FakeAudioOutAttributes(), {}, clock)
    left = asyncio.Event()

    async def nothing() -> AsyncIterator[bytes]:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            left.set()
        yield b""

    stream = asyncio.ensure_future(speaker.play_stream(INFO, nothing()))
    await clock.settle()
    await speaker.close()
    with pytest.raises(Exception, match="did not finish play_stream: interrupted by close"):
        await asyncio.wait_for(stream, 10)
    assert left.is_set()


@pytest.mark.parametrize(
    ("data", "info", "words"),
    [
        (b"", None, 'audio_out "o" needs the audio_info: samples do not contain their format'),
        (
            b"",
            AudioInfo(codec="mp3", sample_rate_hz=1000, num_channels=1),
            'audio_out "o" has no codec "mp3"; it supports pcm16, pcm32, pcm32_float',
        ),
        (
            b"",
            AudioInfo(sample_rate_hz=1000, num_channels=1),
            'audio_out "o" needs a codec; it supports pcm16, pcm32, pcm32_float',
        ),
        (
            b"",
            AudioInfo(codec="pcm16", sample_rate_hz=0, num_channels=1),
            'audio_out "o" plays from 1 to 384000 samples per second, not 0',
        ),
        (
            b"",
            AudioInfo(codec="pcm16", sample_rate_hz=1000, num_channels=3),
            'audio_out "o" plays from 1 to 2 channels, not 3',
        ),
        (
            bytes(6),
            AudioInfo(codec="pcm16", sample_rate_hz=1000, num_channels=2),
            'audio_out "o" got 6 bytes, which is not a multiple of 4 bytes, the size of 2 '
            "samples of pcm16",
        ),
    ],
)
async def test_play_refuses_unsupported_formats(
    client: AudioOutClient, data: bytes, info: AudioInfo | None, words: str
) -> None:
    with refused() as told:
        await client.play(data, info)
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, words)
    assert (await client.get_status())["sounds"] == 0


async def test_playing_no_samples_takes_no_time(client: AudioOutClient) -> None:
    await client.play(b"", INFO, timeout=10)


async def test_last_played_command_returns_the_last_sound(
    client: AudioOutClient, clock: ManualClock
) -> None:
    assert await client.do_command({"last_played": True}) == {}
    play = asyncio.ensure_future(client.play(sound(0.5, 7), INFO))
    await poll(is_playing(client, 1))
    await clock.advance(0.5)
    await asyncio.wait_for(play, 10)
    answer = await client.do_command({"last_played": True})
    assert base64.b64decode(str(answer["audio_base64"])) == sound(0.5, 7)
    assert answer["finished"] is True
    with refused() as told:
        await client.do_command({"louder": True})
    assert told.words == 'audio_out "o" supports one command: {"last_played": true}'


async def test_last_played_command_keeps_the_beginning_of_a_long_sound(clock: ManualClock) -> None:
    speaker = await FakeAudioOut.new(NAME, FakeAudioOutAttributes(speed=10_000), {}, clock)
    play = asyncio.ensure_future(speaker.play(sound(1000), INFO))
    await clock.advance(1)
    await play
    answer = await speaker.do_command({"last_played": True})
    assert len(base64.b64decode(answer["audio_base64"])) == 1 << 20
    assert answer["seconds"] == 1000


async def test_properties_and_status_of_the_speaker(client: AudioOutClient) -> None:
    properties = await client.get_properties()
    assert list(properties.supported_codecs) == ["pcm16", "pcm32", "pcm32_float"]
    assert (properties.sample_rate_hz, properties.num_channels) == (44_100, 2)
    assert await client.get_geometries() == []
    assert await client.get_status() == {"playing": False, "sounds": 0}
