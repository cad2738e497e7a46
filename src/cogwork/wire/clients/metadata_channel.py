"""A channel that adds metadata to every call, such as a login."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from cogwork.wire.clients.channel import ForwardChannel

Pairs = tuple[tuple[str, str], ...]

_OF_ONE_CONNECTION: Final = frozenset(("authorization", "viam-sid"))
"""The login and the session of a client are none of the next machine's business."""

_MAX_PATHS: Final = 1_000
"""Methods that are remembered. A client can ask for any."""


class MetadataChannel:
    """The part of a channel that makes calls. It neither opens nor closes the channel."""

    def __init__(
        self, find_channel: Callable[[], ForwardChannel], metadata: Callable[[], Pairs]
    ) -> None:
        """`find_channel` returns the channel to use, which may change between calls.

        `metadata` is read for every call. It replaces the login and the session of a call.
        """
        self._find_channel = find_channel
        self._metadata = metadata
        self._raw_calls: dict[str, Callable[..., Any]] = {}
        """What starts unary calls of raw bytes: most of those that are forwarded."""

    def unary_unary(self, path: str, /, *coding: Any, **named_coding: Any) -> Any:
        if coding or named_coding:
            return self._wrap(lambda channel: channel.unary_unary(path, *coding, **named_coding))
        start = self._raw_calls.get(path)
        if start is None:
            start = self._wrap(lambda channel: channel.unary_unary(path))
            if len(self._raw_calls) < _MAX_PATHS:
                self._raw_calls[path] = start
        return start

    def unary_stream(self, path: str, /, *coding: Any, **named_coding: Any) -> Any:
        return self._wrap(lambda channel: channel.unary_stream(path, *coding, **named_coding))

    def stream_stream(self, path: str, /, *coding: Any, **named_coding: Any) -> Any:
        return self._wrap(lambda channel: channel.stream_stream(path, *coding, **named_coding))

    def _wrap(self, make: Callable[[ForwardChannel], Any]) -> Callable[..., Any]:
        used: ForwardChannel | None = None
        start_call: Any = None

        def start(
            *request: Any, timeout: float | None = None, metadata: Iterable[Any] | None = None
        ) -> Any:
            nonlocal used, start_call
            channel = self._find_channel()
            if channel is not used:
                used, start_call = channel, make(channel)
            kept = (each for each in metadata or () if each[0] not in _OF_ONE_CONNECTION)
            return start_call(*request, timeout=timeout, metadata=(*kept, *self._metadata()))

        return start
