"""What a microphone keeps to."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.audio_in.client import AudioInClient
from viam.proto.component.audioin import AudioChunk, GetAudioResponse

from cogwork.contracts.contract import PATIENCE, Contract, explained

_SLACK = 2_000_000
"""Nanoseconds by which two moments may differ that should be one."""


class AudioInContract(Contract):
    api = "rdk:component:audio_in"
    client = AudioInClient

    codec: ClassVar[str] = "pcm16"
    """One that it has."""
    seconds: ClassVar[float] = 0.3
    """How long it is listened to; some chunks come in that time."""
    remembers: ClassVar[bool] = True
    """Whether it goes on from where a client was."""

    async def test_it_says_what_it_hears(self, it: Any) -> None:
        properties = await it.get_properties()
        assert self.codec in properties.supported_codecs
        assert properties.sample_rate_hz > 0
        assert properties.num_channels > 0

    async def test_it_hears_for_as_long_as_it_shall(self, it: Any) -> None:
        chunks = [reply.audio for reply in await heard(it, self.codec, self.seconds)]
        assert chunks, "nothing was heard"
        for chunk in chunks:
            assert chunk.audio_data
            assert chunk.audio_info.codec == self.codec
            assert chunk.audio_info.sample_rate_hz > 0
            assert chunk.audio_info.num_channels > 0
            assert chunk.start_timestamp_nanoseconds < chunk.end_timestamp_nanoseconds
        length = chunks[-1].end_timestamp_nanoseconds - chunks[0].start_timestamp_nanoseconds
        assert length / 1e9 == pytest.approx(self.seconds, rel=0.5)

    async def test_nothing_is_missing_between_chunks(self, it: Any) -> None:
        chunks = [reply.audio for reply in await heard(it, self.codec, self.seconds)]
        for one, other in itertools.pairwise(chunks):
            assert other.sequence == one.sequence + 1
            assert _apart(one, other) <= _SLACK

    async def test_chunks_say_which_request_they_answer(self, it: Any) -> None:
        one, other = await asyncio.gather(
            heard(it, self.codec, self.seconds), heard(it, self.codec, self.seconds)
        )
        (first,), (second,) = ({reply.request_id for reply in replies} for replies in (one, other))
        assert first
        assert second
        assert first != second

    async def test_it_goes_on_from_where_a_client_was(self, it: Any) -> None:
        """Or says that it cannot."""
        before = (await heard(it, self.codec, self.seconds))[-1].audio
        since = before.end_timestamp_nanoseconds
        if self.remembers:
            after = (await heard(it, self.codec, self.seconds, since))[0].audio
            assert _apart(before, after) <= _SLACK
            return
        with pytest.raises(GRPCError) as refused:
            await heard(it, self.codec, self.seconds, since)
        assert refused.value.status is Status.UNIMPLEMENTED

    async def test_without_an_end_it_hears_until_nobody_listens(self, it: Any) -> None:
        stream = aiter(await it.get_audio(self.codec, 0, 0))
        async with asyncio.timeout(PATIENCE), contextlib.aclosing(stream):
            replies = [await anext(stream) for _ in range(3)]
        assert [reply.audio.sequence for reply in replies] == sorted(
            {reply.audio.sequence for reply in replies}
        )

    async def test_a_codec_that_it_has_not_is_answered_with_those_it_has(self, it: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await heard(it, "no-such-codec", self.seconds)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
        assert self.codec in (refused.value.message or "")

    @pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
    async def test_a_time_that_makes_no_sense_is_refused(self, it: Any, seconds: float) -> None:
        with pytest.raises(GRPCError) as refused:
            await heard(it, self.codec, seconds)
        assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_it_says_what_room_it_takes(self, it: Any) -> None:
        with explained("GetGeometries"):
            assert isinstance(await it.get_geometries(), list)


async def heard(it: Any, codec: str, seconds: float, since: int = 0) -> Sequence[GetAudioResponse]:
    """All of a stream that ends by itself."""
    stream = aiter(await it.get_audio(codec, seconds, since))
    async with asyncio.timeout(PATIENCE), contextlib.aclosing(stream):
        return [reply async for reply in stream]


def _apart(one: AudioChunk, other: AudioChunk) -> int:
    gap: int = other.start_timestamp_nanoseconds - one.end_timestamp_nanoseconds
    return abs(gap)
