"""The contract of speakers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.audio_out.client import AudioOutClient
from viam.proto.common import AudioInfo
from viam.proto.component.audioout import PlayStreamChunk, PlayStreamRequest

from cogwork.contracts.contract import (
    SHORT_DURATION,
    TIMEOUT,
    Contract,
    allow_refusal,
    assert_duration,
)


class AudioOutContract(Contract):
    api = "rdk:component:audio_out"
    client = AudioOutClient

    codec: ClassVar[str] = "pcm16"
    """A PCM codec that the speaker supports."""
    sample_size: ClassVar[int] = 2
    """Bytes per sample of the codec."""
    streams: ClassVar[bool] = True
    """Whether the speaker plays streamed sounds."""
    waits: ClassVar[bool] = True
    """Whether a call returns when its sound ends. Otherwise it returns when the sound is queued."""

    async def info(self, resource: Any) -> AudioInfo:
        """Return the format of a sound that the speaker supports."""
        rate = (await resource.get_properties()).sample_rate_hz
        return AudioInfo(codec=self.codec, sample_rate_hz=rate, num_channels=1)

    def silence(self, info: AudioInfo, seconds: float) -> bytes:
        return bytes(self.sample_size * round(seconds * info.sample_rate_hz))

    async def test_reports_audio_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        assert self.codec in properties.supported_codecs
        assert properties.sample_rate_hz > 0
        assert properties.num_channels > 0

    async def test_plays_sound(self, resource: Any) -> None:
        info = await self.info(resource)
        with self._assert_duration(SHORT_DURATION):
            await resource.play(self.silence(info, SHORT_DURATION), info, timeout=TIMEOUT)

    async def test_plays_streamed_sound(self, resource: Any) -> None:
        info = await self.info(resource)
        bits = _repeat_chunk(self.silence(info, SHORT_DURATION / 5), 5)
        if self.streams:
            with self._assert_duration(SHORT_DURATION):
                await resource.play_stream(info, bits, timeout=TIMEOUT)
            return
        with pytest.raises(GRPCError) as refused:
            await resource.play_stream(info, bits, timeout=TIMEOUT)
        assert refused.value.status is Status.UNIMPLEMENTED

    async def test_cancelled_sound_ends(self, resource: Any) -> None:
        """After a sound is cancelled, the next sound must play at once."""
        info = await self.info(resource)
        long = asyncio.ensure_future(resource.play(self.silence(info, 30.0), info))
        await asyncio.wait({long}, timeout=0.1)
        long.cancel()
        with contextlib.suppress(asyncio.CancelledError, GRPCError):
            await long
        since = time.monotonic()
        await resource.play(self.silence(info, 0.05), info, timeout=TIMEOUT)
        assert time.monotonic() - since < TIMEOUT

    @pytest.mark.parametrize(
        "wrong",
        [
            {"codec": "no-such-codec"},
            {"sample_rate_hz": 0},
            {"sample_rate_hz": -1},
            {"num_channels": 0},
            {"num_channels": 10_000},
        ],
        ids=str,
    )
    async def test_refuses_invalid_sound(self, resource: Any, wrong: dict[str, Any]) -> None:
        info = await self.info(resource)
        for field, value in wrong.items():
            setattr(info, field, value)
        with pytest.raises(GRPCError) as refused:
            await resource.play(bytes(self.sample_size), info, timeout=TIMEOUT)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
        assert " " in (refused.value.message or "")

    async def test_unknown_codec_error_lists_supported(self, resource: Any) -> None:
        info = await self.info(resource)
        info.codec = "no-such-codec"
        with pytest.raises(GRPCError) as refused:
            await resource.play(b"", info, timeout=TIMEOUT)
        assert self.codec in (refused.value.message or "")

    async def test_stream_must_begin_with_init(self, resource: Any) -> None:
        chunk = PlayStreamRequest(audio_chunk=PlayStreamChunk(audio_data=b"\0\0"))
        with pytest.raises(GRPCError) as refused:
            await resource.client.PlayStream([chunk], timeout=TIMEOUT)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)

    async def test_reports_geometries(self, resource: Any) -> None:
        with allow_refusal("GetGeometries"):
            assert isinstance(await resource.get_geometries(), list)

    def _assert_duration(self, seconds: float) -> AbstractContextManager[None]:
        return assert_duration(seconds if self.waits else 0.0)


async def _repeat_chunk(data: bytes, times: int) -> AsyncIterator[bytes]:
    for _ in range(times):
        yield data
