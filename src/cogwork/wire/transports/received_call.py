"""The base class of calls that Cogwork's own transports receive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from grpclib.metadata import Deadline
from multidict import MultiDict

from cogwork.core.limits.byte_budget import Hold
from cogwork.net.peer import Peer
from cogwork.wire.table.handlers import Handler, Method
from cogwork.wire.table.message_parser import (
    Parse,
    accept_any,
    keep_bytes,
    make_parser,
    make_size_check,
)


class ReceivedCall:
    """One call, as its handler sees it."""

    def __init__(self, client: Peer, metadata: MultiDict[str | bytes], hold: Hold) -> None:
        self.client = client
        self.peer = client.address
        self.metadata = metadata
        self.deadline: Deadline | None = None
        self.has_replied = False
        self.hold = hold
        self._takes_stream = False
        self._parse: Parse = keep_bytes
        self._check: Callable[[bytes], None] = accept_any
        self._request: Any = None

    @property
    def request(self) -> Any:
        """The request, parsed on first use, after middleware has authenticated the caller."""
        if self._request is None and not self._takes_stream:
            self._request = self._parse_message(self._take_request())
        return self._request

    async def recv_message(self) -> Any:
        raise NotImplementedError

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message

    def _take_request(self) -> bytes:
        """Return the message of a call that takes exactly one message."""
        raise NotImplementedError

    def _choose_handler(self, method: Method, first: bytes) -> Handler:
        """Return the handler of a call that begins with this message.

        If another process has the resource, the handler forwards the messages unparsed.
        """
        forward = method.find_proxy(first)
        if forward is not None:
            return forward
        self._parse, self._check = make_parser(method), make_size_check(method)
        return method.handle

    def _parse_message(self, data: bytes) -> Any:
        self._check(data)
        return self._parse(data, self.hold)
