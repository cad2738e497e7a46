"""A cloud that answers the calls of one link of a machine as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from google.protobuf.message import Message

from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import CloudUnavailable

END = object()
"""Ends a stream."""


class ScriptedCloud:
    def __init__(self) -> None:
        self.answer: Message | CloudUnavailable = CloudUnavailable("it is away")
        """What every call gets."""
        self.requests: list[Any] = []
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        """What a stream gets: messages, failures, or its end."""
        self.streams = 0
        """Those that were opened."""

    @property
    def client(self) -> CloudClient:
        return cast("CloudClient", self)

    async def call(self, _: str, request: Message, *__: Any) -> Message:
        self.requests.append(request)
        if isinstance(self.answer, Message):
            return self.answer
        raise self.answer

    async def stream(self, _: str, request: Message, *__: Any) -> AsyncIterator[Any]:
        self.streams += 1
        self.requests.append(request)
        while (message := await self.messages.get()) is not END:
            if isinstance(message, CloudUnavailable):
                raise message
            yield message
