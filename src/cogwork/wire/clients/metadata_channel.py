"""A channel that adds metadata to every call, such as a login."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from cogwork.wire.clients.channel import ForwardChannel

Pairs = tuple[tuple[str, str], ...]

_OF_ONE_CONNECTION: Final = frozenset(("authorization", "viam-sid"))
"""Headers with the client's login and session, which must not be sent to the next machine."""

_MAX_PATHS: Final = 1_000
"""Maximum number of methods in the cache, which clients could fill because they can call any
path."""


class MetadataChannel:
    """A channel that can only make calls. It neither opens nor closes the underlying channel."""

    def __init__(
        self, find_channel: Callable[[], ForwardChannel], metadata: Callable[[], Pairs]
    ) -> None:
        """`find_channel` returns the channel to use, which may change between calls.

        `metadata` is called for every call, and returns the metadata that replaces the login and
        the session of the call.
        """
        self._find_channel = find_channel
        self._metadata = metadata
        self._raw_calls: dict[str, Callable[..., Any]] = {}
        """Functions that start unary calls of raw bytes, by path. Only these are cached, because
        most forwarded calls are unary."""

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
