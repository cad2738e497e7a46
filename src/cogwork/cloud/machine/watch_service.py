"""Watch: tells machines that their configuration has changed, so that they need not ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality

from cogwork.cloud.context import CloudContext
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.login import Login
from cogwork.cloud.machine.config_cache import ConfigCache
from cogwork.cloud.machine.part_access import require_own_part
from cogwork.cloud.storage.bus import part_topic
from cogwork.cloud.storage.records import Transaction
from cogwork.wire.handlers import Method, Stream
from cogwork.wire.watch_method import WATCH, WATCH_HEARTBEAT


class WatchService:
    def __init__(self, context: CloudContext, login: Login, configs: ConfigCache) -> None:
        self._context = context
        self._login = login
        self._configs = configs

    def methods(self) -> list[Method]:
        return [Method(WATCH, Cardinality.UNARY_STREAM, self._watch, StringValue, StringValue)]

    async def _watch(self, stream: Stream) -> None:
        actor = await self._login.identify(stream)
        part_id = (await stream.recv_message()).value
        context = self._context
        part = await context.records.read(lambda tx: require_own_part(tx, actor, part_id))
        with context.presence.connected(part):
            async with context.bus.listen(part_topic(part_id)) as changes:
                while True:
                    # Each time, because the part or the credentials may be gone.
                    await self._login.identify(stream)
                    revision = await context.records.read(
                        lambda tx: self._read_revision(tx, actor, part_id)
                    )
                    await stream.send_message(StringValue(value=revision))
                    await _wait_with_heartbeats(stream, changes)

    def _read_revision(self, tx: Transaction, actor: Actor, part_id: str) -> str:
        part = require_own_part(tx, actor, part_id)
        return self._configs.read(tx, part).revision


async def _wait_with_heartbeats(stream: Stream, changes: AsyncIterator[bytes]) -> None:
    """Wait for the next change, with heartbeats so that both sides notice a lost connection."""
    waiting = asyncio.ensure_future(anext(changes))
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=WATCH_HEARTBEAT)
            if not waiting.done():
                await stream.send_message(StringValue())
        waiting.result()
    finally:
        waiting.cancel()
