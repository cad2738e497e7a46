"""What the SDK's own service of this API would do otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpclib.client import Channel
from grpclib.const import Status
from tests.served import refused, served
from viam.components.audio_in import AudioIn
from viam.components.audio_in.client import AudioInClient
from viam.proto.component.audioin import AudioChunk, AudioInServiceStub, GetAudioRequest
from viam.streams import StreamWithIterator

from cogwork.core.errors import Interrupted


class Microphone(AudioIn):
    """Hands the same chunk to everybody."""

    def __init__(self) -> None:
        super().__init__("m")
        self.asked: dict[str, Any] = {}
        self.left = asyncio.Event()
        self._reply = AudioIn.AudioResponse(audio=AudioChunk(audio_data=b"ab", sequence=7))

    async def get_audio(
        self, codec: str, duration_seconds: float, previous_timestamp_ns: int, **more: Any
    ) -> AudioIn.AudioStream:
        self.asked = {
            "codec": codec,
            "duration": duration_seconds,
            "previous": previous_timestamp_ns,
            **more,
        }
        return StreamWithIterator(self._chunks(duration_seconds))

    async def get_properties(self, **more: Any) -> AudioIn.Properties:
        self.asked = more
        return AudioIn.Properties(num_channels=3)

    async def _chunks(self, seconds: float) -> AsyncIterator[AudioIn.AudioResponse]:
        try:
            while True:
                yield self._reply
                if seconds:
                    raise Interrupted("the cable was pulled")
        finally:
            self.left.set()


async def test_a_stream_that_fails_says_so() -> None:
    async with served(Microphone()) as channel:
        chunks = []
        with refused() as told:
            async for reply in await AudioInClient("m", channel).get_audio("pcm16", 1, 0):
                chunks.append(reply.audio)
    assert [chunk.sequence for chunk in chunks] == [7]
    assert (told.status, told.words) == (Status.ABORTED, "the cable was pulled")


async def test_everything_of_the_request_arrives() -> None:
    microphone = Microphone()
    async with served(microphone) as channel:
        with refused():
            stream = await AudioInClient("m", channel).get_audio("mp3", 2, 3, extra={"a": 1})
            async for _ in stream:
                pass
        asked = dict(microphone.asked)
        properties = await AudioInClient("m", channel).get_properties(timeout=5)
    assert {key: asked[key] for key in ("codec", "duration", "previous", "extra")} == {
        "codec": "mp3",
        "duration": 2,
        "previous": 3,
        "extra": {"a": 1},
    }
    assert properties.num_channels == 3
    assert 0 < microphone.asked["timeout"] <= 5


async def test_each_reply_says_whose_it_is() -> None:
    async with served(Microphone()) as channel:
        await asyncio.gather(some_of("one", channel), some_of("other", channel))


async def some_of(request_id: str, channel: Channel) -> None:
    request = GetAudioRequest(name="m", codec="pcm16", request_id=request_id)
    async with AudioInServiceStub(channel).GetAudio.open() as stream:
        await stream.send_message(request, end=True)
        for _ in range(5):
            reply = await stream.recv_message()
            assert reply is not None
            assert reply.request_id == request_id
        await stream.cancel()


async def test_a_driver_is_told_when_nobody_listens_any_more() -> None:
    microphone = Microphone()
    async with served(microphone) as channel:
        await some_of("one", channel)
        await asyncio.wait_for(microphone.left.wait(), 10)
