"""A WebRTC client in Python that accepts video."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Coroutine
from typing import Any

from aiortc import RTCRtpReceiver, RTCSessionDescription
from benchmarks.parts.webrtc_client import WebRtcClient

from cogwork.net import session_description


class VideoClient(WebRtcClient):
    def __init__(self, codec: str = "") -> None:
        """`codec`: the only one that it accepts; by default, all."""
        super().__init__()
        self.tracks: asyncio.Queue[Any] = asyncio.Queue()
        self.tasks: set[asyncio.Task[None]] = set()
        self._codec = codec
        self.connection.on("track", self.tracks.put_nowait)
        self.negotiation.on("message", lambda message: self.start(self._answer(message)))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, message: str) -> None:
        offer = json.loads(base64.b64decode(message))["sdp"]
        await self.connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        if self._codec:
            known = RTCRtpReceiver.getCapabilities("video")
            assert known is not None
            codecs = [each for each in known.codecs if each.name == self._codec]
            for transceiver in self.connection.getTransceivers():
                transceiver.setCodecPreferences(codecs)
        await self.connection.setLocalDescription(await self.connection.createAnswer())
        answer = session_description.encode("answer", self.connection.localDescription.sdp)
        self.negotiation.send(answer)
