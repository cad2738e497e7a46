"""A grpc.aio channel that adds metadata to every call, such as a login."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import grpc.aio

Pairs = tuple[tuple[str, str], ...]

_OF_ONE_CONNECTION: Final = frozenset(("authorization", "viam-sid"))
"""The login and the session of a client are none of the next machine's business."""


class MetadataChannel:
    """The part of a channel that makes calls. It neither opens nor closes the channel."""

    def __init__(self, channel: grpc.aio.Channel, metadata: Callable[[], Pairs]) -> None:
        """`metadata` is read for every call. It replaces the login and the session of a call."""
        self.channel = channel
        """Used by calls from now on; another one may take its place."""
        self._metadata = metadata

    def unary_unary(self, path: str, *coding: Any, **named_coding: Any) -> Any:
        return self._wrap(lambda: self.channel.unary_unary(path, *coding, **named_coding))

    def unary_stream(self, path: str, *coding: Any, **named_coding: Any) -> Any:
        return self._wrap(lambda: self.channel.unary_stream(path, *coding, **named_coding))

    def stream_stream(self, path: str, *coding: Any, **named_coding: Any) -> Any:
        return self._wrap(lambda: self.channel.stream_stream(path, *coding, **named_coding))

    def _wrap(self, make_call: Callable[[], Any]) -> Callable[..., Any]:
        def start(
            *request: Any, timeout: float | None = None, metadata: Iterable[Any] | None = None
        ) -> Any:
            kept = (each for each in metadata or () if each[0] not in _OF_ONE_CONNECTION)
            return make_call()(*request, timeout=timeout, metadata=(*kept, *self._metadata()))

        return start
