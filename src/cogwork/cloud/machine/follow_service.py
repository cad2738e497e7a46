"""FollowService, which notifies machines of changes and sends their access lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality

from cogwork.auth.access_list import parse_access_list
from cogwork.cloud.fleet.part_access import require_own_part
from cogwork.cloud.fleet.secrets import SecretOwner, list_secrets
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.machine.part_access_list import issue_access_list
from cogwork.cloud.machine.part_documents import PartDocuments
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.bus import part_topic, read_ended
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import InvalidRequest
from cogwork.wire.messages.follow_method import FOLLOW, FOLLOW_HEARTBEAT, GET_ACCESS
from cogwork.wire.table.handlers import Method, Stream


class FollowService:
    def __init__(self, context: CloudContext, login: ActorLogin, documents: PartDocuments) -> None:
        self._context = context
        self._login = login
        self._documents = documents

    def methods(self) -> list[Method]:
        return [
            Method(FOLLOW, Cardinality.UNARY_STREAM, self._follow, Struct, Struct),
            Method(GET_ACCESS, Cardinality.UNARY_UNARY, self._get_access, StringValue, StringValue),
        ]

    async def _get_access(self, stream: Stream) -> None:
        actor = await self._login.identify(stream)
        part_id = (await stream.recv_message()).value

        def read(tx: Transaction) -> str:
            part = require_own_part(tx, actor, part_id)
            content = self._documents.read_access_list(tx, part)
            return issue_access_list(content, self._context.clock.time())

        text = await self._context.records.read(read)
        await stream.send_message(StringValue(value=text))

    async def _follow(self, stream: Stream) -> None:
        actor = await self._login.identify(stream)
        request: Struct = await stream.recv_message()
        part_id, context = _read_part_id(request), self._context
        part = await context.records.read(lambda tx: require_own_part(tx, actor, part_id))
        if (time := request.fields["time"].number_value) > 0:
            context.watch.note_clock(part_id, time - context.clock.time())
        with (
            context.presence.connected(part),
            context.watch.using(part_id, actor.secret_id),
        ):
            async with context.bus.listen(part_topic(part_id)) as changes:
                while True:
                    # Check before each message: the part or the credentials may have been deleted.
                    await self._login.identify(stream)
                    news = await context.records.read(
                        lambda tx: self._read_news(tx, actor, part_id)
                    )
                    await stream.send_message(_to_struct(news))
                    await _wait_with_heartbeats(stream, changes)

    def _read_news(self, tx: Transaction, actor: Actor, part_id: str) -> dict[str, str]:
        part = require_own_part(tx, actor, part_id)
        config = self._documents.read_config(tx, part, has_access_list=True)
        access = parse_access_list(self._documents.read_access_list(tx, part))
        news = {
            "config": config.revision,
            "access": access.revision,
            "conflict": self._context.watch.describe_conflict(part_id) or "",
            "secret": self._find_new_secret(tx, actor),
        }
        return {name: value for name, value in news.items() if value}

    def _find_new_secret(self, tx: Transaction, actor: Actor) -> str:
        """Return the secret that replaces the caller's secret; empty if none does.

        Return it only while one server uses the old secret, because a second server may be a thief.
        """
        if actor.type is not ActorType.PART:
            return ""
        secrets = list_secrets(tx, self._context.keyring, SecretOwner.PART, actor.id)
        if not secrets or secrets[0].id == actor.secret_id:
            return ""
        is_only_user = self._context.watch.is_only_user(actor.id, actor.secret_id)
        return secrets[0].secret if is_only_user else ""


def _read_part_id(request: Struct) -> str:
    found = request.fields["id"].string_value
    if not found:
        raise InvalidRequest("the ID of a part is required")
    return found


async def _wait_with_heartbeats(stream: Stream, changes: AsyncIterator[bytes]) -> None:
    """Wait for the next change, and send heartbeats so that both sides detect a lost connection."""
    waiting = asyncio.ensure_future(anext(changes))
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=FOLLOW_HEARTBEAT)
            if not waiting.done():
                await stream.send_message(Struct())
        if ended := read_ended(waiting.result()):
            # Send the IDs whose access has ended before the revisions, because computing those
            # takes longer.
            await stream.send_message(_to_struct({"ended": ended}))
    finally:
        waiting.cancel()


def _to_struct(content: Mapping[str, Any]) -> Struct:
    found = Struct()
    found.update(content)
    return found
