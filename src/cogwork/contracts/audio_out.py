"""What a speaker keeps to."""

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

from cogwork.contracts.contract import A_MOMENT, PATIENCE, Contract, explained, lasting


class AudioOutContract(Contract):
    api = "rdk:component:audio_out"
    client = AudioOutClient

    codec: ClassVar[str] = "pcm16"
    """One that it plays, of plain samples."""
    sample_size: ClassVar[int] = 2
    """Bytes of a sample of that codec."""
    streams: ClassVar[bool] = True
    """Whether it plays sounds that come bit by bit."""
    waits: ClassVar[bool] = True
    """Whether a call lasts as long as its sound; not if it only hands the sound on."""

    async def info(self, it: Any) -> AudioInfo:
        """Of a sound that it surely plays."""
        rate = (await it.get_properties()).sample_rate_hz
        return AudioInfo(codec=self.codec, sample_rate_hz=rate, num_channels=1)

    def silence(self, info: AudioInfo, seconds: float) -> bytes:
        return bytes(self.sample_size * round(seconds * info.sample_rate_hz))

    async def test_it_says_what_it_plays(self, it: Any) -> None:
        properties = await it.get_properties()
        assert self.codec in properties.supported_codecs
        assert properties.sample_rate_hz > 0
        assert properties.num_channels > 0

    async def test_it_plays_a_sound(self, it: Any) -> None:
        info = await self.info(it)
        with self._lasting(A_MOMENT):
            await it.play(self.silence(info, A_MOMENT), info, timeout=PATIENCE)

    async def test_it_plays_a_sound_that_comes_bit_by_bit(self, it: Any) -> None:
        info = await self.info(it)
        bits = _bits(self.silence(info, A_MOMENT / 5), 5)
        if self.streams:
            with self._lasting(A_MOMENT):
                await it.play_stream(info, bits, timeout=PATIENCE)
            return
        with pytest.raises(GRPCError) as refused:
            await it.play_stream(info, bits, timeout=PATIENCE)
        assert refused.value.status is Status.UNIMPLEMENTED

    async def test_a_sound_that_nobody_waits_for_ends(self, it: Any) -> None:
        """The next one need not wait for it."""
        info = await self.info(it)
        long = asyncio.ensure_future(it.play(self.silence(info, 30.0), info))
        await asyncio.wait({long}, timeout=0.1)
        long.cancel()
        with contextlib.suppress(asyncio.CancelledError, GRPCError):
            await long
        since = time.monotonic()
        await it.play(self.silence(info, 0.05), info, timeout=PATIENCE)
        assert time.monotonic() - since < PATIENCE

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
    async def test_a_sound_that_it_cannot_play_is_refused(
        self, it: Any, wrong: dict[str, Any]
    ) -> None:
        info = await self.info(it)
        for field, value in wrong.items():
            setattr(info, field, value)
        with pytest.raises(GRPCError) as refused:
            await it.play(bytes(self.sample_size), info, timeout=PATIENCE)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
        assert " " in (refused.value.message or "")

    async def test_a_codec_that_it_has_not_is_answered_with_those_it_has(self, it: Any) -> None:
        info = await self.info(it)
        info.codec = "no-such-codec"
        with pytest.raises(GRPCError) as refused:
            await it.play(b"", info, timeout=PATIENCE)
        assert self.codec in (refused.value.message or "")

    async def test_a_stream_begins_with_what_it_is_about(self, it: Any) -> None:
        chunk = PlayStreamRequest(audio_chunk=PlayStreamChunk(audio_data=b"\0\0"))
        with pytest.raises(GRPCError) as refused:
            await it.client.PlayStream([chunk], timeout=PATIENCE)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)

    async def test_it_says_what_room_it_takes(self, it: Any) -> None:
        with explained("GetGeometries"):
            assert isinstance(await it.get_geometries(), list)

    def _lasting(self, seconds: float) -> AbstractContextManager[None]:
        return lasting(seconds if self.waits else 0.0)


async def _bits(data: bytes, times: int) -> AsyncIterator[bytes]:
    for _ in range(times):
        yield data
