"""Receives notifications from the cloud about changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from google.protobuf.struct_pb2 import Struct

from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import CloudUnavailable, MethodMissing
from cogwork.wire.messages.follow_method import FOLLOW, FOLLOW_HEARTBEAT

_SILENCE: Final = 2.5 * FOLLOW_HEARTBEAT
_RETRY: Final = RetryPolicy(first=1.0, maximum=10.0)
_MISSING_RETRY: Final = 600.0
"""Seconds until the method is tried again if the cloud lacks it, because the cloud may be
updated."""

_log = logging.getLogger("rdk.config")


class News(NamedTuple):
    """A notification with the current revisions, sent at the beginning and after each change."""

    config: str = ""
    access: str = ""
    ended: tuple[str, ...] = ()
    """IDs of principals whose access has ended or changed."""
    secret: str = ""
    """A new secret of the part."""
    conflict: str = ""
    """A warning, if another server uses the credentials of the part; else empty."""


class FollowLink:
    def __init__(
        self, client: CloudClient, part: str, clock: Clock, on_news: Callable[[News], None]
    ) -> None:
        self._client = client
        self._part = part
        self._clock = clock
        self._on_news = on_news
        self.is_listening = False
        self._listening: asyncio.Task[None] | None = None

    def reconnect(self) -> None:
        """Connect again, with the new credentials."""
        if self._listening is not None:
            self._listening.cancel()

    async def run(self) -> None:
        """Receive notifications until cancelled."""
        backoff = Backoff(_RETRY)
        while True:
            began = self._clock.monotonic()
            try:
                self._listening = asyncio.ensure_future(self._listen())
                try:
                    await asyncio.wait({self._listening})
                finally:
                    self._listening.cancel()
                if not self._listening.cancelled():
                    self._listening.result()
            except MethodMissing:
                await self._clock.sleep(_MISSING_RETRY)
            except CloudUnavailable as error:
                # Only a debug line, because `JoinedSource` already reports that the cloud cannot be
                # reached.
                _log.debug("cannot receive notifications from the cloud: %s", error)
            finally:
                self.is_listening = False
            lasted = self._clock.monotonic() - began
            if lasted > _RETRY.maximum:
                backoff.reset()
            await self._clock.sleep(backoff.next_delay())

    async def _listen(self) -> None:
        request = Struct()
        request.update({"id": self._part, "time": self._clock.time()})
        async for message in self._client.stream(FOLLOW, request, Struct, _SILENCE):
            self.is_listening = True
            if message.fields:
                self._on_news(_parse_news(message))


def _parse_news(message: Struct) -> News:
    fields = message.fields
    ended = fields["ended"].list_value.values
    return News(
        fields["config"].string_value,
        fields["access"].string_value,
        tuple(each.string_value for each in ended),
        fields["secret"].string_value,
        fields["conflict"].string_value,
    )
