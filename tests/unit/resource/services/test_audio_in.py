"""Differences between our audio input service and that of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpclib.client import Channel
from grpclib.const import Status
from tests.support.machine.served import refused, served
from viam.components.audio_in import AudioIn
from viam.components.audio_in.client import AudioInClient
from viam.proto.component.audioin import AudioChunk, AudioInServiceStub, GetAudioRequest
from viam.streams import StreamWithIterator

from cogwork.core.errors import Interrupted


class Microphone(AudioIn):
    """A microphone that returns the same chunk to every client."""

    def __init__(self) -> None:
        super().__init__("m")
        self.request_values: dict[str, Any] = {}
        self.stream_closed = asyncio.Event()
        self._reply = AudioIn.AudioResponse(audio=AudioChunk(audio_data=b"ab", sequence=7))

    async def get_audio(
        self, codec: str, duration_seconds: float, previous_timestamp_ns: int, **more: Any
    ) -> AudioIn.AudioStream:
        self.request_values = {
            "codec": codec,
            "duration": duration_seconds,
            "previous": previous_timestamp_ns,
            **more,
        }
        return StreamWithIterator(self._chunks(duration_seconds))

    async def get_properties(self, **more: Any) -> AudioIn.Properties:
        self.request_values = more
        return AudioIn.Properties(num_channels=3)

    async def _chunks(self, seconds: float) -> AsyncIterator[AudioIn.AudioResponse]:
        try:
            while True:
                yield self._reply
                if seconds:
                    raise Interrupted("the cable was pulled")
        finally:
            self.stream_closed.set()


async def test_failing_stream_ends_with_its_error() -> None:
    async with served(Microphone()) as channel:
        chunks = []
        with refused() as error:
            async for reply in await AudioInClient("m", channel).get_audio("pcm16", 1, 0):
                chunks.append(reply.audio)
    assert [chunk.sequence for chunk in chunks] == [7]
    assert (error.status, error.words) == (Status.ABORTED, "the cable was pulled")


async def test_all_request_fields_reach_the_driver() -> None:
    microphone = Microphone()
    async with served(microphone) as channel:
        with refused():
            stream = await AudioInClient("m", channel).get_audio("mp3", 2, 3, extra={"a": 1})
            async for _ in stream:
                pass
        request_values = dict(microphone.request_values)
        properties = await AudioInClient("m", channel).get_properties(timeout=5)
    assert {key: request_values[key] for key in ("codec", "duration", "previous", "extra")} == {
        "codec": "mp3",
        "duration": 2,
        "previous": 3,
        "extra": {"a": 1},
    }
    assert properties.num_channels == 3
    assert 0 < microphone.request_values["timeout"] <= 5


async def test_replies_have_the_request_id() -> None:
    async with served(Microphone()) as channel:
        await asyncio.gather(read_some_replies("one", channel), read_some_replies("other", channel))


async def read_some_replies(request_id: str, channel: Channel) -> None:
    request = GetAudioRequest(name="m", codec="pcm16", request_id=request_id)
    async with AudioInServiceStub(channel).GetAudio.open() as stream:
        await stream.send_message(request, end=True)
        for _ in range(5):
            reply = await stream.recv_message()
            assert reply is not None
            assert reply.request_id == request_id
        await stream.cancel()


async def test_driver_stream_is_closed_when_the_client_leaves() -> None:
    microphone = Microphone()
    async with served(microphone) as channel:
        await read_some_replies("one", channel)
        await asyncio.wait_for(microphone.stream_closed.wait(), 10)
