"""Tracks the clients of a gRPC server, and the bytes that the server holds for each client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc.aio

from cogwork.core.limits.byte_budget import ByteBudget, Hold
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.net.peer import Peer
from cogwork.wire.transports.running_calls import RunningCalls
from cogwork.wire.transports.unread_replies import UnreadReplies

MIN_REPLY_SIZE = 4096
"""Size in bytes up to which an unread reply is not counted."""

Context = grpc.aio.ServicerContext[Any, Any]
PeerOf = Callable[[str], Peer]
"""Returns the client for a peer name that grpc reports."""


class GrpcClients:
    """Tracks the clients behind the calls, and the bytes that the server holds for each client."""

    def __init__(
        self,
        requests: ByteBudget,
        peer_of: PeerOf,
        proxies: TrustedProxies,
        running: RunningCalls,
    ) -> None:
        self.running = running
        self._requests = requests
        self._peer_of = peer_of
        self._proxies = proxies
        self._replies = UnreadReplies()

    def peer(self, context: Context) -> str:
        return self.find(context).address

    def find(self, context: Context) -> Peer:
        peer = self._peer_of(context.peer())
        if not self._proxies:
            return peer
        return self._proxies.find_client(peer, _text_metadata(context))

    def hold(self, context: Context) -> Hold:
        """Return the memory reservation of a call, which initially covers its metadata.

        Raise OverBudget if a limit is exceeded.
        """
        hold = Hold(self._requests, self.peer(context))
        metadata = context.invocation_metadata() or ()
        hold.acquire_message(sum(len(name) + len(value) for name, value in metadata))
        return hold

    @property
    def may_be_behind(self) -> bool:
        return not self._replies.is_within_slack

    async def wait_until_read(self, context: Context) -> None:
        """Wait until the client has read enough of its replies. Raise RepliesNotRead on timeout."""
        client = self.peer(context)
        if self._replies.is_behind(client):
            await self._replies.wait_until_read(client)

    def track_reply(self, reply: bytes, context: Context) -> bytes:
        """Count the reply of a unary call until the client has read it."""
        if len(reply) > MIN_REPLY_SIZE:
            client, size = self.peer(context), len(reply)
            self._replies.add(client, size)
            remove: Any = partial(self._untrack_reply, client, size)
            context.add_done_callback(remove)
        return reply

    def _untrack_reply(self, client: str, size: int, _: object) -> None:
        self._replies.remove(client, size)


def _text_metadata(context: Context) -> Iterator[tuple[str, str]]:
    for key, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            yield key, value
