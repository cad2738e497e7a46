"""The contract of microphones."""

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

from cogwork.contracts.contract import TIMEOUT, Contract, allow_refusal

_TOLERANCE_NS = 2_000_000
"""Tolerance in nanoseconds between timestamps that should be equal."""


class AudioInContract(Contract):
    api = "rdk:component:audio_in"
    client = AudioInClient

    codec: ClassVar[str] = "pcm16"
    """A codec that the microphone supports."""
    seconds: ClassVar[float] = 0.3
    """Recording duration in seconds; long enough for several chunks."""
    remembers: ClassVar[bool] = True
    """Whether a stream can resume from an earlier timestamp."""

    async def test_reports_audio_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        assert self.codec in properties.supported_codecs
        assert properties.sample_rate_hz > 0
        assert properties.num_channels > 0

    async def test_records_for_requested_duration(self, resource: Any) -> None:
        chunks = [reply.audio for reply in await collect_audio(resource, self.codec, self.seconds)]
        assert chunks, "no audio was received"
        for chunk in chunks:
            assert chunk.audio_data
            assert chunk.audio_info.codec == self.codec
            assert chunk.audio_info.sample_rate_hz > 0
            assert chunk.audio_info.num_channels > 0
            assert chunk.start_timestamp_nanoseconds < chunk.end_timestamp_nanoseconds
        length = chunks[-1].end_timestamp_nanoseconds - chunks[0].start_timestamp_nanoseconds
        assert length / 1e9 == pytest.approx(self.seconds, rel=0.5)

    async def test_chunks_have_no_gaps(self, resource: Any) -> None:
        chunks = [reply.audio for reply in await collect_audio(resource, self.codec, self.seconds)]
        for one, other in itertools.pairwise(chunks):
            assert other.sequence == one.sequence + 1
            assert _gap_ns(one, other) <= _TOLERANCE_NS

    async def test_chunks_carry_request_id(self, resource: Any) -> None:
        one, other = await asyncio.gather(
            collect_audio(resource, self.codec, self.seconds),
            collect_audio(resource, self.codec, self.seconds),
        )
        (first,), (second,) = ({reply.request_id for reply in replies} for replies in (one, other))
        assert first
        assert second
        assert first != second

    async def test_resumes_from_timestamp(self, resource: Any) -> None:
        """A microphone that cannot resume must reject the request."""
        before = (await collect_audio(resource, self.codec, self.seconds))[-1].audio
        since = before.end_timestamp_nanoseconds
        if self.remembers:
            after = (await collect_audio(resource, self.codec, self.seconds, since))[0].audio
            assert _gap_ns(before, after) <= _TOLERANCE_NS
            return
        with pytest.raises(GRPCError) as refused:
            await collect_audio(resource, self.codec, self.seconds, since)
        assert refused.value.status is Status.UNIMPLEMENTED

    async def test_endless_stream_ends_with_client(self, resource: Any) -> None:
        stream = aiter(await resource.get_audio(self.codec, 0, 0))
        async with asyncio.timeout(TIMEOUT), contextlib.aclosing(stream):
            replies = [await anext(stream) for _ in range(3)]
        assert [reply.audio.sequence for reply in replies] == sorted(
            {reply.audio.sequence for reply in replies}
        )

    async def test_unknown_codec_error_lists_supported(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await collect_audio(resource, "no-such-codec", self.seconds)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
        assert self.codec in (refused.value.message or "")

    @pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
    async def test_refuses_invalid_duration(self, resource: Any, seconds: float) -> None:
        with pytest.raises(GRPCError) as refused:
            await collect_audio(resource, self.codec, seconds)
        assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_reports_geometries(self, resource: Any) -> None:
        with allow_refusal("GetGeometries"):
            assert isinstance(await resource.get_geometries(), list)


async def collect_audio(
    resource: Any, codec: str, seconds: float, since: int = 0
) -> Sequence[GetAudioResponse]:
    """Return all chunks of a finite stream."""
    stream = aiter(await resource.get_audio(codec, seconds, since))
    async with asyncio.timeout(TIMEOUT), contextlib.aclosing(stream):
        return [reply async for reply in stream]


def _gap_ns(one: AudioChunk, other: AudioChunk) -> int:
    gap: int = other.start_timestamp_nanoseconds - one.end_timestamp_nanoseconds
    return abs(gap)
